"""A page compared with its past: changed, unchanged, or not content."""
