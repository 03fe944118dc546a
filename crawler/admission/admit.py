"""Admission: decides which links and redirect targets enter the frontier.

Each URL in scope becomes a known page; a page that is not crawled has a reason.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import KW_ONLY, dataclass, field, replace
from datetime import UTC, date, datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, Protocol, TypeAlias

from freshet.crawler.admission.traps import (
    Combinations,
    Proof,
    TrapLimits,
    TrapSign,
    UrlParts,
    classify,
    pattern_of,
    place_of,
)
from freshet.crawler.compare.detection import Verdict
from freshet.crawler.fetch.bounds import FOREIGN_SITEMAPS, SITEMAPS, LruCache, meet, share
from freshet.crawler.urls import (
    canonical,
    origin,
    registrable_domain,
    site_key,
    without_credentials,
    without_fragment,
)
from freshet.storage import value
from freshet.storage.entries import AliasKind, Role
from freshet.storage.records import (
    Alias,
    DueUrl,
    FetchResult,
    Links,
    StoredSeed,
    StoreUpdate,
    Target,
    Targets,
)

if TYPE_CHECKING:
    from freshet.crawler.fetch.cookies import Cookie
# -- scope -------------------------------------------------------------------
# Invariant: a URL is in scope if and only if one of its keys is the key of a root of that kind.
# Consequence: the cost of a check does not depend on the number of seeds.
#: The extent of the crawl beyond its seeds.
ScopeKind = Literal["host", "domain", "prefix", "list"]


#: Size of the cache of judgements by the URL alone: pages of a site link to the same pages.
_REMEMBERED = 8192
#: Longer URLs are not cached, so that a site cannot fill the memory with them.
_LONG_CHARS = 512
#: Number of cached URLs of a scope, at about 150 bytes each.
_INSIDE = 16_384


class Scope:
    """The roots of a crawl, and the URLs that belong to them.

    A root is a seed, or the target of the seed's own redirect. In scope are, by kind:

    - ``host``: URLs of a root's site (``http``, ``https`` and ``www.`` count as one);
    - ``domain``: URLs with a root's registrable domain, on any host and port;
    - ``prefix``: URLs of a root's site, in the directory of the root's path: the path up to its
      last '/', so that ``/docs`` without a slash means the whole site;
    - ``list``: the roots.

    ``kind_at`` returns the kind of a root.

    Attributes:
        inside: cached URLs in scope; cleared when the scope changes.
    """

    def __init__(
        self, kind: ScopeKind | Callable[[str], ScopeKind], seeds: Iterable[str] = ()
    ) -> None:
        self.kind_at = kind if callable(kind) else lambda _root: kind
        self._roots: dict[str, tuple[ScopeKind, str]] = {}
        # Counted: a key is removed with the last root that has it.
        self._keys: dict[ScopeKind, Counter[str]] = {}
        self._domains: Counter[str] = Counter()
        self._sites: Counter[str] = Counter()
        self.inside: set[str] = set()
        self._outside: set[str] = set()
        for seed in seeds:
            self.add_seed(seed)

    def add_seed(self, url: str) -> None:
        """Make a seed's URL a root.

        Raises:
            ValueError: if it is not an absolute http or https URL.
        """
        root = canonical(url)
        if root not in self._roots:
            kind = self.kind_at(root)
            # The last key is the narrowest one: the deepest directory.
            *_, key = _keys_of(kind, root)
            self._roots[root] = kind, key
            self._keys.setdefault(kind, Counter())[key] += 1
            self._forget()
            self.expect(root)

    def expect(self, url: str) -> None:
        """Note that a seed names its site and its domain; its scheme may be undecided."""
        self._domains[_domain(url)] += 1
        self._sites[site_key(url)] += 1

    def move_seed(self, old: str, new: str) -> None:
        """Move a redirected seed: ``new`` replaces ``old`` as a root.

        Raises:
            ValueError: if either is not an absolute http or https URL; the scope is unchanged.
        """
        left = canonical(old)
        self.add_seed(new)
        if left != canonical(new) and left in self._roots:
            kind, of_root = self._roots.pop(left)
            for counts, key in (
                (self._keys[kind], of_root),
                (self._domains, _domain(left)),
                (self._sites, site_key(left)),
            ):
                counts[key] -= 1
                if not counts[key]:
                    del counts[key]
            self._forget()

    def contains(self, url: str) -> bool:
        """Return whether an http or https URL is in scope; raises like :meth:`add_seed`."""
        if url in self.inside:
            return True
        if url in self._outside:
            return False
        is_inside = self._contains(url)
        if len(url) <= _LONG_CHARS:
            if len(self.inside) + len(self._outside) >= _INSIDE:
                self._forget()
            (self.inside if is_inside else self._outside).add(url)
        return is_inside

    def _forget(self) -> None:
        self.inside.clear()
        self._outside.clear()

    def _contains(self, url: str) -> bool:
        for kind, keys in self._keys.items():
            for key in _keys_of(kind, url):
                if key in keys:
                    return True
        return False

    def share_of(self, url: str, exchanges: int) -> tuple[str, int] | None:
        """Return the group of a host that is not a root's, and its limit of concurrent requests.

        Each domain of a root is a group, and all other domains together are one group ("").
        Return None for a host of a root: it is not limited.
        """
        domain = _domain(url)
        if domain not in self._domains:
            return "", share(exchanges)
        domains = len(self._domains)
        return None if site_key(url) in self._sites else (domain, share(exchanges, domains))

    def roots(self) -> list[str]:
        """Return the canonical roots in order of arrival; ``Scope(kind, roots)`` restores it."""
        return list(self._roots)


def _keys_of(kind: ScopeKind, url: str) -> Iterable[str]:
    match kind:
        case "host":
            return (site_key(url),)
        case "domain":
            return (registrable_domain(origin(url).host),)
        case "prefix":
            return _directories(canonical(url))
        case "list":
            return (canonical(url),)


def _directories(url: str) -> Iterator[str]:
    """Yield a canonical URL's site with each directory on its path, the outermost first."""
    path = url.partition("?")[0].split("/", 3)[3]
    directory = f"{site_key(url)}/"
    yield directory
    for segment in path.split("/")[:-1]:
        directory += f"{segment}/"
        yield directory


