"""The building of the search index."""

from functools import partial
from typing import Final

from freshet.crawler.extensions.search import tables
from freshet.crawler.extensions.search.searching import parsed_page
from freshet.crawler.extensions.search.tables import PendingPage
from freshet.crawler.extensions.search.words import index_lines
from freshet.crawler.reduce.blocks import Blocks
from freshet.crawler.reduce.parser_process import Parser
from freshet.crawler.run.terminal import Tell
from freshet.storage.database import Database

#: Pages of one transaction, the most that a kill loses.
_BATCH: Final = 100


async def index_pending(database: Database, parser: Parser, tell: Tell | None = None) -> int:
    """Index the documents that the index lacks, and return how many these were.

    Their words are read from stored bodies; without a body only the title is indexed. A later call
    continues an interrupted one. Without an index the call has no effect.

    Raises:
        StoreError: the store cannot be read or written.
    """
    counted = await tables.counts(database.reader)
    if counted is None:
        return 0
    done, (indexed, told), after = 0, counted, 0
    while pending := await tables.pending(database.reader, after, _BATCH):
        after = pending[-1].page_id
        lines = [(p.page_id, p.version_id, await _lines(database, parser, p)) for p in pending]
        await database.write(partial(tables.fill, pages=lines))
        done += len(lines)
        if tell is not None:
            tell("pages", min(1.0, (indexed + done) / max(told, 1)))
    return done


async def _lines(database: Database, parser: Parser, pending: PendingPage) -> str:
    parsed = await parsed_page(database.reader, parser, pending)
    blocks = Blocks() if parsed is None else parsed.blocks
    return index_lines(pending.title, blocks.texts, blocks.kinds)
