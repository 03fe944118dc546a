"""Fixtures of several rooms."""

import asyncio
import gc
import logging
import shutil
import sqlite3
import time
import tomllib
from collections.abc import AsyncIterator, Iterator
from importlib.metadata import entry_points
from pathlib import Path

import pytest
import structlog
from hypothesis import settings

from freshet.crawler.run import logs
from freshet.storage import database
from tests.crawler.frontier.frontier_world import ALLOW, PRIVATE, World, parsed
from tests.storage.crawl_store import CrawlStore, crawl_store
from tests.storage.small_store import SmallStore, close_kept, small_store

#: The examples of scripts/test without --all.
settings.register_profile("quick", settings.get_profile("ci"), max_examples=20)


@pytest.fixture(autouse=True, scope="session")
def new_stores_are_copies(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Copy an empty store instead of making each of thousands by all migrations."""
    empty = tmp_path_factory.mktemp("stores") / "empty.db"
    make = database._writable
    make(empty).close()

    def copied(path: Path) -> sqlite3.Connection:
        if not path.is_symlink() and not path.exists():
            shutil.copy(empty, path)
        return make(path)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(database, "_writable", copied)
        yield


def pytest_sessionstart() -> None:
    """Stop where extensions would not be found: the environment has older entry points."""
    text = (Path(__file__).parents[1] / "pyproject.toml").read_text("utf-8")
    for group, named in tomllib.loads(text)["project"]["entry-points"].items():
        if named.items() - {(each.name, each.value) for each in entry_points(group=group)}:
            pytest.exit("the entry points of this environment are old; run scripts/setup", 4)


def pytest_collection_finish() -> None:
    """Spare the collector ten thousand tests, which it would look through hundreds of times."""
    gc.collect()
    gc.freeze()


def pytest_sessionfinish() -> None:
    """Let libraries end as without that: some count what is left of them."""
    gc.unfreeze()


@pytest.fixture(autouse=True)
def no_store_stays_open() -> Iterator[None]:
    """Close what :class:`SmallStore` keeps open for the length of a test."""
    yield
    close_kept()


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


@pytest.fixture
def world() -> World:
    """A frontier of two hosts; the second one forbids a part."""
    world = World()
    world.add(1, "a", parsed(ALLOW, 0.0))
    world.add(2, "b", parsed(PRIVATE, 0.0))
    return world


@pytest.fixture
def logging_as_before() -> Iterator[None]:
    """Give a test that configures logging a way back: nothing of it shows in the next."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    structlog.reset_defaults()
    logs._hidden.clear()
