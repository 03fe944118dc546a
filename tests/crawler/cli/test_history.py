"""`freshet history URL` lists what every visit found."""

import asyncio
from functools import partial
from pathlib import Path

import pytest

from freshet.crawler.frontier.clock import iso
from tests.console import as_json, freshet, shown
from tests.storage.small_store import HOST, SmallStore, small_store
from tests.storage.versioned_store import version, versioned_store

history = partial(freshet, "history", "--db")


@pytest.fixture
def store(tmp_path: Path, now: float) -> SmallStore:
    """A page that was new, changed and failed, and an alias of it."""
    store = asyncio.run(small_store(tmp_path / "crawl.db"))
    store.run(now - 90_000)
    store.host()
    page = store.page("/")
    store.observe(page, now - 90_000, "new", status=200, size_bytes=2_000)
    store.observe(
        page, now - 7_230, "changed", rung="blocks", status=200, resemblance=0.875,
        resemblance_se=0.03, blocks_added=2, blocks_removed=1, size_bytes=2_100,
    )  # fmt: skip
    store.observe(page, now - 63, "failed", reason="dns", detail="no answer from [8.8.8.8]")
    alias = store.page(
        "/old", alias_of=page, alias_kind="permanent", alias_at=now - 90_001,
        last_kind="redirected",
    )  # fmt: skip
    store.observe(alias, now - 90_001, "redirected", status=301, reason="permanent")
    return store


def test_observations_come_newest_first_with_what_decided_them(store: SmallStore) -> None:
    failed, changed, new = shown("history", "--db", store.path, f"{HOST}/").splitlines()[-3:]
    assert "(1 min ago)" in failed
    assert failed.endswith("dns: no answer from [8.8.8.8]")
    assert changed.split("ago)")[1].split() == [
        "changed", "blocks", "200", "0.88", "±", "0.03", "+2", "−1", "2.1", "kB",
    ]  # fmt: skip
    assert new.split("ago)")[1].split() == ["new", "200", "2.0", "kB"]


def test_json_is_one_object_with_times_in_iso_8601(store: SmallStore, now: float) -> None:
    told = as_json("history", "--db", store.path, f"{HOST}/", "--limit", "1")
    assert (told["url"], told["total"], told["alias"]) == (f"{HOST}/", 3, None)
    assert [(o["at"], o["kind"], o["reason"]) for o in told["observations"]] == [
        (iso(now - 63), "failed", "dns")
    ]


def test_a_limit_says_what_it_leaves_out(store: SmallStore) -> None:
    shown = history(store.path, f"{HOST}/", "--limit", "1").stdout
    assert "… and 2 older; --limit shows more" in shown
    assert history(store.path, f"{HOST}/", "--limit", "0").exit_code == 2


def test_an_alias_names_its_page_and_shows_that_ones_history_too(store: SmallStore) -> None:
    result = history(store.path, f"{HOST}/old")
    told = as_json("history", "--db", store.path, f"{HOST}/old")
    assert "It is an alias (permanent" in result.stdout
    assert "redirected" in result.stdout
    assert "+2 −1" in result.stdout
    assert told["alias"]["url"] == told["final_page"]["url"] == f"{HOST}/"
    assert len(told["final_page"]["observations"]) == 3


@pytest.mark.parametrize("text", ["one.example", "HTTP://ONE.example:80/?utm_source=mail#top"])
def test_a_url_is_found_without_its_scheme_and_in_any_spelling(
    store: SmallStore, text: str
) -> None:
    assert as_json("history", "--db", store.path, text)["url"] == f"{HOST}/"


def test_https_is_tried_before_http(store: SmallStore) -> None:
    store.page("https://one.example/", host=store.host("https://one.example"))
    assert as_json("history", "--db", store.path, "one.example")["url"] == ("https://one.example/")


def test_an_unknown_url_is_one_line_with_the_nearest_and_exit_code_1(store: SmallStore) -> None:
    result = history(store.path, f"{HOST}/odd")
    assert result.exit_code == 1
    assert result.stdout == ""
    assert result.stderr == (
        f"freshet: {HOST}/odd is not known; the nearest on that host: {HOST}/old, {HOST}/\n"
    )


def test_a_page_that_waits_for_its_first_visit_says_so(store: SmallStore) -> None:
    store.page("/soon")
    assert history(store.path, f"{HOST}/soon").stdout == f"{HOST}/soon: never visited\n"


# -- numbers -----------------------------------------------------------------

OFFER = '<script type="application/ld+json">{{"@type": "Offer", "price": "{}"}}</script>'


@pytest.fixture
def prices(tmp_path: Path, now: float) -> SmallStore:
    """A page with a rating and a price, which its data states in some versions."""
    store = versioned_store(tmp_path / "crawl.db", now - 90_000)
    page = store.page("/")
    for n, (price, more, keep) in enumerate(
        ((30, "", True), (20, OFFER.format("19.5"), True), (10, "", False), (8, "", True))
    ):
        shown = f"<p id=stars>Rated 4,5 of 5</p><p id=price>Only {price} EUR today</p>{more}"
        body = f"<main><h1>A thing</h1>{shown}</main>".encode()
        version(store, page, now - 9_000 + 60 * n, body, keep=keep)
    version(store, page, now - 60, b"<main><p>It is sold out.</p></main>")
    alias = store.page("/old", alias_of=page, alias_kind="permanent", alias_at=now)
    store.observe(alias, now, "redirected", status=301, reason="permanent")
    return store


def numbers(store: SmallStore, *words: object, path: str = "/") -> list[tuple[object, ...]]:
    told = as_json("history", "--db", store.path, f"{HOST}{path}", "--numbers", *words)
    return [(it["version"], it["value"], it["source"]) for it in told["numbers"]]


def test_the_price_of_each_kept_version_is_that_of_its_data_first(prices: SmallStore) -> None:
    found = [(1, 30.0, "shown"), (2, 19.5, "stated"), (4, 8.0, "shown"), (5, None, "")]
    assert numbers(prices) == found
    assert numbers(prices, path="/old") == found
    lines = shown("history", "--db", prices.path, f"{HOST}/", "--numbers").splitlines()[-4:]
    assert lines[1].split()[-2:] == ["19.5", "stated"]


def test_a_number_is_read_where_a_rule_would_read_it(prices: SmallStore) -> None:
    stars = [(1, 4.5, "text"), (2, 4.5, "text"), (4, 4.5, "text"), (5, None, "")]
    assert numbers(prices, "--within", "#stars") == stars
    told = [value for _, value, _ in numbers(prices, "--number", "only * eur")]
    assert told == [30.0, 20.0, 8.0, None]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--numbers", "--within", "p["), "within"),
        (("--numbers", "--number", "* to *"), "one *"),
        (("--within", "#price"), "need --numbers"),
    ],
)
def test_what_names_no_number_is_refused_in_a_line(
    prices: SmallStore, words: tuple[str, ...], said: str
) -> None:
    result = history(prices.path, f"{HOST}/", *words)
    (line,) = result.stderr.splitlines()
    assert (result.exit_code != 0, said in line) == (True, True), line
