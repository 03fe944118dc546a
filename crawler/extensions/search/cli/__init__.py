"""The verb of searches."""
