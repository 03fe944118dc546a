"""Reading web archives: what stands in them, where, and in which order it happened."""
