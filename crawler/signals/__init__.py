"""Change signals: dates of pages in sitemaps, feeds and headers, checked and stored as claims."""
