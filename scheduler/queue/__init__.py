"""The order in which a running crawl requests URLs."""
