"""The crawler: from a due URL to a change observation."""

__version__ = "0.1.0"
