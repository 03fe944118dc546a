"""The scheduler: from observations to what is fetched next."""


class PolicyError(ValueError):
    """A policy's name, an option's name or its value that is not accepted."""
