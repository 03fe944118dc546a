"""The verbs of the laboratory: one verb, one file."""
