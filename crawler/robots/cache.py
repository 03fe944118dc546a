"""The robots cache: every host's robots.txt, and its consequences for the host.

Invariant: a page is judged only by a record that is fresh, or by an older copy while the
file is unreachable. Consequence: an unreachable robots.txt without a copy closes its host
(RFC 9309, section 2.3.1.4: complete disallow), and is requested again with back-off.

The time and the random generator are arguments.
"""

from dataclasses import dataclass, field
from functools import partial
from math import inf
from random import Random

from freshet.crawler.lru import LruCache
from freshet.crawler.politeness import PolitenessRules, back_off_s
from freshet.crawler.robots.parser import RobotsTxt, RobotsVerdict, after_fetch, in_force
from freshet.crawler.urls import resolve
from freshet.storage.entries import Host, RobotsRecord


@dataclass(frozen=True, slots=True)
class RobotsRules:
    """The lifetimes of a robots.txt, in seconds, and its maximal size."""

    max_age_s: float = 86_400.0
    stale_max_age_s: float = 2_592_000.0
    max_bytes: int = 512_000
    max_redirects: int = 5
    sitemaps: bool = True


@dataclass(slots=True)
class _Entry:
    record: RobotsRecord
    recheck_at: float
    failures: int = 0


_PARSED_AT_ONCE = 2_048
_NOTHING_FORBIDDEN = RobotsTxt()


@dataclass(slots=True, eq=False)
class RobotsCache:
    """Records by host id; the parsed form of the files used last is kept."""

    agent: str
    rules: RobotsRules
    politeness: PolitenessRules
    rng: Random
    _entries: dict[int, _Entry] = field(default_factory=dict, init=False)
    _files: LruCache[int, RobotsTxt] = field(
        default_factory=partial(LruCache, _PARSED_AT_ONCE), init=False
    )
    _naming: dict[str, set[str]] = field(default_factory=dict, init=False)
    _barred: dict[int, tuple[str, str]] = field(default_factory=dict, init=False)

    def obey(self, politeness: PolitenessRules) -> None:
        """Apply new rules to the retries of unreachable files."""
        self.politeness = politeness

    def learn(self, host: Host) -> None:
        """Add the record of a host from an earlier run."""
        record = host.robots
        if record is not None and host.host_id not in self._entries:
            recheck_at = record.fetched_at + self.rules.max_age_s
            if record.standing == "unreachable" or record.stale_since is not None:
                recheck_at = 0.0
            self._take(host.host_id, host.origin, _Entry(record, recheck_at))

    def shift(self, by: float) -> None:
        """Follow a jump of the time: files keep their age."""
        for entry in self._entries.values():
            entry.recheck_at += by

    def settle(self, host_id: int, origin: str, fetched: RobotsRecord, now: float) -> RobotsRecord:
        """Record a fetch; return the record in force: it, or an older copy that still counts."""
        entry = self._entries.get(host_id)
        failed = fetched.standing == "unreachable"
        failures = (entry.failures if entry else 0) + 1 if failed else 0
        previous = entry.record if entry else None
        record = after_fetch(previous, fetched, now, self.rules.stale_max_age_s)
        pause = back_off_s(self.politeness, failures, self.rng) if failed else self.rules.max_age_s
        self._take(host_id, origin, _Entry(record, now + pause, failures))
        return record

    def bar(self, host_id: int, reason: str, detail: str) -> None:
        """Forbid all requests to a host in this run, because of its name or address."""
        self._barred[host_id] = reason, detail

    def barred(self, host_id: int) -> tuple[str, str] | None:
        """Return the word and the sentence why the host gets no requests at all, or None."""
        return self._barred.get(host_id)

    def is_fresh(self, host_id: int, now: float) -> bool:
        """Return whether pages of the host may be judged now."""
        return now < self.fresh_until(host_id)

    def fresh_until(self, host_id: int) -> float:
        """Return the time until which pages of the host may be judged; 0 where they may not be."""
        if host_id in self._barred:
            return inf
        entry = self._entries.get(host_id)
        if entry is None or entry.record.standing == "unreachable":
            return 0.0
        return entry.recheck_at

    def closed(self, host_id: int, now: float) -> tuple[float, str | None]:
        """Return the time until which the host is closed, and why; a past time where it is open.

        A barred host is open: its pages can be refused at once.
        """
        entry = self._entries.get(host_id)
        if host_id in self._barred or entry is None or entry.record.standing != "unreachable":
            return 0.0, None
        return max(now, entry.recheck_at), f"robots.txt unreachable: {entry.record.reason}"

    def verdict(self, host_id: int, url: str) -> RobotsVerdict:
        """Return the verdict of the host's robots.txt on a URL."""
        if host_id in self._barred:
            return RobotsVerdict(allowed=False, rule=self._barred[host_id][1])
        return self._parsed(host_id).verdict(self.agent, url)

    def crawl_delay_s(self, host_id: int) -> float:
        """Return the Crawl-delay for us, 0 where there is none."""
        return self._parsed(host_id).crawl_delay_s(self.agent) or 0.0

    def sitemaps(self, host_id: int) -> tuple[str, ...]:
        """Return the sitemaps that the host's robots.txt names."""
        return tuple(self._parsed(host_id).sitemaps)

    def naming_origins(self, sitemap_url: str) -> frozenset[str]:
        """Return the origins whose robots.txt names this sitemap (sitemaps.org, cross-submits)."""
        return frozenset(self._naming.get(sitemap_url, ()))

    def _take(self, host_id: int, origin: str, entry: _Entry) -> None:
        self._entries[host_id] = entry
        self._files.pop(host_id, None)
        for named in self.sitemaps(host_id):
            url = resolve(named, f"{origin}/robots.txt") or named
            self._naming.setdefault(url, set()).add(origin)

    def _parsed(self, host_id: int) -> RobotsTxt:
        """Return the parsed file, from the least-recently-used cache."""
        parsed = self._files.use(host_id)
        if parsed is None:
            entry = self._entries.get(host_id)
            parsed = in_force(entry.record) if entry else _NOTHING_FORBIDDEN
            self._files[host_id] = parsed
        return parsed
