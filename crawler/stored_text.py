"""The main text of a stored version, read again from its bytes as the crawl read it."""

import aiosqlite

from freshet.crawler.reduce.markup import Blocks
from freshet.crawler.reduce.parser_process import Parser, ParserLost, Unparsable
from freshet.storage.queries import page
from freshet.storage.queries.page import StoredVersion


class NoText(Exception):
    """A version without a comparable text; the message says why."""


async def read_text(
    connection: aiosqlite.Connection, parser: Parser, url: str, version: StoredVersion
) -> Blocks:
    """Return the blocks of main text of a version.

    Raises:
        NoText: its bytes are not kept, or cannot be parsed.
    """
    body = await page.body(connection, version.version_id)
    if body is None:
        raise NoText(
            f"the bytes of version {version.number} are not kept "
            "(store.bodies_per_page, store.body_age_days; never of a noarchive page)"
        )
    try:
        parsed = await parser.parse(body, url, version.content_type)
    except ParserLost as error:
        raise NoText(
            f"version {version.number} could not be parsed now: {error}; try again"
        ) from error
    if isinstance(parsed, Unparsable):
        raise NoText(f"version {version.number} cannot be parsed: {parsed.reason}")
    return parsed.blocks
