"""robots.txt by RFC 9309, and the other words by which sites address crawlers.

:func:`allowed` is the one-shot question; a crawl keeps a :class:`~crawler.robots.book.RobotsBook`.
"""

from freshet.crawler.robots.parser import allowed

__all__ = ["allowed"]
