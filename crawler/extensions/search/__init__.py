"""The search index of a store: what keeps it, what searches it, and what shows the results."""
