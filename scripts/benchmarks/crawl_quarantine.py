"""What it costs to parse pages in the parser's process, beside parsing them in ours."""

from __future__ import annotations

from collections.abc import Sequence
from time import process_time

from freshet.config.loading import load
from freshet.crawler.reduce.nesting import is_calm
from freshet.crawler.reduce.page import parse
from freshet.crawler.reduce.parser_process import Parser
from scripts.benchmarks.crawl_from_memory import Page, cpu_s


async def quarantined(pages: Sequence[Page]) -> dict[str, float]:
    """CPU microseconds for the pages that are too long or not calm; the start is included."""
    limit = load(None, {})[0].parse.inline_bytes
    chosen = [page for page in pages if len(page.body) > limit or not is_calm(page.body)]
    parser, before_s = Parser(inline_bytes=limit), sum(cpu_s())
    try:
        for page in chosen:
            await parser.parse(page.body, page.url, page.content_type)
    finally:
        await parser.close()
    there_s, started_at = sum(cpu_s()) - before_s, process_time()
    for page in chosen:
        parse(page.body, page.url, page.content_type)
    return {
        "page, long ones in the parser's process": 1e6 * there_s,
        "page, long ones in the parser's process: in ours": 1e6 * (process_time() - started_at),
    }
