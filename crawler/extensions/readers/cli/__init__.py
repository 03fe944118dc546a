"""The verbs by which people open pages, and other programs tell what was opened."""
