"""Change detection: sketches, what changes of itself, and pages that are the same."""
