"""Freshet: the web crawler that knows when to come back."""
