"""Recorded runs of daemons: each is made once a worker, and many tests ask its store and log."""

import asyncio
import hashlib
from collections.abc import Iterator

import pytest

from tests.integration.test_daemon import Stage

#: Tests of one recorded run go to one worker (``--dist=loadgroup``).
RECORDED = ("showcase_run", "capped_run")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        for name in RECORDED:
            if name in getattr(item, "fixturenames", ()):
                item.add_marker(pytest.mark.xdist_group(name))


def recorded(stage: Stage, budget: float, days: float) -> Iterator[Stage]:
    """Run a daemon, and see to it that no test writes to its store or asks its server."""
    asyncio.run(stage.keep(budget, days))

    def state() -> tuple[str, int, float]:
        digest = hashlib.sha256(stage.db.read_bytes()).hexdigest()
        return digest, len(stage.server.asked), stage.clock.now()

    before = state()
    yield stage
    assert state() == before, "a test changed the recorded run; let it work on stage.copy(…)"


@pytest.fixture(scope="session")
def showcase_run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """Ten days on all sites of the showcase, at 150 requests a day."""
    yield from recorded(Stage(tmp_path_factory.mktemp("showcase") / "crawl.db"), 150.0, 10.0)


@pytest.fixture(scope="session")
def capped_run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """Four days at 480 requests a day, of which a host takes 96, and three in ten are audits."""
    db = tmp_path_factory.mktemp("capped") / "crawl.db"
    yield from recorded(Stage(db, audit_share=0.3, delay_s=900.0), 480.0, 4.0)
