"""Atom feeds of what changed, each at an address that nobody can guess."""
