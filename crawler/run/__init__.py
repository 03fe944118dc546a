"""Composition of a crawl and of a daemon: wiring, and the state of a daemon."""
