"""A redirect is a discovery: its verdict, and where it leads."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import permutations
from typing import get_args

import pytest

from freshet.crawler.admission.admit import Admission, FoundUrls, Redirects, RedirectTarget, Scope
from freshet.crawler.admission.traps import TrapLimits
from freshet.crawler.compare.detection import Verdict
from freshet.storage.entries import AliasKind
from freshet.storage.records import Alias, DueUrl

SITE = "https://a.example"
NOON = 1_800_000_000.0
DUE = DueUrl(7, f"{SITE}/old", f"{SITE}/old", host_id=1, due_at=0.0, depth=3)


class Judge:
    """Redirects with their scope; the store knows ``aliases``, and answers after some turns."""

    def __init__(self, *roots: str) -> None:
        self.scope = Scope("host", roots or [f"{SITE}/"])
        self.aliases: dict[str, int] = {}
        self.turns: dict[str, int] = {}
        admission = Admission(self.scope, TrapLimits())
        self.leads_to: str | None = None
        self.redirects = Redirects(admission, self, max_redirects=10)

    async def judge(
        self, location: str, due: DueUrl = DUE, kind: AliasKind = "permanent"
    ) -> tuple[Verdict, FoundUrls]:
        redirect = RedirectTarget(location, kind)
        verdict = await self.redirects.judge(due, redirect, NOON)
        return verdict, self.redirects.found(due, redirect, verdict)

    async def led_to(self, page_id: int) -> str | None:
        return self.leads_to

    async def alias_target(self, url: str) -> int | None:
        for _ in range(self.turns.get(url, 1)):
            await asyncio.sleep(0)
        return self.aliases.get(url)


@pytest.mark.parametrize("kind", get_args(AliasKind))
async def test_the_target_is_a_due_url_of_its_own_and_the_url_its_alias(kind: AliasKind) -> None:
    verdict, found = await Judge().judge(f"{SITE}/new?utm_source=x#part", kind=kind)
    assert found.alias == Alias(f"{SITE}/new", kind)
    assert (verdict.kind, verdict.reason, verdict.detail) == ("redirected", kind, f"{SITE}/new")
    assert found.targets is not None
    assert (found.targets.urls, found.targets.column("depths")) == ([f"{SITE}/new"], [3])
    assert (found.targets.column("redirects"), found.fetch_url) == ([1], None)


async def test_a_target_out_of_scope_is_recorded_as_an_offsite_link() -> None:
    verdict, found = await Judge().judge("https://b.example/")
    assert verdict.reason == "out_of_scope"
    assert found.links is not None
    assert (found.links.urls, found.offsite) == (("https://b.example/",), frozenset({0}))
    assert (found.targets, found.alias) == (None, None)


async def test_of_two_that_lead_to_one_another_the_second_to_answer_closes_the_circle() -> None:
    judge, back = Judge(), DueUrl(8, f"{SITE}/new", f"{SITE}/new", host_id=1, due_at=0.0)
    there, again = await asyncio.gather(
        judge.judge(f"{SITE}/new"), judge.judge(f"{SITE}/old", due=back)
    )
    assert there[0].kind == "redirected"
    assert again[0].reason == "redirect_loop"


async def test_a_chain_is_cut_after_ten_hops() -> None:
    assert (await Judge().judge(f"{SITE}/new", replace(DUE, redirects=9)))[1].targets is not None
    verdict, found = await Judge().judge(f"{SITE}/new", replace(DUE, redirects=10))
    assert (verdict.kind, verdict.reason) == ("failed", "too_many_redirects")
    assert found == FoundUrls()


async def test_two_urls_may_lead_to_one_page() -> None:
    judge = Judge()
    judge.aliases[f"{SITE}/new"] = 99
    assert (await judge.judge(f"{SITE}/new"))[1].alias == Alias(f"{SITE}/new", "permanent")


@pytest.mark.parametrize(
    ("location", "reason"),
    [("https://:0:0/", "bad_redirect"), (DUE.fetch_url, "redirect_loop"),
     (f"{DUE.fetch_url}#part", "redirect_loop"), (f"{SITE}/another-name", "redirect_loop")],
)  # fmt: skip
async def test_a_location_that_is_no_url_or_this_page_is_a_failure(
    location: str, reason: str
) -> None:
    judge = Judge()
    judge.aliases[f"{SITE}/another-name"] = DUE.page_id
    verdict, found = await judge.judge(location)
    assert (verdict.kind, verdict.reason, found) == ("failed", reason, FoundUrls())


TRACKED = f"{SITE}/old?utm_source=x"
OTHERWISE_TRACKED = f"{SITE}/old?gclid=1"


@pytest.mark.parametrize(
    ("fetch_url", "attempt", "location"),
    [(TRACKED, 0, DUE.url), (TRACKED, 2, f"{DUE.url}#part"), (DUE.url, 0, TRACKED),
     (TRACKED, 0, OTHERWISE_TRACKED)],
)  # fmt: skip
async def test_another_spelling_of_the_page_is_asked_for_instead(
    fetch_url: str, attempt: int, location: str
) -> None:
    due = replace(DUE, fetch_url=fetch_url, attempt=attempt)
    verdict, found = await Judge().judge(location, due)
    assert (verdict.kind, verdict.reason) == ("redirected", "respelled")
    assert found == FoundUrls(fetch_url=location.partition("#")[0])


@pytest.mark.parametrize(
    ("fetch_url", "location"), [(DUE.url, TRACKED), (TRACKED, OTHERWISE_TRACKED)]
)
async def test_spellings_that_lead_to_each_other_are_a_loop(fetch_url: str, location: str) -> None:
    verdict, found = await Judge().judge(location, replace(DUE, fetch_url=fetch_url, attempt=1))
    assert (verdict.kind, verdict.reason) == ("failed", "redirect_loop")
    assert found == FoundUrls()


async def test_any_loop_of_spellings_ends_within_three_requests() -> None:
    spellings = [TRACKED, DUE.url, OTHERWISE_TRACKED]
    for start in spellings:
        for other in spellings:
            due, asked = replace(DUE, fetch_url=start), 1
            while spelling := await _respelled(other if due.fetch_url == start else start, due):
                due = replace(due, attempt=due.attempt + 1, fetch_url=spelling)
                asked += 1
            assert asked <= 3


async def _respelled(location: str, due: DueUrl) -> str | None:
    return (await Judge().judge(location, due))[1].fetch_url


SEED = replace(DUE, seed_id=5)


@pytest.mark.parametrize(
    ("kind", "led_to", "location", "moves"),
    [
        ("permanent", None, "https://en.a.example/home", True),
        ("permanent", None, "https://b.example/home", None),
        ("permanent", "https://b.example/", "https://b.example/home", None),
        ("permanent", "https://b.example/home", "https://b.example/home", True),
        ("temporary", "https://b.example/home", "https://b.example/home", None),
        ("temporary", None, "https://en.a.example/home", False),
        ("refresh", None, "https://en.a.example/home", False),
        ("temporary", None, "http://www.a.example/home", True),
    ],
)
async def test_a_seed_moves_on_its_site_or_for_good_and_to_another_domain_at_the_second_visit(
    kind: AliasKind, led_to: str | None, location: str, moves: bool | None
) -> None:
    judge = Judge(f"{SITE}/old")
    judge.leads_to = led_to
    verdict, found = await judge.judge(location, SEED, kind)
    assert verdict.reason == ("out_of_scope" if moves is None else kind)
    assert found.new_root == (location if moves else None)
    assert (found.alias == Alias(location, kind)) == (moves is not None)
    assert judge.scope.contains(location) == bool(moves)


async def test_a_chain_that_left_the_site_of_its_seed_goes_on_and_another_does_not() -> None:
    away = replace(DUE, url="https://en.a.example/", redirects=1)
    assert (await Judge().judge("https://en.a.example/home", away))[1].targets is not None
    inside = replace(DUE, redirects=1)
    assert (await Judge().judge("https://en.a.example/home", inside))[1].targets is None


async def test_the_sitemaps_of_a_site_redirect_to_few_strangers() -> None:
    judge, roles = Judge(), list[str]()
    for n in range(30):
        due = replace(DUE, url=f"{SITE}/map{n}.xml", role="sitemap")
        if targets := (await judge.judge(f"https://b{n}.example/", due))[1].targets:
            roles += targets.column("roles")
    # They stay sitemaps.
    assert roles == ["sitemap"] * 10


async def test_other_pages_move_nothing() -> None:
    judge = Judge()
    assert (await judge.judge(f"{SITE}/new"))[1].new_root is None
    assert judge.scope.roots() == [f"{SITE}/"]


SEEN = ("seen=yes; Path=/",)
#: Pages that want a cookie back: what each URL redirects to, and the cookies set there.
CIRCLES: Sequence[Mapping[str, tuple[str, tuple[str, ...]]]] = (
    {"/": ("/one", ()), "/one": ("/two", ("a=1",)), "/two": ("/", SEEN)},
    {"/": ("/one", SEEN), "/one": ("/two", ()), "/two": ("/", ())},
    {"/": ("/check", ()), "/check": ("/", SEEN)},
    {"/": ("/check", SEEN), "/check": ("/", ())},
    {"/": ("/check", ("a=1",)), "/check": ("/", SEEN)},
)
#: Turns of the loop that the store takes to answer for each judgement, in their order.
SLOW = ((1, 1, 1), (3, 1, 2), (1, 4, 2), (0, 3, 5), (5, 3, 1))


class Opening:
    """The URLs of a circle, all due at once, until ``/`` is requested with its cookie."""

    def __init__(self, circle: Mapping[str, tuple[str, tuple[str, ...]]], turns: Sequence[int]):
        self.circle, self.judge = circle, Judge()
        self.judge.turns = {f"{SITE}{path}": n for path, n in zip(circle, turns, strict=False)}
        self.waiting, self.under_way = list[str](), dict[str, str]()
        self.dues = {
            path: DueUrl(n, f"{SITE}{path}", f"{SITE}{path}", host_id=1, due_at=0.0)
            for n, path in enumerate(circle)
        }

    async def answer(self, path: str) -> None:
        location, cookies = self.circle[path]
        had = bool(self.under_way.pop(path))
        redirect = RedirectTarget(f"{SITE}{location}", "temporary", cookies, had)
        redirects = self.judge.redirects
        verdict = await redirects.judge(self.dues[path], redirect, NOON)
        found = redirects.found(self.dues[path], redirect, verdict)
        if found.fetch_url is not None:
            self.waiting.append(path)
        elif found.alias is not None and found.alias.again:
            self.waiting.append(location)

    async def is_opened(self, asked: Sequence[str], judged: Sequence[str], together: bool) -> bool:
        """Request in this order, and judge late: when all answers are in, or one by one."""
        self.waiting = list(asked)
        for _ in range(12):
            if self.waiting:
                path = self.waiting.pop(0)
                sent = self.judge.redirects.cookies(self.dues[path], NOON)
                self.under_way[path] = sent
                if path == "/" and "seen=yes" in sent:
                    return True
            if not self.waiting:
                answers = [self.answer(path) for path in judged if path in self.under_way]
                if together:
                    await asyncio.gather(*answers)
                for each in answers if not together else ():
                    await each
        return False


@pytest.mark.parametrize("together", [False, True])
@pytest.mark.parametrize("turns", SLOW)
@pytest.mark.parametrize("circle", CIRCLES)
async def test_a_circle_that_sets_cookies_opens_in_whatever_order_its_urls_are_visited(
    circle: Mapping[str, tuple[str, tuple[str, ...]]], turns: Sequence[int], together: bool
) -> None:
    closed = [
        (asked, judged)
        for asked in permutations(circle)
        for judged in permutations(circle)
        if not await Opening(circle, turns).is_opened(asked, judged, together)
    ]
    assert closed == []


async def test_a_request_that_never_gets_its_cookies_is_not_repeated_for_ever() -> None:
    redirects = Judge().redirects
    there = replace(DUE, url=f"{SITE}/a", fetch_url=f"{SITE}/a", page_id=1)
    set_cookie = RedirectTarget(f"{SITE}/old", "temporary", ("seen=yes; Path=/",))
    await redirects.judge(there, set_cookie, NOON)
    assert redirects.cookies(DUE, NOON)
    again = RedirectTarget(f"{SITE}/a", "temporary")
    reasons = [(await redirects.judge(DUE, again, NOON)).reason for _ in range(4)]
    assert set(reasons) != {"respelled"}