#: Depth limit of sitemap indexes: the protocol allows one level, sites use two, traps are endless.
_MAX_INDEX_DEPTH = 4


@value(frozen=True, slots=True)
class FoundUrls:
    """The URLs found in a page, a listing or a redirect; see :class:`~storage.records.Visit`.

    ``fetch_url`` is a variant of the page's URL, to be requested at once.
    """

    links: Links | None = None
    offsite: frozenset[int] = frozenset()
    targets: Targets | None = None
    alias: Alias | None = None
    new_root: str | None = None
    fetch_url: str | None = None


_NO_BOUND: Final[tuple[str | None, str | None, int]] = None, None, 0


@value(frozen=True, slots=True)
class _Judgement:
    """The judgement on a URL by its text alone: its origin, and its rule or pattern.

    ``bound`` has the columns of its trap. ``parts`` are None if the URL cannot be a combination of
    recurring values.
    """

    origin: str
    is_excluded: bool
    sign: TrapSign | None
    bound: tuple[str | None, str | None, int]
    pattern: str | None
    parts: UrlParts | None


#: Returns whether a URL at a depth is within the page limit, and counts it if so.
HasRoom: TypeAlias = Callable[[str, int], bool]


class Admission:
    """Admission rules for URLs: scope, depth, file extension, trap, and number of pages.

    ``depth_at`` returns the depth limit of a URL in links from a seed, 0 for no limit. Extensions
    have no dot. ``is_ours`` returns whether an origin belongs to this shard; None: all do. ``now``
    returns Unix seconds; None: no day of a calendar is past. With ``follow_nofollow``, links with
    nofollow are followed. ``settled`` are URLs that need not be sent to the store.
    """

    def __init__(
        self,
        scope: Scope,
        traps: TrapLimits,
        *,
        depth_at: Callable[[str], int] = lambda _url: 256,
        excluded_extensions: Collection[str] = (),
        is_never: Callable[[str], bool] | None = None,
        has_room: HasRoom | None = None,
        is_ours: Callable[[str], bool] | None = None,
        now: Callable[[], float] | None = None,
    ) -> None:
        self.scope = scope
        self._now = now
        self._is_never, self.is_ours = is_never, is_ours
        self._traps = traps
        self.depth_at, self.has_room = depth_at, has_room
        self.follow_nofollow = False
        self.settled: AbstractSet[str] = frozenset()
        self._excluded = frozenset(excluded_extensions)
        self._combinations = Combinations(traps.min_combined)
        self._sitemaps: dict[str, set[str]] = {}
        self._judged = lru_cache(_REMEMBERED)(self._judge)

    def unsettled(self, links: Links) -> Sequence[int]:
        """Return the columns of a page's links that :meth:`links` has to judge."""
        known = set(links.urls).intersection(self.settled, self.scope.inside)
        return [i for i, url in enumerate(links.urls) if url not in known]

    def links(
        self, targets: Targets, links: Links, columns: Sequence[int], depth: int, *, nofollow: bool
    ) -> set[int]:
        """Append the targets in these columns of a page's links; return the others.

        ``depth`` is the page's; ``nofollow`` applies to all links of the page.
        """
        inside = [i for i in columns if self.scope.contains(links.urls[i])]
        for i in inside:
            rel = links.rels[i]
            is_marked = nofollow or ("nofollow" in rel and "nofollow" in rel.split())
            held = "nofollow" if is_marked and not self.follow_nofollow else None
            url, fetch_url = links.urls[i], links.fetch_urls[i]
            targets.append(self._target(url, fetch_url, depth=depth + 1, held_back=held))
        return set(columns).difference(inside)

    def sitemap(
        self, targets: Targets, urls: Iterable[tuple[str, str]], depth: int, *, index: bool
    ) -> None:
        """Append the targets among a sitemap's entries (canonical and as written)."""
        for url, fetch_url in urls:
            if index:
                held = "depth" if depth >= _MAX_INDEX_DEPTH else None
                named_by = self._sitemaps.setdefault(str(origin(url)), set())
                if url not in named_by and len(named_by) >= SITEMAPS:
                    meet("sitemaps of a host", str(origin(url)))
                    continue
                named_by.add(url)
                self.add(targets, url, fetch_url, depth=depth + 1, role="sitemap", held_back=held)
            elif self.scope.contains(url):
                self.add(targets, url, fetch_url, depth=depth + 1)

    def add(
        self,
        targets: Targets,
        url: str,
        fetch_url: str,
        *,
        depth: int,
        role: Role = "page",
        redirects: int = 0,
        held_back: str | None = None,
    ) -> None:
        """Append one URL, held back if a rule requires it."""
        row = self._target(
            url, fetch_url, depth=depth, role=role, redirects=redirects, held_back=held_back
        )
        targets.append(row)

    def _target(
        self,
        url: str,
        fetch_url: str,
        *,
        depth: int,
        role: Role = "page",
        redirects: int = 0,
        held_back: str | None = None,
    ) -> Target:
        """Return the values of a row of :class:`~freshet.storage.records.Targets`."""
        judge = self._judged if len(url) <= _LONG_CHARS else self._judge
        judgement, bound, pattern = judge(url), _NO_BOUND, None
        if self.is_ours is not None and not self.is_ours(judgement.origin):
            held_back = "shard"
        elif role == "page" and held_back is None:
            held_back, bound = self._held_back(url, judgement, depth), judgement.bound
            pattern = judgement.pattern if judgement.parts is None else self._pattern(judgement)
        if "@" in fetch_url:
            fetch_url = without_credentials(fetch_url)
        shape, kind, cap = bound
        return (
            url, fetch_url, judgement.origin, role, depth, redirects,
            held_back, shape, kind, cap, pattern,
        )  # fmt: skip

    def _held_back(self, url: str, judgement: _Judgement, depth: int) -> str | None:
        """Return the rule that holds a page back, or None."""
        if depth > (self.depth_at(url) or depth):
            return "depth"
        if judgement.is_excluded:
            return "extension"
        if self._is_never is not None and self._is_never(url):
            return "never"
        if self.has_room is not None and not self.has_room(url, depth):
            return "max_pages"
        return None

    def pattern(self, url: str) -> str | None:
        """Return the pattern of limited URLs to which a canonical URL belongs, or None."""
        return self._pattern(self._judged(url))

    def proof(self, url: str) -> Proof | None:
        """Return the reason for which the page must first be shown to have new content, or None."""
        judgement = self._judged(url)
        if judgement.sign is not None and judgement.sign.kind == "calendar":
            return "dated"
        return "combined" if self._combinations.is_combined(judgement.parts) else None

    def _pattern(self, judgement: _Judgement) -> str | None:
        """Return the pattern; a combination includes URLs with different parameter names."""
        return self._combinations.pattern(judgement.parts) or judgement.pattern

    def _today(self) -> date:
        return datetime.fromtimestamp(self._now() if self._now is not None else 0.0, UTC).date()

    def _judge(self, url: str) -> _Judgement:
        sign = classify(url, self._traps, None if self._now is None else self._today)
        combines = sign is None or sign.kind == "query"
        return _Judgement(
            str(origin(url)),
            _extension(url) in self._excluded,
            sign,
            _NO_BOUND if sign is None else (sign.shape, f"trap: {sign.kind}", sign.cap),
            pattern_of(sign) if sign is not None else None,
            parts=self._combinations.note(url) if combines else None,
        )


