"""Settings: their names, ranges, defaults and sources."""


class ConfigError(ValueError):
    """The configuration is invalid; the message is one line, even if it quotes several."""

    def __init__(self, message: str) -> None:
        super().__init__(" ".join(message.split()))
