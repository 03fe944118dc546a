"""`freshet explain URL` prints everything that is known, and what comes next."""

import asyncio
import json
from functools import partial
from pathlib import Path

import pytest

from freshet.config.loading import load
from freshet.crawler.frontier.clock import iso
from tests.console import as_json, freshet, shown
from tests.storage.small_store import HOST, SmallStore, small_store

RULE = {"match": "/b*", "importance": 2.5}
explain = partial(freshet, "explain", "--db")


@pytest.fixture(autouse=True)
def nobodys_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))


@pytest.fixture
def store(tmp_path: Path, now: float) -> SmallStore:
    """A page with everything, on a parked host whose robots.txt is an old copy."""
    store = asyncio.run(small_store(tmp_path / "crawl.db"))
    store.run(now - 9_000)
    store.host(
        queue="one.example", last_exchange_at=now - 65, delay_s=2.5, failures=3,
        parked_until=now + 200, parked_reason="http_503",
    )  # fmt: skip
    store.insert(
        "robots", host_id=1, standing="parsed", fetched_at=now - 90_000, stale_since=now - 4_000,
        reason="http_500", body=b"User-agent: *\nCrawl-delay: 2.5\nDisallow: /private/\n",
    )  # fmt: skip
    version = store.insert(
        "version", page_id=1, at=now - 9_000, body_digest=b"d" * 16,
        content_type="text/html", encoding="utf-8",
    )  # fmt: skip
    page = store.page(
        "/a", depth=1, found_at=now - 9_000, version_id=version, checked_at=now - 8_000,
        etag='"v1"', last_modified="Thu, 13 Nov 2025 03:05:12 GMT", title="A \x1b[31mtitle",
        language="en", noindex=1, noarchive=1, wish_s=600.0,
    )  # fmt: skip
    source = store.insert("claim_source", kind="sitemap", host_id=1, url=f"{HOST}/sitemap.xml")
    store.insert(
        "claim", source_id=source, page_id=page, since=now - 90_000, until=now - 3_600,
        received_at=now - 8_500,
    )  # fmt: skip
    store.observe(page, now - 9_000, "new", status=200, size_bytes=4_321, version_id=version)
    store.observe(page, now - 8_000, "unchanged", rung="304", status=304, version_id=version)
    store.observe(page, now - 65, "failed", status=503, reason="http_503")
    store.link(store.page("/"), page, now - 9_000, anchor="Read [this]")
    store.page("/old-a", alias_of=page, alias_kind="temporary", alias_at=now - 9_000)
    store.due(page, now + 200, attempt=1)
    return store


def test_every_fact_is_printed_under_its_name(store: SmallStore) -> None:
    printed = shown("explain", "--db", store.path, f"{HOST}/a")
    lines = [" ".join(line.split()) for line in printed.splitlines()]
    text = "\n".join(lines)
    assert lines[0] == f"{HOST}/a"
    assert "another try is due at" in lines[1]
    assert "its host is paused until" in lines[1]
    for fact in (
        f"requested as {HOST}/a", "role page", "depth 1", "failed tries 1", 'ETag "v1"',
        "Last-Modified Thu, 13 Nov 2025 03:05:12 GMT", f"aliases {HOST}/old-a (temporary)",
        "verdict allowed", "group User-agent: *", "Crawl-delay 2.5 s", "host queue one.example",
        "delay 2.5 s", "failures in a row 3", "size 4.3 kB, body not kept", "type text/html, utf-8",
        "language en", "meta robots noindex, noarchive",
    ):  # fmt: skip
        assert fact in lines
    assert f"link from {HOST}/ “Read [this]”" in text
    assert "an older copy; the file is unreachable since" in text
    assert "(in 3 min): http_503" in text
    assert text.count(" ago) ") >= 3


def test_the_change_rate_of_a_crawled_page_is_that_of_its_own_visits(store: SmallStore) -> None:
    said = explain(store.path, f"{HOST}/a").stdout.replace("\n", " ")
    assert "Estimated from the visits to this page only." in said
    told = as_json("explain", "--db", store.path, f"{HOST}/a")
    assert told["prospect"] is None
    assert told["change_rate"]["compared"] == 1
    assert told["change_rate"]["lower"] < told["change_rate"]["per_day"]
    unknown = as_json("explain", "--db", store.path, f"{HOST}/nowhere")
    assert unknown["change_rate"] is None


def test_titles_cannot_steer_the_terminal(store: SmallStore) -> None:
    assert "\x1b" not in explain(store.path, f"{HOST}/a").stdout


def test_an_alias_names_its_page(store: SmallStore) -> None:
    stdout = explain(store.path, f"{HOST}/old-a").stdout
    assert f"{HOST}/a (temporary" in stdout


