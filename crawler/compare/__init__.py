"""Comparison of a page with its last version."""
