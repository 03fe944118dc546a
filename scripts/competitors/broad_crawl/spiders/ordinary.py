"""The crawler that Scrapy's tutorial leads to: CrawlSpider and its LinkExtractor.

It stores and compares nothing: the callback counts the pages.
"""

from __future__ import annotations

from urllib.parse import urlsplit

from scrapy.http import Response
from scrapy.linkextractors import LinkExtractor
from scrapy.spiders import CrawlSpider, Rule

from broad_crawl.spiders import seeds_in


class Ordinary(CrawlSpider):
    """Follows every link within the seeds' hosts."""

    name = "ordinary"
    rules = (Rule(LinkExtractor(), callback="count", follow=True),)

    def __init__(self, seeds: str, **arguments: object) -> None:
        super().__init__(**arguments)
        self.start_urls = seeds_in(seeds)
        self.allowed_domains = sorted({urlsplit(url).hostname or "" for url in self.start_urls})
        self.pages = 0

    def count(self, response: Response) -> None:
        """Take note of a page."""
        self.pages += 1
