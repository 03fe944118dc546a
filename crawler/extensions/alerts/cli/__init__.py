"""The verbs ``alerts`` and ``watch``."""
