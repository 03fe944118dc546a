"""What a daemon hears of pages, beside the truth of the synthetic web."""

import numpy as np

from freshet.storage.database import reading
from freshet.storage.entries import CLAIM_KINDS
from freshet.storage.tables import claims, hosts
from tests.integration.test_daemon import DAY_S, Stage


async def test_claims_are_those_that_the_web_makes_and_true(showcase_run: Stage) -> None:
    stage = showcase_run
    changed_at = {
        f"http://news.localhost{target}": page.changed_at
        for target, page in stage.web.sites["news"].documents()
    }
    async with reading(stage.db) as connection:
        said = await claims.load(connection)
        sources = await claims.sources(connection)
        signals = await hosts.load_signals(connection)
    rows = stage.rows(
        "SELECT id, url FROM page WHERE role = 'page' AND url LIKE 'http://news.localhost/%'"
    )
    urls = {page_id: str(url) for page_id, url in rows}
    kinds = [CLAIM_KINDS[code] for code in said.kind]
    heard = [
        (kind, urls[page_id], since, at)
        for kind, page_id, since, at in zip(
            kinds, said.page_id.tolist(), said.since.tolist(), said.received_at.tolist(),
            strict=True,
        )
        if kind != "last_modified" and page_id in urls
    ]  # fmt: skip
    assert {kind for kind, *_ in heard} == {"sitemap", "feed"}
    assert [(url, since) for _, url, since, at in heard] == [
        (url, float(int(changed_at[url](at)))) for _, url, since, at in heard
    ]
    assert np.all(np.diff(said.received_at) >= 0)
    assert any(source.moved for source in sources)
    assert sum(source.entries + source.moved for source in sources) == len(said)
    assert all(source.polls for source in sources if source.kind == "sitemap")
    # Its clock is ours, and it stamps every page with the time of the answer, or not.
    assert {each.skew_s for each in signals} == {0.0}
    assert any(each.dated > 0 for each in signals)


def test_the_usual_places_are_tried_once_in_ten_days(showcase_run: Stage) -> None:
    stage, places = showcase_run, ("http://docs.localhost/feed", "http://docs.localhost/rss.xml")
    tried = [(at, url) for at, url in stage.server.asked if url in places]
    assert sorted(url.rsplit("/", 1)[1] for _, url in tried) == ["feed", "rss.xml"]
    assert stage.rows(
        "SELECT DISTINCT last_kind, role FROM page WHERE url LIKE '%docs.localhost/rss.xml'"
    ) == [("skipped", "feed")]
    at, _ = tried[0]
    assert at < stage.web.start_at + 8 * DAY_S
