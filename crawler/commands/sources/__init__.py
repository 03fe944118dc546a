"""The sources of a plan: read from a file or a store, and written with their plan."""