def _extension(url: str) -> str:
    """Return the file extension of the path in lower case, without the dot; "" without one."""
    name = place_of(url)[1].rpartition("/")[2]
    return name.rpartition(".")[2].lower() if "." in name else ""


def sitemap_links(urls: Collection[tuple[str, str]]) -> Links:
    """Return a sitemap's entries as links."""
    n = len(urls)
    return Links(tuple(u for u, _ in urls), tuple(f for _, f in urls), ("sitemap",) * n, ("",) * n)


# -- redirects ---------------------------------------------------------------
#
# A redirect's target is a separate due URL. Consequence: each hop is checked by scope, robots.txt
# and the address guard like any URL, waits in its host's queue, and a crawl that is killed
# between two hops continues with the second.

#: Seconds for which a hop is remembered; a visit commits much sooner.
_RECENT_S: Final = 60.0
_RECENT: Final = 1_024
#: Lifetime of a chain's cookies: a redirect's target may wait in its queue.
_CHAIN_S: Final = 900.0
#: Limit of repeated requests in a chain because of new cookies.
_COOKIE_HOPS: Final = 3
_RESPELLED: Final = "respelled"
_OUT_OF_SCOPE: Final = "out_of_scope"


@dataclass(frozen=True, slots=True)
class RedirectTarget:
    """The target of a redirect by status or by refresh.

    ``set_cookie`` are the cookies set with it; ``had_cookie`` is True if the request sent any.
    """

    location: str
    kind: AliasKind
    set_cookie: tuple[str, ...] = ()
    had_cookie: bool = False


