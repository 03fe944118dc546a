"""Pages that a browser renders."""
