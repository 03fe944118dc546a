"""Soft 404s and block pages: answers with the status 200 that are not content."""
