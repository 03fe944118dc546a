"""Change signals: dates that others give for pages, weighed and kept as claims."""
