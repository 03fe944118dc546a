"""Seeding: at which URL each line of the site list is crawled.

A line with a scheme is taken at its word. One without is tried with https, and with http
where nothing speaks TLS there; a certificate that fails is a result and no reason to fall
back.
"""

from __future__ import annotations

from collections.abc import Sequence

from freshet.crawler.admission.admitting import Admission
from freshet.crawler.admission.scope import Scope
from freshet.crawler.urls import canonical, origin
from freshet.storage.records import FetchResult, SeedsSettled, StoredSeed, Targets

#: Failures that say "nobody speaks https here".
_NO_HTTPS = frozenset({"connect", "timeout_connect", "not_tls"})


class Seeding:
    """The seeds of a run; those whose scheme is open wait for their host's first answer."""

    def __init__(self, seeds: Sequence[StoredSeed], admission: Admission) -> None:
        self._admission = admission
        self._decided: list[StoredSeed] = []
        self._open: dict[str, list[StoredSeed]] = {}
        self.renew(seeds)

    def renew(self, seeds: Sequence[StoredSeed]) -> None:
        """Go on with these, and nothing else in scope."""
        self._admission.scope = Scope(self._admission.scope.kind)
        self._decided = [s for s in seeds if s.root_url is not None or s.fallback_url is None]
        self._open = {}
        for seed in seeds:
            if seed.root_url is None and seed.fallback_url is not None:
                self._open.setdefault(str(origin(seed.url)), []).append(seed)

    def decided(self, now: float) -> SeedsSettled:
        """The seeds that need no probe; sets the scope. From then on redirects may move them."""
        decided, self._decided = self._decided, []
        return self._settled([(s, s.root_url or s.url) for s in decided], now)

    def open_origins(self) -> list[str]:
        """The https origins whose robots.txt decides the scheme of some seeds."""
        return list(self._open)

    def settle(self, at_origin: str, result: FetchResult, now: float) -> list[SeedsSettled]:
        """An origin has answered, or not: decide the seeds that waited for it."""
        seeds = self._open.pop(at_origin, [])
        if not seeds:
            return []
        # A redirect was an answer, whatever became of the request that followed it.
        is_first = str(origin(result.url)) == at_origin
        fall_back = is_first and result.status is None and result.reason in _NO_HTTPS
        return [
            self._settled(
                [(s, s.fallback_url if fall_back and s.fallback_url else s.url) for s in seeds],
                now,
            )
        ]

    def _settled(self, seeds: Sequence[tuple[StoredSeed, str]], now: float) -> SeedsSettled:
        targets = Targets()
        pairs = []
        for seed, url in seeds:
            page_url = canonical(url)
            self._admission.scope.add_seed(page_url)
            self._admission.add(targets, page_url, url, depth=0)
            pairs.append((seed.seed_id, page_url))
        return SeedsSettled(tuple(pairs), now, targets)
