"""The parser as the settings want it."""

from __future__ import annotations

from freshet.config.settings import Settings
from freshet.crawler.errors import CrawlError
from freshet.crawler.parsing.quarantine import Parser
from freshet.crawler.parsing.selectors import SiteHints


def parser_of(settings: Settings) -> Parser:
    """A parser; the caller closes it.

    Raises:
        CrawlError: a selector of the settings is not valid.
    """
    parse = settings.parse
    try:
        hints = SiteHints(parse.include, parse.ignore)
    except ValueError as error:
        raise CrawlError(f"parse.include, parse.ignore: {error}") from error
    return Parser(
        time_limit_s=parse.time_limit_s,
        inline_bytes=parse.inline_bytes,
        max_links=parse.max_links,
        agent_token=settings.crawl.product.lower(),
        hints=hints,
    )
