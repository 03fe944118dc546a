"""Connectors: what keeps the passages of a store in an index elsewhere, in step with the store."""
