"""Fixtures of several rooms."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.storage.crawl_store import CrawlStore, crawl_store


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[CrawlStore]:
    """A store in its first run, whose references are checked in the end."""
    async with crawl_store(tmp_path / "db") as opened:
        yield opened
