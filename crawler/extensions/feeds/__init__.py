"""Atom feeds of changes, each at a secret address."""
