"""What a daemon hears of pages, beside the truth of the synthetic web."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from freshet.storage.database import reading
from freshet.storage.entries import CLAIM_KINDS, ClaimKind
from freshet.storage.tables import claims, hosts
from tests.integration.quick import assert_consistent
from tests.integration.test_daemon import DAY_S, Stage


async def test_claims_are_those_that_the_web_makes_and_true(tmp_path: Path) -> None:
    stage = Stage(tmp_path / "crawl.db")
    await stage.keep(300.0, 4.0, ["news"])
    assert_consistent(stage.db)
    changed_at = {
        f"http://news.localhost{target}": page.changed_at
        for target, page in stage.web.sites["news"].documents()
    }
    async with reading(stage.db) as connection:
        said = await claims.load(connection)
        sources = await claims.sources(connection)
        (signals,) = await hosts.load_signals(connection)
    rows = stage.rows("SELECT id, url FROM page WHERE role = 'page'")
    urls = {page_id: str(url) for page_id, url in rows}
    kinds = [CLAIM_KINDS[code] for code in said.kind]
    heard = [
        (kind, urls[page_id], since, at)
        for kind, page_id, since, at in zip(
            kinds, said.page_id.tolist(), said.since.tolist(), said.received_at.tolist(),
            strict=True,
        )
        if kind is not ClaimKind.LAST_MODIFIED and page_id in urls
    ]  # fmt: skip
    assert {kind for kind, *_ in heard} == {ClaimKind.SITEMAP, ClaimKind.FEED}
    assert [(url, since) for _, url, since, at in heard] == [
        (url, float(int(changed_at[url](at)))) for _, url, since, at in heard
    ]
    assert np.all(np.diff(said.received_at) >= 0)
    assert any(source.moved for source in sources)
    assert sum(source.entries + source.moved for source in sources) == len(said)
    assert all(source.polls for source in sources if source.kind is ClaimKind.SITEMAP)
    # Its clock is ours, and it stamps every page with the time of the answer, or not.
    assert signals.skew_s == 0.0
    assert signals.dated > 0


async def test_the_usual_places_are_tried_once_a_month(tmp_path: Path) -> None:
    stage = Stage(tmp_path / "crawl.db")
    await stage.keep(60.0, 20.0, ["docs"])
    tried = [(at, url) for at, url in stage.server.asked if url.endswith(("/feed", "/rss.xml"))]
    assert sorted(url.rsplit("/", 1)[1] for _, url in tried) == ["feed", "rss.xml"]
    assert stage.rows("SELECT DISTINCT last_kind, role FROM page WHERE url LIKE '%/rss.xml'") == [
        ("skipped", "feed")
    ]
    at, _ = tried[0]
    assert at < stage.web.start_at + 7 * DAY_S
