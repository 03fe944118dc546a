"""The scheduler: it decides from observations which page to fetch next."""


class PolicyError(ValueError):
    """A policy's name, an option's name or its value that is not accepted."""
