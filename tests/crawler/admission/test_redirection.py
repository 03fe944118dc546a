"""A redirect is a discovery: what the store learns from one."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from freshet.crawler.admission.admit import Admission, AdmissionRules, Redirection, Scope, ScopeKind
from freshet.crawler.admission.traps import TrapLimits
from freshet.storage.records import Alias, DueUrl, FetchResult, Visit
from freshet.storage.words import AliasKind, Kind, Outcome, Role

SITE = "https://a.example"
NOON = 1_800_000_000.0
DUE = DueUrl(7, f"{SITE}/old", f"{SITE}/old", host_id=1, due_at=0.0, depth=3)


class Judge:
    """A redirection with its scope; ``aliases`` are what the store knows."""

    def __init__(self, *roots: str) -> None:
        self.scope = Scope(ScopeKind.HOST, roots or [f"{SITE}/"])
        self.aliases: dict[str, int] = {}
        admission = Admission(self.scope, AdmissionRules(), TrapLimits())
        self._redirection = Redirection(admission, self._alias_target, max_redirects=10)

    async def visit(
        self, location: str, due: DueUrl = DUE, kind: AliasKind = AliasKind.PERMANENT
    ) -> Visit:
        result = FetchResult(due.fetch_url, Outcome.REDIRECTED, NOON, 0.2, 301, location=location)
        return await self._redirection.visit(due, result, location, kind, NOON)

    async def _alias_target(self, url: str) -> int | None:
        await asyncio.sleep(0)
        return self.aliases.get(url)


@pytest.mark.parametrize("kind", list(AliasKind))
async def test_the_target_is_a_due_url_of_its_own_and_the_url_its_alias(kind: AliasKind) -> None:
    visit = await Judge().visit(f"{SITE}/new?utm_source=x#part", kind=kind)
    assert visit.alias == Alias(f"{SITE}/new", kind)
    assert visit.observation.kind is Kind.REDIRECTED
    assert (visit.observation.reason, visit.observation.detail) == (kind, f"{SITE}/new")
    assert visit.targets is not None
    assert visit.targets.urls == [f"{SITE}/new"]
    assert visit.targets.depths == [3]
    assert visit.targets.redirects == [1]
    assert visit.retry_at is None


async def test_a_target_out_of_scope_is_recorded_as_an_offsite_link() -> None:
    visit = await Judge().visit("https://b.example/")
    assert visit.observation.reason == "out_of_scope"
    assert visit.links is not None
    assert (visit.links.urls, visit.offsite) == (("https://b.example/",), frozenset({0}))
    assert (visit.targets, visit.alias) == (None, None)


async def test_of_two_that_lead_to_one_another_the_second_to_answer_closes_the_circle() -> None:
    judge, back = Judge(), DueUrl(8, f"{SITE}/new", f"{SITE}/new", host_id=1, due_at=0.0)
    there, again = await asyncio.gather(
        judge.visit(f"{SITE}/new"), judge.visit(f"{SITE}/old", due=back)
    )
    assert there.observation.kind is Kind.REDIRECTED
    assert again.observation.reason == "redirect_loop"


async def test_a_chain_is_cut_after_ten_hops() -> None:
    assert (await Judge().visit(f"{SITE}/new", replace(DUE, redirects=9))).targets is not None
    visit = await Judge().visit(f"{SITE}/new", replace(DUE, redirects=10))
    assert (visit.observation.kind, visit.observation.reason) == (Kind.FAILED, "too_many_redirects")
    assert (visit.targets, visit.alias, visit.retry_at) == (None, None, None)


async def test_a_target_that_is_another_name_of_this_page_is_a_loop() -> None:
    judge = Judge()
    judge.aliases[f"{SITE}/new"] = DUE.page_id
    visit = await judge.visit(f"{SITE}/new")
    assert (visit.observation.kind, visit.observation.reason) == (Kind.FAILED, "redirect_loop")
    assert (visit.targets, visit.alias) == (None, None)


async def test_two_urls_may_lead_to_one_page() -> None:
    judge = Judge()
    judge.aliases[f"{SITE}/new"] = 99
    assert (await judge.visit(f"{SITE}/new")).alias == Alias(f"{SITE}/new", AliasKind.PERMANENT)


async def test_a_location_that_is_no_url_is_a_recorded_failure() -> None:
    visit = await Judge().visit("https://:0:0/")
    assert (visit.observation.kind, visit.observation.reason) == (Kind.FAILED, "bad_redirect")


async def test_a_redirect_to_itself_is_a_loop() -> None:
    for location in (DUE.fetch_url, f"{DUE.fetch_url}#part"):
        visit = await Judge().visit(location)
        assert (visit.observation.kind, visit.observation.reason) == (Kind.FAILED, "redirect_loop")


TRACKED = f"{SITE}/old?utm_source=x"
OTHERWISE_TRACKED = f"{SITE}/old?gclid=1"


@pytest.mark.parametrize(
    ("fetch_url", "attempt", "location"),
    [
        (TRACKED, 0, DUE.url),
        (TRACKED, 2, f"{DUE.url}#part"),
        (DUE.url, 0, TRACKED),
        (TRACKED, 0, OTHERWISE_TRACKED),
    ],
)
async def test_another_spelling_of_the_page_is_asked_for_instead(
    fetch_url: str, attempt: int, location: str
) -> None:
    visit = await Judge().visit(location, replace(DUE, fetch_url=fetch_url, attempt=attempt))
    assert (visit.observation.kind, visit.observation.reason) == (Kind.REDIRECTED, "respelled")
    assert (visit.retry_at, visit.fetch_url) == (NOON, location.partition("#")[0])
    assert (visit.targets, visit.alias) == (None, None)


@pytest.mark.parametrize(
    ("fetch_url", "location"), [(DUE.url, TRACKED), (TRACKED, OTHERWISE_TRACKED)]
)
async def test_spellings_that_lead_to_each_other_are_a_loop(fetch_url: str, location: str) -> None:
    visit = await Judge().visit(location, replace(DUE, fetch_url=fetch_url, attempt=1))
    assert (visit.observation.kind, visit.observation.reason) == (Kind.FAILED, "redirect_loop")
    assert visit.retry_at is None


async def test_any_loop_of_spellings_ends_within_three_requests() -> None:
    spellings = [TRACKED, DUE.url, OTHERWISE_TRACKED]
    for start in spellings:
        for other in spellings:
            due, asked = replace(DUE, fetch_url=start), 1
            while (visit := await Judge().visit(_next(due.fetch_url, start, other), due)).retry_at:
                due = replace(due, attempt=due.attempt + 1, fetch_url=visit.fetch_url or "")
                asked += 1
            assert asked <= 3


def _next(now_at: str, start: str, other: str) -> str:
    return other if now_at == start else start


async def test_a_seeds_redirect_moves_its_scope() -> None:
    judge = Judge(f"{SITE}/old")
    visit = await judge.visit("https://b.example/home", replace(DUE, seed_id=5))
    assert visit.new_root == "https://b.example/home"
    assert visit.alias == Alias("https://b.example/home", AliasKind.PERMANENT)
    assert judge.scope.contains("https://b.example/anything")
    assert not judge.scope.contains(f"{SITE}/anything")


async def test_other_pages_move_nothing() -> None:
    judge = Judge()
    assert (await judge.visit(f"{SITE}/new")).new_root is None
    assert judge.scope.roots() == [f"{SITE}/"]


async def test_a_sitemap_may_redirect_anywhere_and_stays_a_sitemap() -> None:
    visit = await Judge().visit("https://cdn.example/map.xml", replace(DUE, role=Role.SITEMAP))
    assert visit.role is Role.SITEMAP
    assert visit.targets is not None
    assert visit.targets.roles == [Role.SITEMAP]
