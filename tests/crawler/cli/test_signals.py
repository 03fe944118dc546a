"""`freshet signals` judges sources by the state that a daemon would have."""

import asyncio
from pathlib import Path

import pytest

from freshet.config.loading import load
from tests.console import as_json
from tests.storage.small_store import HOST, small_store

DAY_S = 86_400.0


@pytest.mark.parametrize(
    ("budget", "policy"),
    [
        ("24/day", "site_clock"),
        ("24/day", "lambda_crawl"),
        ("24/day", "nutch_adaptive"),
        (None, None),
    ],
)
def test_a_source_is_judged_by_the_policy_of_the_last_daemon(
    tmp_path: Path, budget: str | None, policy: str | None
) -> None:
    store = asyncio.run(small_store(tmp_path / "crawl.db"))
    said = {"daemon.budget": budget, "daemon.policy": policy}
    settings = load(None, said)[0].model_dump_json() if budget else "{}"
    store.run(0.0, settings=settings)
    store.host(queue="one.example")
    page = store.page("/a", found_at=DAY_S, checked_at=9 * DAY_S, last_kind="changed")
    for day in range(1, 10):
        store.observe(page, day * DAY_S, "changed" if day > 1 else "new")
    source = store.insert("claim_source", kind="sitemap", host_id=1, url=f"{HOST}/sitemap.xml")
    for day in range(1, 9):
        at = (day + 0.5) * DAY_S
        store.insert(
            "claim", source_id=source, page_id=page, since=at, until=at, received_at=at + 60
        )
    told = as_json("signals", "--db", store.path)
    assert told["policy"] == policy
    (judged,) = told["sources"]
    if policy in {"site_clock", "lambda_crawl"}:
        assert judged["reputation"]["claims"] == 8
        assert judged["reputation"]["precision"] == 1.0
    else:
        assert judged["reputation"] is None
