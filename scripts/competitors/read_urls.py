"""Scrapy reads the URLs of its standard input; prints the texts that it got, as JSON by URL.

Run by ``scripts/bench exchange`` in an environment that has Scrapy; the argument is its time limit.
"""

import json
import sys
from collections.abc import AsyncIterator

import scrapy
from scrapy.crawler import CrawlerProcess
from scrapy.http import Response

FOUND: dict[str, str] = {}


class Reader(scrapy.Spider):
    """Reads each URL once."""

    name = "reader"

    async def start(self) -> AsyncIterator[scrapy.Request]:
        """Yield the requests."""
        for url in sys.stdin.read().split():
            yield scrapy.Request(url, dont_filter=True)

    def parse(self, response: Response) -> None:
        """Note a text."""
        FOUND[response.url] = response.body.decode("utf-8", "replace")


if __name__ == "__main__":
    process = CrawlerProcess(
        {
            "DOWNLOAD_TIMEOUT": int(sys.argv[1]),
            "RETRY_ENABLED": False,
            "ROBOTSTXT_OBEY": False,
            "TELNETCONSOLE_ENABLED": False,
            "LOG_ENABLED": False,
        }
    )
    process.crawl(Reader)
    process.start()
    sys.stdout.write(json.dumps(FOUND))
