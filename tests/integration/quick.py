"""Crawls for tests: settings without pauses, and questions to the store."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from freshet.config.loading import load
from freshet.config.settings import Settings
from freshet.crawler.admission.site_lists import seeds_from_arguments
from freshet.crawler.extensions.lab.synthetic_web.web import SyntheticWeb
from freshet.crawler.run.crawl import CrawlOrder, Live
from freshet.crawler.run.wiring import Observer
from freshet.crawler.urls import canonical
from scripts.synthetic_server import WebServer
from tests.storage.small_store import rows

QUICK: Mapping[str, object] = {
    "politeness.delay_s": 0.0, "politeness.slow_factor": 0.0, "politeness.crawl_delay_cap_s": 0.01,
    "politeness.back_off_initial_s": 0.02, "politeness.back_off_factor": 1.5,
    "politeness.retry_after_cap_s": 0.05, "crawl.patience_s": 5.0, "change.probe": False,
    "network.allow_private_addresses": True,
}  # fmt: skip


def quick(**changes: object) -> Settings:
    """Settings without pauses; ``changes`` are dotted names with ``__``."""
    settings, _ = load(None, {**QUICK, **{k.replace("__", "."): v for k, v in changes.items()}})
    return settings


def unwatched(_live: Live) -> Observer:
    return lambda _batch: None


def order(
    db: Path, server: WebServer, names: Sequence[str], resume: bool | None = None
) -> CrawlOrder:
    return CrawlOrder(db, seeds_from_arguments([server.url(n) for n in names]).seeds, resume=resume)


def urls(db: Path, sql: str) -> set[str]:
    return {url for (url,) in rows(db, sql)}


def answered(db: Path) -> set[str]:
    return urls(
        db,
        "SELECT url FROM page WHERE role = 'page' AND alias_of IS NULL "
        "AND last_kind IN ('new', 'changed', 'unchanged')",
    )


def crawlable(web: SyntheticWeb, server: WebServer) -> set[str]:
    places = web.crawlable(server.clock.now())
    return {canonical(server.addresses.url(place)) for place in places}


def assert_consistent(db: Path) -> None:
    assert rows(db, "PRAGMA integrity_check") == [("ok",)]
    assert rows(db, "PRAGMA foreign_key_check") == []


def assert_counted(db: Path) -> None:
    """Every URL of a pattern is counted once, as read or as held back."""
    wrong = urls(
        db,
        "SELECT t.shape FROM trap AS t WHERE t.kind = 'trap: copies' AND ("
        "  t.refused <> (SELECT count(*) FROM page AS p WHERE p.host_id = t.host_id "
        "    AND p.pattern = t.shape AND p.held_back = t.kind) OR "
        "  t.admitted <> (SELECT count(*) FROM page AS p WHERE p.host_id = t.host_id "
        "    AND p.pattern = t.shape AND p.copy_of IS NOT NULL) OR "
        "  t.copies <> (SELECT count(*) FROM page AS p WHERE p.host_id = t.host_id "
        "    AND p.pattern = t.shape AND p.copy_of <> p.id))",
    )
    assert wrong == set()
    assert_consistent(db)
