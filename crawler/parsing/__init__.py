"""Parsing: from bytes that a server sent to text, links and what a page says of itself."""
