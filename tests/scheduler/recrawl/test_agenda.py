"""The agenda of a daemon takes over what the terms say of pages."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import numpy as np
import pytest

from scheduler.arguments import Ints
from scheduler.policies.greedy_index import GreedyIndex
from scheduler.recrawl.agenda import RecrawlAgenda
from scheduler.recrawl.by_index import ByIndex
from scheduler.recrawl.terms import Terms
from storage.database import reading
from tests.storage.small_store import HOST, SmallStore, small_store


@pytest.fixture
def store(tmp_path: Path) -> SmallStore:
    store = asyncio.run(small_store(tmp_path / "crawl.db"))
    store.run(0.0)
    store.host()
    return store


@dataclass(slots=True)
class Said:
    """Terms by page; what is not said weighs 1, and 0 is never asked for."""

    importance: dict[int, float] = field(default_factory=dict)

    def __call__(self, page_id: Ints, urls: Sequence[str], origins: Sequence[str]) -> Terms:
        assert [url.startswith(origin) for url, origin in zip(urls, origins, strict=True)]
        n = len(urls)
        weights = np.array([self.importance.get(each, 1.0) for each in page_id.tolist()])
        return Terms(np.zeros(n, np.intp), weights, weights == 0, np.zeros(n), np.full(n, np.inf))


async def test_pages_weigh_anew_and_what_is_not_watched_stays_away(store: SmallStore) -> None:
    for path in ("/a", "/never", "/b"):
        store.page(path, checked_at=86_400.0)
    said, refresher = Said({2: 0.0}), ByIndex(GreedyIndex())
    async with reading(store.path) as connection:
        agenda = RecrawlAgenda(connection, refresher, said, Random(0))
        await agenda.open()
        before = refresher.worth(9.0)
        store.page(f"{HOST}/new")  # the agenda has not heard of it
        said.importance = {1: 3.0, 2: 5.0, 3: 0.5}
        await agenda.reweigh()
        said.importance = {1: 9.0, 3: 0.25}
        await agenda.reweigh([2, 3])
    assert agenda.pages["page_id"].tolist() == [1, 3]
    assert agenda.pages["importance"].tolist() == [3.0, 0.25]
    assert refresher.worth(9.0) / before == pytest.approx([3.0, 0.25])
