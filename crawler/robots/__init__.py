"""robots.txt by RFC 9309, and the robots directives of pages.

:func:`allowed` answers a single question; a crawl keeps a :class:`~.cache.RobotsCache`.
"""

from freshet.crawler.robots.parser import allowed

__all__ = ["allowed"]
