"""Admission: which links of a page lead into the frontier, and which are held back.

Pure. Everything in scope becomes a known page; what is not crawled says why.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from functools import lru_cache

from freshet.crawler.admission.combinations import Combinations, Parts
from freshet.crawler.admission.scope import Scope
from freshet.crawler.admission.traps import (
    Proof,
    TrapKind,
    TrapLimits,
    TrapSign,
    classify,
    pattern_of,
)
from freshet.crawler.urls import origin
from freshet.storage.records import Links, Targets
from freshet.storage.words import Role

#: The pages of a site link to the same pages: what is judged by the URL alone is remembered.
_REMEMBERED = 8192

#: Indexes of indexes: the protocol allows one level, sites use two, a trap has no end.
_MAX_INDEX_DEPTH = 4


@dataclass(frozen=True, slots=True)
class AdmissionRules:
    """``max_depth`` is in links from a seed, 0 for no limit; extensions have no dot."""

    max_depth: int = 256
    excluded_extensions: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class _Judgement:
    """What a URL by itself says: its origin, and which rule or pattern it falls under.

    ``parts`` are None where it can be no combination of values that recur.
    """

    origin: str
    is_excluded: bool
    sign: TrapSign | None
    pattern: str | None
    parts: Parts | None


class Admission:
    """Judges URLs by scope, depth, ending and trap."""

    def __init__(self, scope: Scope, rules: AdmissionRules, traps: TrapLimits) -> None:
        self.scope = scope
        self._rules = rules
        self._traps = traps
        self._combinations = Combinations(traps.min_combined)
        self._judged = lru_cache(_REMEMBERED)(self._judge)

    def links(self, links: Links, depth: int, *, nofollow: bool) -> tuple[Targets, frozenset[int]]:
        """The targets among a page's links, and the columns that lead out of scope.

        ``depth`` is that of the page; ``nofollow`` holds for the page as a whole.
        """
        targets = Targets()
        offsite = set()
        for i, url in enumerate(links.urls):
            if not self.scope.contains(url):
                offsite.add(i)
                continue
            held = "nofollow" if nofollow or "nofollow" in links.rels[i].split() else None
            self.add(targets, url, links.fetch_urls[i], depth=depth + 1, held_back=held)
        return targets, frozenset(offsite)

    def sitemap(
        self, targets: Targets, urls: Iterable[tuple[str, str]], depth: int, *, index: bool
    ) -> None:
        """Append the targets among a sitemap's entries (canonical and as written)."""
        for url, fetch_url in urls:
            if index:
                held = "depth" if depth >= _MAX_INDEX_DEPTH else None
                self.add(
                    targets, url, fetch_url, depth=depth + 1, role=Role.SITEMAP, held_back=held
                )
            elif self.scope.contains(url):
                self.add(targets, url, fetch_url, depth=depth + 1)

    def add(
        self,
        targets: Targets,
        url: str,
        fetch_url: str,
        *,
        depth: int,
        role: Role = Role.PAGE,
        redirects: int = 0,
        held_back: str | None = None,
    ) -> None:
        """Append one URL; held back where a rule says so."""
        shape, kind, cap, pattern = None, None, 0, None
        judgement = self._judged(url)
        if role is Role.PAGE and held_back is None:
            held_back = self._held_back(judgement, depth)
            pattern = self._pattern(judgement)
            if sign := judgement.sign:
                shape, kind, cap = sign.shape, f"trap: {sign.kind}", sign.cap
        targets.urls.append(url)
        targets.fetch_urls.append(fetch_url)
        targets.origins.append(judgement.origin)
        targets.roles.append(role)
        targets.depths.append(depth)
        targets.redirects.append(redirects)
        targets.held_back.append(held_back)
        targets.trap_shapes.append(shape)
        targets.trap_kinds.append(kind)
        targets.trap_caps.append(cap)
        targets.patterns.append(pattern)

    def pattern(self, url: str) -> str | None:
        """The pattern of bounded URLs to which a canonical URL belongs, None for none."""
        return self._pattern(self._judged(url))

    def proof(self, url: str) -> Proof | None:
        """Why the page at a canonical URL has to show something new; None: it has not."""
        judgement = self._judged(url)
        if judgement.sign is not None and judgement.sign.kind is TrapKind.CALENDAR:
            return Proof.DATED
        return Proof.COMBINED if self._combinations.is_combined(judgement.parts) else None

    def _pattern(self, judgement: _Judgement) -> str | None:
        """That of combinations gathers what the names of parameters would keep apart."""
        return self._combinations.pattern(judgement.parts) or judgement.pattern

    def _held_back(self, judgement: _Judgement, depth: int) -> str | None:
        if self._rules.max_depth and depth > self._rules.max_depth:
            return "depth"
        return "extension" if judgement.is_excluded else None

    def _judge(self, url: str) -> _Judgement:
        sign = classify(url, self._traps)
        combines = sign is None or sign.kind is TrapKind.QUERY
        return _Judgement(
            str(origin(url)),
            _extension(url) in self._rules.excluded_extensions,
            sign,
            pattern_of(sign) if sign is not None else None,
            self._combinations.note(url) if combines else None,
        )


def _extension(url: str) -> str:
    """The ending of the path's last segment, lower-case, without the dot."""
    path = url.split("?", 1)[0]
    name = path.rsplit("/", 1)[-1]
    return name.rsplit(".", 1)[-1].lower() if "." in name and path.count("/") > 2 else ""


def sitemap_links(urls: Collection[tuple[str, str]]) -> Links:
    """A sitemap's entries as links."""
    return Links(
        tuple(u for u, _ in urls),
        tuple(f for _, f in urls),
        ("sitemap",) * len(urls),
        ("",) * len(urls),
    )
