"""At which URL each line of the site list is crawled."""

import pytest

from freshet.crawler.admission.admit import Admission, Scope, Seeding
from freshet.crawler.admission.traps import TrapLimits
from freshet.storage.records import FetchResult, StoredSeed

NOON = 1_800_000_000.0
ROBOTS = "https://a.example/robots.txt"


def admission() -> Admission:
    return Admission(Scope("host"), TrapLimits())


def with_scheme(seed_id: int, url: str, root_url: str | None = None) -> StoredSeed:
    return StoredSeed(url, url, None, seed_id=seed_id, root_url=root_url)


def bare(seed_id: int, host: str, root_url: str | None = None) -> StoredSeed:
    https, http = f"https://{host}", f"http://{host}"
    return StoredSeed(host, https, http, seed_id=seed_id, root_url=root_url)


def failed(reason: str, url: str = ROBOTS) -> FetchResult:
    return FetchResult(url, "failed", NOON, 0.1, reason=reason)


def answered(status: int) -> FetchResult:
    return FetchResult(ROBOTS, "gone", NOON, 0.1, status=status, reason=f"http_{status}")


def test_a_line_with_a_scheme_needs_no_probe_and_sets_the_scope() -> None:
    judge = admission()
    seeding = Seeding([with_scheme(1, "http://a.example/x?utm_source=y")], judge)
    (settled,) = seeding.decided(NOON)
    assert settled.seeds == ((1, "http://a.example/x"),)
    assert (settled.targets.urls, settled.targets.column("depths")) == (["http://a.example/x"], [0])
    assert settled.targets.column("fetch_urls") == ["http://a.example/x?utm_source=y"]
    assert judge.scope.contains("http://a.example/anything")
    assert seeding.open_origins() == []


def test_a_seed_that_has_moved_is_crawled_where_its_scope_stands() -> None:
    judge = admission()
    seeds = [with_scheme(1, "http://a.example/", "https://b.example/"), bare(2, "c.example")]
    (settled,) = Seeding(seeds, judge).decided(NOON)
    assert settled.seeds == ((1, "https://b.example/"),)
    assert not judge.scope.contains("http://a.example/")


def test_a_decided_line_without_a_scheme_is_not_probed_again() -> None:
    seeding = Seeding([bare(1, "a.example", "http://a.example/")], admission())
    assert seeding.open_origins() == []
    (settled,) = seeding.decided(NOON)
    assert settled.seeds == ((1, "http://a.example/"),)


@pytest.mark.parametrize("status", [200, 403, 404, 503])
def test_any_answer_over_https_decides_for_https(status: int) -> None:
    judge = admission()
    seeding = Seeding([bare(1, "a.example"), bare(2, "a.example/x")], judge)
    assert seeding.open_origins() == ["https://a.example"]
    (settled,) = seeding.settle("https://a.example", answered(status), NOON)
    assert settled.seeds == ((1, "https://a.example/"), (2, "https://a.example/x"))
    assert settled.targets.urls == ["https://a.example/", "https://a.example/x"]
    assert seeding.open_origins() == []
    assert judge.scope.contains("https://a.example/")


#: A redirect that leads to a dead host was an answer over https.
DEAD = failed("connect", "http://dead.example/robots.txt")


@pytest.mark.parametrize(
    ("scheme", "results"),
    [("http", list(map(failed, ("connect", "timeout_connect", "not_tls")))),
     ("https",
      [DEAD, *map(failed, ("tls", "dns", "no_such_host", "timeout_headers", "cut_short"))])],
)  # fmt: skip
def test_http_is_tried_where_nobody_speaks_https_and_other_failures_are_results(
    scheme: str, results: list[FetchResult]
) -> None:
    for result in results:
        seeding = Seeding([bare(1, "a.example")], admission())
        (settled,) = seeding.settle("https://a.example", result, NOON)
        assert settled.seeds == ((1, f"{scheme}://a.example/"),)


def test_an_origin_that_no_seed_waits_for_settles_nothing() -> None:
    seeding = Seeding([bare(1, "a.example")], admission())
    assert seeding.settle("https://b.example", answered(200), NOON) == []
    seeding.settle("https://a.example", answered(200), NOON)
    assert seeding.settle("https://a.example", answered(200), NOON) == []
