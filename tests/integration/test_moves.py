"""Pages that move while a daemon keeps them: their identity moves along."""

from itertools import pairwise
from pathlib import Path

import pytest

from freshet.crawler.frontier.clock import VirtualClock
from freshet.crawler.run.forecast import PageForecast, forecast_page
from freshet.storage.database import reading
from tests.integration.eventful import ORIGIN, QUIET, Eventful, MovingSite, busy, moving

COMPARED = {"changed", "unchanged"}


async def forecast(run: Eventful, path: str) -> PageForecast:
    async with reading(run.db) as connection:
        found = await forecast_page(connection, run.page_id(path), run.site.clock.now())
    assert found is not None
    return found


def compared(run: Eventful, *paths: str) -> int:
    return sum(kind in COMPARED for path in paths for kind in run.kinds(path))


def led(run: Eventful, path: str, to: str) -> bool:
    found = f"SELECT 1 FROM alias WHERE url = '{ORIGIN}{path}' AND page_url = '{ORIGIN}{to}'"
    return bool(run.rows(found))


async def test_a_page_that_moves_takes_its_history_and_its_place_along(
    eventful_run: Eventful,
) -> None:
    run, site = eventful_run, eventful_run.site
    assert led(run, "/old", "/new")
    assert run.kinds("/new")[0] in COMPARED
    moved_at = site.days("/new")[0]
    assert moved_at - site.days("/old")[-1] < 3.5
    # It is visited as often as before, at once: what was learnt holds.
    before = [day for day in site.days("/old") if 10 < day < 20]
    after = [day for day in site.days("/new") if moved_at < day < moved_at + 10]
    assert len(before) >= 4
    assert len(after) >= 0.7 * len(before)
    assert len(after) > sum(moved_at < day < moved_at + 10 for day in site.days("/quiet-1"))
    found, old = await forecast(run, "/new"), await forecast(run, "/old")
    assert found.rate.compared == compared(run, "/old", "/new")
    assert found.rate.per_day == pytest.approx(0.5, rel=0.5)
    assert not old.captured
    assert old.not_before is not None


async def test_a_temporary_redirect_moves_nothing(eventful_run: Eventful) -> None:
    run = eventful_run
    assert run.kinds("/for-now")[0] == "new"
    (wait,) = (b - a for a, b in pairwise(d for d in run.site.days("/lent") if d >= 10.0))
    assert 29.99 < wait < 33
    assert (await forecast(run, "/for-now")).rate.compared == compared(run, "/for-now")


async def test_pages_that_are_sent_to_the_front_page_leave_its_history_alone(
    eventful_run: Eventful,
) -> None:
    assert led(eventful_run, "/closed", "/")
    found = await forecast(eventful_run, "/")
    assert found.rate.compared == compared(eventful_run, "/")
    assert found.rate.per_day < 0.1


def test_a_page_that_moves_back_within_the_run_is_found_again(eventful_run: Eventful) -> None:
    site = eventful_run.site
    turned = next(day for day in site.days("/back") if day >= 30)
    assert turned < 35
    again = [day for day in site.days("/there") if day >= turned]
    assert again[0] - turned < 1.0
    assert len(again) >= 4
    assert "failed" not in eventful_run.kinds("/back") + eventful_run.kinds("/there")


def test_a_loop_of_redirects_is_a_failure_and_not_asked_for_all_day(eventful_run: Eventful) -> None:
    run = eventful_run
    reasons = run.rows("SELECT DISTINCT reason FROM finding WHERE reason NOTNULL")
    assert ("redirect_loop",) in reasons
    assert len(run.site.days("/a")) + len(run.site.days("/b")) < 25


async def test_a_page_that_was_linked_at_its_new_url_first_has_its_history_by_the_next_day(
    eventful_run: Eventful,
) -> None:
    kinds = eventful_run.kinds("/late")
    assert kinds[0] == "gone"
    assert next(kind for kind in kinds if kind != "gone") in COMPARED
    assert (await forecast(eventful_run, "/late")).rate.compared > compared(eventful_run, "/late")


def test_another_spelling_of_a_page_is_asked_for_at_once_and_not_for_ever(
    eventful_run: Eventful,
) -> None:
    site = eventful_run.site
    (first, *_) = site.days("/spelled?utm_source=x")
    assert site.days("/spelled")[0] - first < 1.0
    a, b = "/pong?utm_source=a", "/pong?utm_source=b"
    assert 2 <= len(site.days(a) + site.days(b)) < 25


@pytest.mark.long
async def test_the_old_url_is_looked_at_ever_more_rarely_also_after_a_restart(
    tmp_path: Path,
) -> None:
    linked = {"/old": moving("moved", 5.0, "/new"), **QUIET}
    site = MovingSite(VirtualClock(1_800_000_000.0), linked, {"/new": busy("moved", 5.0)})
    for _ in range(4):
        await site.keep(tmp_path / "crawl.db", 65.0, budget=4.0)
    waits = [b - a for a, b in pairwise(day for day in site.days("/old") if day >= 5.0)]
    # It is asked only where nothing is worth more: here nearly all is quiet.
    assert len(waits) >= 2
    assert waits == sorted(waits)
    assert waits[0] >= 30
