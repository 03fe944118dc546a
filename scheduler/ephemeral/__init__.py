"""Sources of ephemeral content, and policies for them (Avrachenkov and Borkar 2018)."""
