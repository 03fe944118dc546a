"""Recorded runs of daemons: each is made once a worker, and many tests ask its store and log."""

import asyncio
import hashlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from freshet.crawler.frontier.clock import VirtualClock
from tests.integration.eventful import Eventful, MovingSite
from tests.integration.test_daemon import Server, Stage

#: Tests of one recorded run go to one worker (``--dist=loadgroup``).
RECORDED = ("showcase_run", "capped_run", "eventful_run", "hostile_store")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        for name in RECORDED:
            if name in getattr(item, "fixturenames", ()):
                item.add_marker(pytest.mark.xdist_group(name))
                if name == "eventful_run":
                    # It takes a minute alone.
                    item.add_marker(pytest.mark.long)


def recorded(db: Path, server: Server | MovingSite, clock: VirtualClock) -> Iterator[None]:
    """See to it that no test writes to a recorded store or asks its server."""

    def state() -> tuple[str, int, float]:
        return hashlib.sha256(db.read_bytes()).hexdigest(), len(server.asked), clock.now()

    before = state()
    yield
    assert state() == before, "a test changed the recorded run; let it work on stage.copy(…)"


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    """The sites of the showcase, with a store that is still to be made."""
    return Stage(tmp_path / "crawl.db")


def kept(stage: Stage, budget: float, days: float) -> Iterator[Stage]:
    asyncio.run(stage.keep(budget, days))
    for _ in recorded(stage.db, stage.server, stage.clock):
        yield stage


@pytest.fixture(scope="session")
def showcase_run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """Ten days on all sites of the showcase, at 150 requests a day."""
    yield from kept(Stage(tmp_path_factory.mktemp("showcase") / "crawl.db"), 150.0, 10.0)


@pytest.fixture(scope="session")
def capped_run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """Four days at 480 requests a day, of which a host takes 96, and three in ten are audits."""
    db = tmp_path_factory.mktemp("capped") / "crawl.db"
    yield from kept(Stage(db, audit_share=0.3, delay_s=900.0), 480.0, 4.0)


@pytest.fixture(scope="session")
def eventful_run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Eventful]:
    """Two days of pushes and alerts on seven sites, and fifty of pages that move."""
    run = Eventful(tmp_path_factory.mktemp("eventful") / "crawl.db")
    asyncio.run(run.run())
    for _ in recorded(run.db, run.site, run.site.clock):
        yield run
