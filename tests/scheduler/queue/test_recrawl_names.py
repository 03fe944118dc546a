"""An origin that has only redirected to another one gets no visits for itself."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from random import Random

import pytest

from freshet.scheduler.queue.recrawl import RecrawlAgenda
from freshet.storage.database import reading
from freshet.storage.entries import AliasKind, Kind
from freshet.storage.records import Acknowledged, Alias, DueUrl, Observation, Visit
from tests.scheduler.queue.test_recrawl_moves import Told, alike
from tests.storage.small_store import SmallStore

DAY_S = 86_400.0
PAGE, NAME, OTHER = 1, 2, 3


@dataclass(frozen=True)
class Case:
    """The page at ``target``; ``name`` redirected to it on day 1, and ``other`` is on its host."""

    name: str = "http://site.test/"
    target: str = "https://site.test/"
    kind: AliasKind = "permanent"
    other: str = ""
    target_kind: Kind = "new"
    had: bool = False
    #: Of ``other``.
    at_other: Kind = "redirected"


NAMES = {
    "http to https, 301 or 308": Case(),
    "http to https, 302 or 307": Case(kind="temporary"),
    "www to bare": Case("https://www.site.test/"),
    "www to bare, for now": Case("https://www.site.test/", kind="temporary"),
    "bare to www": Case(target="http://www.site.test/"),
    "bare http to www https": Case(target="https://www.site.test/", kind="temporary"),
    "another port": Case("http://site.test:8080/"),
    "another port, for now": Case("http://site.test:8080/", kind="temporary"),
    "an address and its port": Case("http://127.0.0.1:81/", "http://127.0.0.1:82/"),
    "a foreign host, for good": Case("http://old.test/"),
    "a page below": Case("http://site.test/a/b?c=d", "https://site.test/a/b?c=d"),
    "two pages": Case(other="http://site.test/b"),
    "another page was never visited": Case(other="http://site.test/b", at_other="new"),
}
PAGES = {
    "a foreign host, for now": Case("http://old.test/", kind="temporary"),
    "a meta refresh": Case(kind="refresh"),
    "the same host": Case("https://site.test/old"),
    "had content once": Case(had=True),
    "another page answers": Case(other="http://site.test/b", at_other="unchanged"),
    "another page is gone": Case(other="http://site.test/b", at_other="gone"),
    "the target is gone": Case(target_kind="gone"),
}


def store_of(case: Case, site: SmallStore) -> None:
    origins = list(dict.fromkeys("/".join(url.split("/")[:3]) for url in (case.target, case.name)))
    hosts = {origin: site.host(origin) for origin in origins}

    def page(url: str, **columns: object) -> None:
        site.page(url, host=hosts["/".join(url.split("/")[:3])], **columns)

    seen = {"last_at": DAY_S, "last_kind": case.target_kind}
    page(case.target, checked_at=DAY_S, body_digest=b"d" * 16, **seen)
    site.observe(PAGE, DAY_S, case.target_kind)
    away = {"alias_of": PAGE, "alias_kind": case.kind, "alias_at": DAY_S}
    led = {"last_at": DAY_S, "last_kind": "redirected"}
    page(case.name, checked_at=0.5 * DAY_S if case.had else None, **away, **led)
    site.observe(NAME, DAY_S, "redirected")
    if not case.other:
        return
    match case.at_other:
        case "redirected":
            page(case.other, **away, **led)
        case "new":
            page(case.other)
        case "gone":
            page(case.other, last_at=DAY_S, last_kind="gone")
        case _:
            page(case.other, checked_at=DAY_S, last_at=DAY_S, last_kind="unchanged")


@dataclass(slots=True)
class Life:
    """An agenda from day 31 on whose hosts are always ready; ``asked`` are the pages it took."""

    agenda: RecrawlAgenda
    target: str
    kind: AliasKind
    day: float = 31.0

    async def asked(self, years: int = 3) -> set[int]:
        """Return the pages that are requested in so many years; they stay as they are."""
        found = set[int]()
        for _ in range(12 * years):
            self.day += 30.5
            now = self.day * DAY_S
            await self.agenda.replenish(now)
            while (due := self.agenda.next(self.agenda.learner.hosts.ids, now)) is not None:
                found.add(due.page_id)
                await self.settle(due, "unchanged" if due.page_id == PAGE else "redirected")
                await self.agenda.replenish(now)
        return found

    async def settle(self, due: DueUrl, kind: Kind, alias: Alias | None = None) -> None:
        it = Observation(due.page_id, self.day * DAY_S, kind)
        if kind == "redirected" and alias is None:
            alias = Alias(self.target, self.kind)
        self.agenda.done(Acknowledged(Visit(due, it, alias=alias)))


@asynccontextmanager
async def life(case: Case, site: SmallStore) -> AsyncIterator[Life]:
    store_of(case, site)
    async with reading(site.path) as reader:
        agenda = RecrawlAgenda(reader, Told(), alike, Random(1))
        await agenda.open()
        yield Life(agenda, target=case.target, kind=case.kind)
        await agenda.close()


@pytest.mark.parametrize("case", NAMES.values(), ids=NAMES)
async def test_an_origin_that_only_redirects_gets_no_visits(case: Case, site: SmallStore) -> None:
    async with life(case, site) as it:
        found = await it.asked()
    assert PAGE in found
    assert NAME not in found


@pytest.mark.parametrize("case", PAGES.values(), ids=PAGES)
async def test_what_may_be_a_page_again_is_asked_now_and_then(case: Case, site: SmallStore) -> None:
    async with life(case, site) as it:
        assert NAME in await it.asked()


def due(page_id: int, url: str) -> DueUrl:
    return DueUrl(page_id, url, url, 1, 0.0)


async def test_a_redirect_is_known_from_its_visit_on(site: SmallStore) -> None:
    """And through another name; once the target is gone, the name is asked again."""
    case = Case("http://site.test/", "https://site.test/", "temporary")
    store_of(case, site)
    site.execute("UPDATE page SET alias_of = NULL, alias_kind = NULL, last_kind = NULL, "
                 "last_at = NULL, checked_at = NULL WHERE id = ?", NAME)  # fmt: skip
    third = site.host("http://www.site.test")
    site.page("http://www.site.test/", host=third)
    async with reading(site.path) as reader:
        agenda = RecrawlAgenda(reader, Told(), alike, Random(1))
        await agenda.open()
        it = Life(agenda, target=case.target, kind=case.kind)
        await it.settle(due(OTHER, ""), "redirected", Alias("http://site.test/", "permanent"))
        await it.settle(due(NAME, ""), "redirected")
        found = await it.asked()
        assert found == {PAGE}
        await it.settle(due(PAGE, ""), "gone")
        assert NAME in await it.asked()
        await agenda.close()


async def test_where_the_target_leads_back_the_name_is_asked_at_once(site: SmallStore) -> None:
    case = Case()
    async with life(case, site) as it:
        await it.settle(due(PAGE, case.target), "redirected", Alias(case.name, "permanent"))
        now = it.day * DAY_S
        await it.agenda.replenish(now)
        taken = it.agenda.next(it.agenda.learner.hosts.ids, now)
        assert taken is not None
        assert taken.page_id == NAME
