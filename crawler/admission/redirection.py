"""Redirects: a redirect is a discovery, and its target a due URL of its own.

Consequence: each hop is judged by scope, robots.txt and the address guard like any URL,
takes its turn on its own host's lane, and a crawl that is killed between two hops goes on
at the second.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Awaitable, Callable
from math import inf
from typing import Final

from freshet.crawler.admission.admitting import Admission
from freshet.crawler.urls import canonical, without_fragment
from freshet.storage.records import Alias, DueUrl, FetchResult, Links, Observation, Targets, Visit
from freshet.storage.words import AliasKind, Kind, Role

#: A visit commits long before that.
_RECENT_S: Final = 60.0
_RECENT: Final = 1_024


class Redirection:
    """Judges the target of a redirect or of a meta refresh.

    ``alias_target`` reads which page a URL is another name of (its id, or None).
    """

    def __init__(
        self,
        admission: Admission,
        alias_target: Callable[[str], Awaitable[int | None]],
        *,
        max_redirects: int,
    ) -> None:
        self._admission = admission
        self._alias_target = alias_target
        self._max_redirects = max_redirects
        # Of visits that may not have committed: where each URL led, and when.
        self._recent: OrderedDict[str, tuple[str, float]] = OrderedDict()

    async def visit(
        self, due: DueUrl, result: FetchResult, location: str, kind: AliasKind, now: float
    ) -> Visit:
        """The visit of a URL that sends its visitor to ``location`` (resolved)."""
        try:
            target = canonical(location)
        except ValueError as error:
            return _failed(due, result, now, "bad_redirect", str(error))
        if due.redirects >= self._max_redirects:
            why = f"more than {self._max_redirects} redirects in a row, the next to {target}"
            return _failed(due, result, now, "too_many_redirects", why)
        if target == due.url:
            return self._same_page(due, result, location, now)
        # Noted before anything is waited for: of two that lead to one another, the second to
        # answer closes the circle, however their visits interleave.
        self._note(due.url, target, now)
        if await self._leads_back(target, due, now):
            self._recent.pop(due.url, None)
            return _failed(due, result, now, "redirect_loop", f"{target} leads back here")
        return self._other_page(due, result, location, target, kind, now)

    def _note(self, url: str, target: str, now: float) -> None:
        self._recent[url] = target, now
        if len(self._recent) > _RECENT:
            self._recent.popitem(last=False)

    async def _leads_back(self, target: str, due: DueUrl, now: float) -> bool:
        led_to, at = self._recent.get(target, (None, -inf))
        if led_to == due.url and now - at <= _RECENT_S:
            return True
        return await self._alias_target(target) == due.page_id

    def _same_page(self, due: DueUrl, result: FetchResult, location: str, now: float) -> Visit:
        """Another spelling of the same page: ask for that one instead.

        Once, or twice where the second is the canonical one.
        """
        spelling = without_fragment(location)
        is_news = spelling != due.fetch_url and (spelling == due.url or not due.attempt)
        if not is_news:
            return _failed(due, result, now, "redirect_loop", "it redirects to itself")
        observation = _observation(due, result, now, Kind.REDIRECTED, "respelled", spelling)
        return Visit(due, observation, role=due.role, retry_at=now, fetch_url=spelling)

    def _other_page(
        self,
        due: DueUrl,
        result: FetchResult,
        location: str,
        target: str,
        kind: AliasKind,
        now: float,
    ) -> Visit:
        new_root = None
        if due.seed_id is not None:
            self._admission.scope.move_seed(due.url, target)
            new_root = target
        if due.role is Role.PAGE and not self._admission.scope.contains(target):
            observation = _observation(due, result, now, Kind.REDIRECTED, "out_of_scope", target)
            links = Links((target,), (location,), ("redirect",), ("",))
            return Visit(due, observation, links=links, offsite=frozenset({0}))
        targets = Targets()
        self._admission.add(
            targets, target, location, depth=due.depth, role=due.role, redirects=due.redirects + 1
        )
        return Visit(
            due, _observation(due, result, now, Kind.REDIRECTED, kind, target), role=due.role,
            targets=targets, alias=Alias(target, kind), new_root=new_root,
        )  # fmt: skip


def _failed(due: DueUrl, result: FetchResult, now: float, reason: str, detail: str) -> Visit:
    return Visit(due, _observation(due, result, now, Kind.FAILED, reason, detail), role=due.role)


def _observation(
    due: DueUrl, result: FetchResult, now: float, kind: Kind, reason: str, detail: str
) -> Observation:
    return Observation(
        due.page_id, now, kind, status=result.status, reason=reason, detail=detail,
        duration_s=result.duration_s,
    )  # fmt: skip
