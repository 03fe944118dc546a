"""Settings: their names, ranges, defaults and sources."""


class ConfigError(ValueError):
    """The configuration cannot be used; the message is one line, whatever it quotes."""

    def __init__(self, message: str) -> None:
        super().__init__(" ".join(message.split()))
