"""Settings: their names, ranges, defaults and sources."""
