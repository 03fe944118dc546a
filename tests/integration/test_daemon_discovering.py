"""A daemon finds new pages and keeps old ones fresh under one price."""

from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

from freshet.crawler.run import state
from freshet.crawler.run.daemon_status import read_status
from freshet.scheduler.policies.greedy_index import GreedyIndex
from freshet.scheduler.queue.page_rules import PageRules
from freshet.scheduler.queue.rankers import PolicyRanker
from freshet.scheduler.queue.recrawl import RecrawlAgenda
from freshet.storage.database import reading
from tests.integration.test_daemon import DAY_S, Stage

BUDGET, DAYS = 150.0, 5.0


class Watched(RecrawlAgenda):
    """The agenda of the last daemon, to be looked into."""

    last: RecrawlAgenda

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        type(self).last = self


def revealed(agenda: RecrawlAgenda) -> dict[int, set[int]]:
    """Which pages (ids) reveal each of the newest ones; what is revealed by none is left out."""
    ids = agenda.pages["page_id"].tolist()
    hubs = agenda.learner.hubs
    found = {ids[row]: {ids[by] for by in hubs._precedents.revealers(row)} for row in hubs.newest}
    return {page: by for page, by in found.items() if by}


def churning(agenda: RecrawlAgenda) -> dict[int, float]:
    """New links a day at each page (id) whose links churn."""
    row, rate, churns = agenda.learner.hubs.churning.rates(agenda.pages["since"])
    ids = agenda.pages["page_id"][row[churns]].tolist()
    return dict(zip(ids, rate[churns].tolist(), strict=True))


def terms(page_id: Any, urls: Any, _origins: Any) -> PageRules:
    n = len(urls)
    return PageRules(
        np.zeros(n, np.intp), np.ones(n), np.zeros(n, np.bool_), np.zeros(n), np.full(n, np.inf),
        np.full(n, np.nan), np.zeros(n, np.bool_),
    )  # fmt: skip


async def test_after_a_start_it_knows_who_reveals_what_as_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(state, "RecrawlAgenda", Watched)
    stage = Stage(tmp_path / "crawl.db", audit_share=0.05)
    await stage.keep(BUDGET, DAYS, ["news", "shop"])
    before, churned = revealed(Watched.last), churning(Watched.last)
    async with reading(stage.db) as connection:
        again = RecrawlAgenda(connection, PolicyRanker(GreedyIndex().index), terms, Random(0))
        await again.open()
    assert revealed(again) == before
    assert churning(again) == pytest.approx(churned)
    ((front,),) = stage.rows("SELECT id FROM page WHERE url = 'http://news.localhost/'")
    assert sum(front in by for by in before.values()) > 5
    feed = stage.rows("SELECT id FROM page WHERE url = 'http://news.localhost/feed.atom'")
    assert {front, feed[0][0]} <= churned.keys()
    docs = stage.rows("SELECT id FROM page WHERE url LIKE 'http://shop.%'")
    assert not churned.keys() & {page for (page,) in docs}


async def test_status_tells_how_looks_were_shared(showcase_run: Stage) -> None:
    stage = showcase_run
    fetches = len(stage.server.asked)
    ((new,),) = stage.rows("SELECT count(*) FROM finding WHERE kind = 'new'")
    standing = await read_status(stage.db, stage.clock.now())
    assert standing is not None
    it = standing.snapshot.discovered
    visits = it.first_visits + it.revealing_visits + it.refreshing_visits
    assert 0.9 * fetches < visits <= fetches
    assert it.first_visits >= int(str(new)) > 10
    assert 0 < it.unknown_pages < 3 * it.new_per_day


@pytest.mark.long
async def test_a_floor_that_is_the_ceiling_is_the_share(stage: Stage) -> None:
    share = 0.6
    await stage.keep(BUDGET, 1.0, ["news"])
    await stage.keep(
        BUDGET, DAYS, ["news"],
        daemon__min_discovery=share, daemon__max_discovery=share,
    )  # fmt: skip
    standing = await read_status(stage.db, stage.clock.now())
    assert standing is not None
    found = standing.snapshot.discovered.share
    assert found == pytest.approx(share, abs=0.05)


@pytest.mark.long
@pytest.mark.parametrize("discovery", ["areas", "cov_win"])
async def test_new_pages_are_found_before_a_turn_has_passed(tmp_path: Path, discovery: str) -> None:
    """With one visit to each page in eight days, most news are there within two."""
    stage = Stage(tmp_path / "crawl.db", sitemaps=False)
    await stage.keep(400.0, 1.0, ["news"])
    ((pages,),) = stage.rows("SELECT count(*) FROM page WHERE version_id IS NOT NULL")
    assert isinstance(pages, int)
    began = stage.clock.now()
    await stage.keep(pages / 8, 18.0, ["news"], signals__max_feeds=0, daemon__discovery=discovery)
    born = {
        f"http://news.localhost{target}": it.born_at
        for target, it in stage.web.sites["news"].documents()
        if began < it.born_at
    }
    first = stage.rows(
        "SELECT p.url, min(o.at) FROM page p JOIN observation o ON o.page_id = p.id "
        "WHERE o.kind = 'new' GROUP BY p.id"
    )
    delays = [(float(str(at)) - born[str(url)]) / DAY_S for url, at in first if url in born]
    assert len(delays) > 10
    assert np.median(delays) < 2


@pytest.mark.long
async def test_where_only_listed_pages_are_kept_none_is_looked_at_for_new_ones(
    tmp_path: Path,
) -> None:
    stage = Stage(tmp_path / "crawl.db", sitemaps=False)
    await stage.keep(BUDGET, 2.0, ["news"], crawl__scope="list", signals__max_feeds=0)
    standing = await read_status(stage.db, stage.clock.now())
    assert standing is not None
    it = standing.snapshot.discovered
    assert it.revealing_visits == 0
    assert it.refreshing_visits > 100
