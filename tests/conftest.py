"""Fixtures of several rooms."""

import asyncio
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.storage.crawl_store import CrawlStore, crawl_store
from tests.storage.small_store import SmallStore, small_store


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[CrawlStore]:
    """A store in its first run, whose references are checked in the end."""
    async with crawl_store(tmp_path / "db") as opened:
        yield opened


@pytest.fixture
def now() -> float:
    """The time by the machine's clock."""
    return time.time()


@pytest.fixture
def small(tmp_path: Path) -> SmallStore:
    """A store without a row."""
    return asyncio.run(small_store(tmp_path / "crawl.db"))


@pytest.fixture
def site(small: SmallStore) -> SmallStore:
    """A store with a run and a host."""
    small.run(0.0)
    small.host()
    return small