@dataclass(frozen=True, slots=True)
class _Chain:
    """A chain of redirects, the last one at ``at``.

    ``hops`` counts the repeated requests. ``again``: the next request is a repeat with new cookies.
    """

    at: float
    hops: int = 0
    cookies: tuple[Cookie, ...] = ()
    again: bool = False

    def header(self, url: str) -> str:
        """Return the Cookie header of a request for a URL, "" without cookies."""
        from freshet.crawler.fetch.cookies import header  # noqa: PLC0415 - few pages redirect

        return header(self.cookies, url)

    def after(self, set_cookie: Iterable[str], url: str, now: float) -> tuple[Cookie, ...]:
        """Return the cookies after a response from a URL that has set these."""
        from freshet.crawler.fetch.cookies import after  # noqa: PLC0415 - likewise

        return after(self.cookies, set_cookie, url, now)


class Aliases(Protocol):
    """Queries that :class:`Redirects` needs from the store."""

    async def alias_target(self, url: str, /) -> int | None:
        """Return the page that a URL is an alias of, or None."""

    async def led_to(self, page_id: int, /) -> str | None:
        """Return the URL to which a page redirected at its last visit, or None."""


class _Hop(NamedTuple):
    """A redirect at ``at`` to a canonical URL, after a request with this Cookie header."""

    target: str
    sent: str
    at: float


