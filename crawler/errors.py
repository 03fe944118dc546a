"""What the crawler says to its user when it cannot do what was asked."""

from __future__ import annotations


class CrawlError(Exception):
    """The crawl cannot be done as asked; the message is one line for the user."""
