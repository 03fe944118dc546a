"""What a running crawl requests next."""