@dataclass(slots=True, eq=False)
class Redirects:
    """Decides on redirects, and admits their targets.

    A seed moves to a target on the same site, and to any other target if the redirect is permanent;
    for another registrable domain two visits must agree. A target elsewhere on the domain is
    visited, but not its links. A target on another domain is a link out of scope.
    """

    admission: Admission
    past: Aliases
    _: KW_ONLY
    max_redirects: int
    # By origin: targets out of scope to which its sitemaps redirect.
    _foreign: dict[str, set[str]] = field(default_factory=dict, init=False)
    # By canonical URL, for visits that may not have committed. The pages of a redirect loop can be
    # due at once, and be judged in any order, so the state of a single chain is not enough.
    _recent: LruCache[str, _Hop] = field(default_factory=lambda: LruCache(_RECENT), init=False)
    # By the canonical URL that is requested next.
    _chains: LruCache[str, _Chain] = field(default_factory=lambda: LruCache(_RECENT), init=False)

    def cookies(self, due: DueUrl, now: float) -> str:
        """Return the Cookie header of a request that follows redirects, "" without cookies."""
        chain = self._chains.get(due.url)
        if chain is not None and now - chain.at > _CHAIN_S:
            self.end(due)
            chain = None
        return "" if chain is None else chain.header(due.fetch_url)

    def end(self, due: DueUrl) -> None:
        """Forget the cookies of a chain that ends with this page."""
        self._chains.pop(due.url, None)

    async def judge(self, due: DueUrl, redirect: RedirectTarget, now: float) -> Verdict:
        """Return ``redirected`` with the target as detail, or ``failed``."""
        given = self.cookies(due, now)
        chain = self._go_on(due, redirect, now)
        try:
            target = canonical(redirect.location)
        except ValueError as error:
            return _failed("bad_redirect", str(error))
        if due.redirects >= self.max_redirects:
            why = f"more than {self.max_redirects} redirects in a row, the next one to {target}"
            return _failed("too_many_redirects", why)
        has_room = chain.hops < _COOKIE_HOPS
        sent = given if redirect.had_cookie else ""
        if has_room and given != sent:
            # A cookie was set while the request was under way: repeat the hop, up to the limit, as
            # a request may never get its cookies.
            self._chains[due.url] = replace(chain, again=True)
            return Verdict("redirected", reason=_RESPELLED, detail=due.fetch_url)
        # Recorded before the first await: if two URLs redirect to each other, the second response
        # finds the loop in any interleaving of the visits.
        self._recent[due.url] = _Hop(target, sent, now)
        circle = self._circle(target, due.url, now)
        late = self._cookies_of(circle)
        chain = replace(chain, cookies=(*late, *chain.cookies))
        chain = replace(chain, cookies=chain.after((), due.fetch_url, now))
        sends = chain.header(redirect.location)
        again = has_room and bool(circle) and self._recent[target].sent != sends
        if target == due.url:
            verdict = _same_page(due, redirect.location, again=again)
            if verdict.kind == "redirected":
                self._chains[target] = replace(chain, again=again)
            return verdict
        return await self._judge_target(due, redirect, target, now, led=replace(chain, again=again))

    def _cookies_of(self, circle: Iterable[str]) -> Iterator[Cookie]:
        """Yield cookies that were set after a URL of the loop was requested."""
        for at in circle:
            if (chain := self._chains.get(at)) is not None:
                yield from chain.cookies

    async def _judge_target(
        self, due: DueUrl, redirect: RedirectTarget, target: str, now: float, *, led: _Chain
    ) -> Verdict:
        """Judge a redirect to another URL, which inherits the chain if it is visited."""
        # Set first: the target may be under way, and answer during the await below.
        before, again = self._chains.get(target), led.again
        self._chains[target] = led
        verdict = await self._led_on(due, redirect, target, now, again=again)
        is_visited = verdict.kind == "redirected" and verdict.reason != _OUT_OF_SCOPE
        if not is_visited and self._chains.get(target) is led:
            self._chains.pop(target, None)
            if before is not None:
                self._chains[target] = before
        return verdict

    async def _led_on(
        self, due: DueUrl, redirect: RedirectTarget, target: str, now: float, *, again: bool
    ) -> Verdict:
        """Judge a redirect to another page: it may lead back, or out of scope."""
        back = self._recent.get(target)
        leads_back = back is not None and back.target == due.url and now - back.at <= _RECENT_S
        is_loop = leads_back or await self.past.alias_target(target) == due.page_id
        if is_loop and not again:
            self._recent.pop(due.url, None)
            return _failed("redirect_loop", f"{target} redirects back here")
        follows = await self._follows(due, redirect, target)
        reason = redirect.kind if follows else _OUT_OF_SCOPE
        return Verdict("redirected", reason=reason, detail=target)

    def _go_on(self, due: DueUrl, redirect: RedirectTarget, now: float) -> _Chain:
        """Return the chain after a redirect."""
        last = self._chains.pop(due.url, None) or _Chain(now)
        return _Chain(
            now, last.hops + last.again, last.after(redirect.set_cookie, due.fetch_url, now)
        )

    def _circle(self, target: str, url: str, now: float) -> list[str]:
        """Return the loop from the target of a redirect back to ``url``, or an empty list.

        Each URL has redirected to the next one.
        """
        circle = [target]
        for _ in range(_COOKIE_HOPS + 1):
            hop = self._recent.get(circle[-1])
            if hop is None or now - hop.at > _CHAIN_S:
                break
            if url in (circle[-1], hop.target):
                return circle
            circle.append(hop.target)
        return []

    async def _follows(self, due: DueUrl, redirect: RedirectTarget, target: str) -> bool:
        """Return whether the target is visited."""
        scope = self.admission.scope
        if scope.contains(target):
            return True
        if _domain(target) == _domain(due.url):
            # Out of scope, only redirects of seeds, and their redirects, are followed.
            has_left = due.redirects > 0 and not scope.contains(due.url)
            return due.role != "page" or due.seed_id is not None or has_left
        if due.role != "page":
            foreign = self._foreign.setdefault(str(origin(due.url)), set())
            if len(foreign) < FOREIGN_SITEMAPS:
                foreign.add(target)
            else:
                meet("sitemaps elsewhere", str(origin(due.url)))
            return target in foreign
        agreed = redirect.kind == "permanent" and due.seed_id is not None
        return agreed and await self.past.led_to(due.page_id) == target

    def found(self, due: DueUrl, redirect: RedirectTarget, verdict: Verdict) -> FoundUrls:
        """Return the target of a redirect with this verdict; a seed's redirect moves the scope."""
        target = verdict.detail
        if verdict.kind != "redirected" or target is None:
            return FoundUrls()
        if verdict.reason == _RESPELLED:
            return FoundUrls(fetch_url=target)
        if verdict.reason == _OUT_OF_SCOPE:
            links = Links((target,), (redirect.location,), ("redirect",), ("",))
            return FoundUrls(links=links, offsite=frozenset({0}))
        moves = due.seed_id is not None and (
            redirect.kind == "permanent" or site_key(target) == site_key(due.url)
        )
        if moves:
            self.admission.scope.move_seed(due.url, target)
        targets, hops = Targets(), due.redirects + 1
        self.admission.add(
            targets, target, redirect.location, depth=due.depth, role=due.role, redirects=hops
        )
        new_root = target if moves else None
        chain = self._chains.get(target)
        alias = Alias(target, redirect.kind, again=chain is not None and chain.again)
        return FoundUrls(targets=targets, alias=alias, new_root=new_root)


