"""Comparison of a page with its past: changed, unchanged, or not content."""
