"""Two versions of a text, side by side: what came, went, moved and was edited."""