def _domain(url: str) -> str:
    return registrable_domain(origin(url).host)


def _same_page(due: DueUrl, location: str, *, again: bool) -> Verdict:
    """Judge a redirect to a variant of the same URL: request the variant instead.

    This happens once, or twice if the second variant is the canonical URL, and ``again`` if there
    are new cookies to send.
    """
    spelling = without_fragment(location)
    if again or (spelling != due.fetch_url and (spelling == due.url or not due.attempt)):
        return Verdict("redirected", reason=_RESPELLED, detail=spelling)
    return _failed("redirect_loop", "it redirects to itself")


def _failed(reason: str, detail: str) -> Verdict:
    return Verdict("failed", reason=reason, detail=detail)


# -- seeding -----------------------------------------------------------------
# A line with a scheme is used unchanged. A line without one is tried with https, and with http if
# the host does not speak TLS; an invalid certificate is a result, not a reason to fall back.

#: Failures that mean "the host does not speak https".
_SEEDS_AT_ONCE: Final = 1_000
_NO_HTTPS = frozenset({"connect", "timeout_connect", "not_tls"})


class Seeding:
    """The seeds of a run; seeds without a scheme wait for their host's first response."""

    def __init__(self, seeds: Sequence[StoredSeed], admission: Admission) -> None:
        self._admission = admission
        self._decided: list[StoredSeed] = []
        self._open: dict[str, list[StoredSeed]] = {}
        self.renew(seeds)

    def renew(self, seeds: Sequence[StoredSeed]) -> None:
        """Replace the seeds and the scope."""
        self._admission.scope = Scope(self._admission.scope.kind_at)
        self._decided = [s for s in seeds if s.root_url is not None or s.fallback_url is None]
        self._open = {}
        for seed in seeds:
            if seed.root_url is None and seed.fallback_url is not None:
                at_origin = str(origin(seed.url))
                if self._admission.is_ours is None or self._admission.is_ours(at_origin):
                    self._open.setdefault(at_origin, []).append(seed)
                    self._admission.scope.expect(seed.url)
                else:
                    # Another shard makes the request; the scope does not depend on its result.
                    self._admission.scope.add_seed(seed.url)

    def decided(self, now: float) -> Iterator[StoreUpdate]:
        """Yield the seeds that need no probe, and set the scope; redirects may move them later."""
        decided, self._decided = self._decided, []
        for first in range(0, len(decided), _SEEDS_AT_ONCE):
            some = decided[first : first + _SEEDS_AT_ONCE]
            yield self._settled([(s, s.root_url or s.url) for s in some], now)

    def open_origins(self) -> list[str]:
        """Return the https origins with a robots.txt that decides the scheme of some seeds."""
        return list(self._open)

    def settle(self, at_origin: str, result: FetchResult, now: float) -> list[StoreUpdate]:
        """Decide the seeds that waited for an origin, which has answered or failed."""
        seeds = self._open.pop(at_origin, [])
        if not seeds:
            return []
        # A redirect is an answer, even if the request that followed it failed.
        is_first = str(origin(result.url)) == at_origin
        fall_back = is_first and result.status is None and result.reason in _NO_HTTPS
        pairs = [(s, s.fallback_url if fall_back and s.fallback_url else s.url) for s in seeds]
        return [self._settled(pairs, now)]

    def _settled(self, seeds: Sequence[tuple[StoredSeed, str]], now: float) -> StoreUpdate:
        targets = Targets()
        pairs = []
        for seed, url in seeds:
            page_url = canonical(url)
            self._admission.scope.add_seed(page_url)
            self._admission.add(targets, page_url, url, depth=0)
            pairs.append((seed.seed_id, page_url))
        return StoreUpdate(now, targets=targets, seeds=tuple(pairs))