def test_a_forbidden_url_names_the_rule_and_its_line(store: SmallStore) -> None:
    stdout = explain(store.path, f"{HOST}/private/x").stdout
    assert "Disallow: /private/ (line 3)" in stdout


@pytest.mark.parametrize(
    ("standing", "words"),
    [("allow_all", "missing: everything"), ("unreachable", "unreachable: everything is forbidden")],
)
def test_a_robots_that_was_not_read_says_what_that_means(
    store: SmallStore, now: float, standing: str, words: str
) -> None:
    host = store.host("http://two.example")
    store.insert(
        "robots", host_id=host, standing=standing, fetched_at=now - 9, reason="dns", body=b""
    )
    assert words in explain(store.path, "two.example").stdout


def test_an_unknown_url_is_no_failure(store: SmallStore) -> None:
    result = explain(store.path, f"{HOST}/b")
    assert result.exit_code == 0
    assert "no seed, link, sitemap or redirect leads to it" in result.stdout
    assert f"{HOST}/a" in result.stdout


def test_json_is_one_object_on_one_line(store: SmallStore, now: float) -> None:
    told = as_json("explain", "--db", store.path, "one.example/a")
    assert told["known"]["url"] == told["url"] == f"{HOST}/a"
    assert told["found"]["how"] == "link"
    assert told["robots"]["verdict"]["allowed"] is True
    assert told["host"]["parked_until"] == iso(now + 200)
    assert told["place"]["attempt"] == 1
    assert [o["kind"] for o in told["observations"]] == ["failed", "unchanged", "new"]


def test_the_product_of_a_configuration_file_is_the_robots_agent(
    store: SmallStore, tmp_path: Path
) -> None:
    host = store.host("http://two.example")
    store.insert(
        "robots", host_id=host, standing="parsed", fetched_at=0.0,
        body=b"User-agent: Mine\nDisallow: /\n",
    )  # fmt: skip
    file = tmp_path / "mine.toml"
    file.write_text('crawl.product = "Mine"\n', "utf-8")
    asked = ("http://two.example/", "--json")
    told = json.loads(explain(store.path, *asked).stdout)
    assert told["robots"]["verdict"]["allowed"] is True
    told = json.loads(explain(store.path, *asked, "--config", str(file)).stdout)
    assert told["robots"]["verdict"] == {
        "allowed": False, "rule": "Disallow: /", "line": 2, "agent": "mine",
    }  # fmt: skip


def test_a_foreign_file_is_one_line_and_exit_code_1(tmp_path: Path) -> None:
    path = tmp_path / "notes.db"
    path.write_text("just notes\n" * 20, "utf-8")
    result = freshet("explain", "--db", path, "one.example")
    assert result.exit_code == 1
    assert result.stderr.count("\n") == 1
    assert "not a Freshet store" in result.stderr


def test_the_importance_of_a_page_is_told_with_its_origin(tmp_path: Path, now: float) -> None:
    store = asyncio.run(small_store(tmp_path / "kept.db"))
    settings, _ = load(
        None, {"daemon.budget": "9/day", "daemon.importance": "depth", "sites": [RULE]}
    )
    store.run(now - 9_000, settings=settings.model_dump_json())
    store.host()
    for path, depth in (("/", 0), ("/a", 1), ("/b", 1)):
        page = store.page(path, depth=depth, found_at=now - 9_000, checked_at=now - 1_000)
        store.observe(page, now - 9_000, "new")
        store.observe(page, now - 1_000, "unchanged")
    store.insert("seed", text="one.example", url=f"{HOST}/", importance=6.0, added_at=now)
    store.insert(
        "estimate", page_id=1, at=now - 60, visited_at=now - 1_000, rate=0.1, low=0.01, high=1.0,
        hazard=0.01, importance=9.0, clocked=0.0, urgent=0, reveals=0.0,
    )  # fmt: skip
    told = json.loads(explain(store.path, f"{HOST}/", "--json").stdout)["prospect"]["importance"]
    assert told == {
        "value": 9.0, "origin": "site list", "source": "one.example", "site": 6.0,
        "divided_by": "depth", "share": 1.5, "near_duplicates": 0, "is_whole": False,
        "valued": None,
    }  # fmt: skip
    said = explain(store.path, f"{HOST}/").stdout.replace("\n", " ")
    assert "Its importance is 9 (site list “one.example”: 6, by depth 1.5 times that)." in said
    said = explain(store.path, f"{HOST}/b").stdout.replace("\n", " ")
    assert "Its importance is 2.5 (set in the file for “/b*”)." in said


def test_what_others_say_is_told_apart_from_what_was_observed(store: SmallStore) -> None:
    result = explain(store.path, f"{HOST}/a")
    assert "reuse for 10 min" in result.stdout
    said = next(line for line in result.stdout.splitlines() if "sitemap.xml" in line)
    assert said.startswith(f"sitemap {HOST}/sitemap.xml")
    assert "1 h ago" in said
