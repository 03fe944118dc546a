"""The verbs of identity."""
