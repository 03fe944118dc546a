"""What a store has of its visits is what a daemon heard of them."""

from dataclasses import replace
from math import inf

import numpy as np

from freshet.scheduler.agenda.history import PendingEvidence
from freshet.scheduler.agenda.pages import PageTable
from freshet.storage.entries import Claim, Said
from tests.storage.crawl_store import DAY_S, START, CrawlStore, url_of, visit


async def test_a_visit_has_the_day_that_its_own_answer_named(store: CrawlStore) -> None:
    await store.admit("/a", "/b")
    pages = PageTable()
    pages.add(
        np.array([await store.page_id("/a"), await store.page_id("/b")]),
        urls=["http://a.example/"] * 2,
    )
    live = PendingEvidence(store.database.reader, pages)
    visits = [
        ("/a", 1.0, 0.5),
        ("/b", 2.0, 0.5),
        ("/a", 3.0, 0.5),
        ("/a", 4.0, 3.5),
        ("/b", 5.0, inf),
    ]
    for path, day, modified in visits:
        at = START + day * DAY_S
        named = START + modified * DAY_S
        claims = (Claim(url_of(path), named, named),) if modified < inf else ()
        said = Said("last_modified", 1, None, claims)
        seen = replace(visit(await store.taken(path, at), "changed", at), said=said, retry_at=at)
        (acknowledged,) = await store.apply(seen)
        live.claimed(acknowledged.claims)
        row = pages.row(seen.due.page_id)
        assert row is not None
        live.seen(row, seen.observation)
    heard, stored = live.new().visits.modified, (await live.all()).visits.modified
    assert heard is not None
    assert stored is not None
    # The same day again is no news.
    first = START / DAY_S
    assert heard.tolist() == [first + 0.5, first + 0.5, -inf, first + 3.5, -inf]
    assert stored.tolist() == heard.tolist()
