"""Soft 404s and block pages: responses that are not content."""
