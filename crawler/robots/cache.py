"""The robots cache: the robots.txt of each host, and whether it closes the host.

Invariant: a page is judged only by a fresh record, or by an older copy while the
file is unreachable. Consequence: an unreachable robots.txt without a copy closes its host
(RFC 9309, section 2.3.1.4: complete disallow), and is requested again with back-off.

The time and the random generator are arguments.
"""

from collections import OrderedDict
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from math import ceil, inf, log2
from random import Random

from freshet.crawler.fetch.bounds import ROBOTS_BYTES, SITEMAP_URL_CHARS, LruCache
from freshet.crawler.frontier.politeness import PolitenessRules, back_off_s
from freshet.crawler.robots import (
    RobotsTxt,
    RobotsVerdict,
    UsageLine,
    after_fetch,
    decisive,
    in_force,
)
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


#: The longest pause of a host with an unreachable robots.txt: the host may have been shut down.
_LONGEST_PAUSE_S = 30 * 86_400.0
_MOST_DOUBLINGS = 20
#: Minimum lifetime of a robots.txt, in requests to its host at the longest delay.
_LEAST_REQUESTS = 3

_NONE = RobotsTxt(closed=True, size_bytes=0)


@dataclass(slots=True, eq=False)
class RobotsCache:
    """Robots records of all hosts, and the parsed files that were used last.

    ``put_away`` has the ids of hosts with recently evicted files; the frontier empties it.
    *Invariant*: without its file here a host is not fresh, and all its URLs are forbidden, until
    the file is read from the store.
    """

    agent: str
    rules: RobotsRules
    politeness: PolitenessRules
    rng: Random
    room_bytes: int = ROBOTS_BYTES
    #: Uses of the crawl: a page that forbids one of them is not fetched.
    uses: Collection[str] = ()
    _entries: dict[int, _Entry] = field(default_factory=dict, init=False)
    put_away: set[int] = field(default_factory=set, init=False)
    _files: OrderedDict[int, RobotsTxt] = field(default_factory=OrderedDict, init=False)
    _held_bytes: int = field(default=0, init=False)
    _naming: LruCache[str, set[str]] = field(default_factory=lambda: LruCache(10_000), init=False)
    _barred: dict[int, tuple[str, str]] = field(default_factory=dict, init=False)
    #: The TDM reservations files that were read in this run.
    _reserved: LruCache[int, Sequence[UsageLine]] = field(
        default_factory=lambda: LruCache(10_000), init=False
    )
    #: Hosts that share another host's file, and hosts that shared one until a page answered.
    _sharing: set[int] = field(default_factory=set, init=False)
    _parted: set[int] = field(default_factory=set, init=False)

    def learn(self, host: Host) -> None:
        """Add the record of a host from an earlier run, and its file if the record includes it."""
        record = host.robots
        if record is not None and host.host_id not in self._entries:
            recheck_at = record.fetched_at + self.rules.max_age_s
            if record.standing == "unreachable" or record.stale_since is not None:
                recheck_at = 0.0
            self._entries[host.host_id] = _Entry(replace(record, body=b""), recheck_at)
            if record.body or record.standing != "parsed":
                self._keep(host.host_id, host.origin, in_force(record))

    def is_put_away(self, host_id: int) -> bool:
        """Return whether the file of a known host must be read from the store."""
        return host_id in self._entries and host_id not in self._files

    def restore(self, host: Host, file: RobotsTxt) -> None:
        """Restore an evicted file from the store; drop the record if the store has another file."""
        if self.is_put_away(host.host_id):
            entry = self._entries.pop(host.host_id)
            if host.robots is not None and host.robots.fetched_at == entry.record.fetched_at:
                self._entries[host.host_id] = entry
                self._keep(host.host_id, host.origin, file)

    def may_share(self, host_id: int, target_id: int) -> bool:
        """Return whether a host that only redirects to another host may share that host's file.

        It may if the host's file was equal or had no rules. A file with other rules must be
        requested again (RFC 9309: a robots.txt applies to one origin).
        """
        own, other = self._files.get(host_id), self._files.get(target_id)
        if own is None or other is None or {host_id, target_id} & self._barred.keys():
            return False
        records = self._entries[host_id].record, self._entries[target_id].record
        is_reachable = all(each.standing != "unreachable" for each in records)
        return is_reachable and host_id not in self._parted and own in (other, RobotsTxt())

    def share(self, host_id: int, origin: str, target_id: int) -> None:
        """Judge a host by the file of another host while that file is fresh; keep the record.

        Call only after :meth:`may_share` returned True.
        """
        self._entries[host_id].recheck_at = self._entries[target_id].recheck_at
        self._keep(host_id, origin, self._file(target_id))
        self._sharing.add(host_id)

    def part(self, host_id: int) -> bool:
        """End the sharing of a host that does not only redirect; return whether it shared a file.

        The host's robots.txt is then due before its next page.
        """
        is_sharing = host_id in self._sharing
        if is_sharing:
            self._sharing.remove(host_id)
            self._parted.add(host_id)
            self._entries[host_id].recheck_at = 0.0
        return is_sharing

    def shift(self, by: float) -> None:
        """Shift all times by a jump of the clock; files keep their age."""
        for entry in self._entries.values():
            entry.recheck_at += by

    def settle(
        self, host_id: int, origin: str, fetched: RobotsRecord, now: float, file: RobotsTxt = _NONE
    ) -> RobotsRecord:
        """Record a fetch, and its ``file`` if already parsed; return the record in force.

        The result is the fetched record, or the record of an older copy, without a body.
        """
        self._sharing.discard(host_id)
        self._parted.discard(host_id)
        entry = self._entries.get(host_id)
        failed = fetched.standing == "unreachable"
        failures = (entry.failures if entry else 0) + 1 if failed else 0
        previous = entry.record if entry else None
        record = after_fetch(previous, fetched, now, self.rules.stale_max_age_s)
        until = now + self._pause_s(failures) if failed else fetched.fetched_at + self._max_age_s
        self._entries[host_id] = _Entry(replace(record, body=b""), until, failures)
        if record is fetched:
            self._keep(host_id, origin, in_force(fetched) if file is _NONE else file)
        return record

    @property
    def _max_age_s(self) -> float:
        """Return the lifetime of a file, at least three requests at the longest delay.

        With a shorter lifetime robots.txt would be requested before each page, and no page ever.
        """
        of = self.politeness
        longest = max(of.delay_s, of.crawl_delay_cap_s, of.slow_cap_s)
        return max(self.rules.max_age_s, _LEAST_REQUESTS * longest)

    def _pause_s(self, failures: int) -> float:
        """Return the pause after failures; beyond ``back_off_max_s`` it doubles up to 30 days."""
        rules = self.politeness
        pause, longest = back_off_s(rules, failures, self.rng), rules.back_off_max_s
        if rules.back_off_factor <= 1 or rules.back_off_initial_s >= longest:
            return pause
        # Number of failures after which the pause reaches ``back_off_max_s``.
        full = 1 + ceil(log2(longest / rules.back_off_initial_s) / log2(rules.back_off_factor))
        doublings = min(max(0, failures - full), _MOST_DOUBLINGS)
        return min(pause * float(2**doublings), max(longest, _LONGEST_PAUSE_S))

    def pardon(self, host_id: int, since: float) -> bool:
        """Forget fetch failures that began at ``since`` or later; return whether there were any."""
        entry = self._entries.get(host_id)
        if entry is None or not entry.failures:
            return False
        record = entry.record
        began_at = record.fetched_at if record.stale_since is None else record.stale_since
        if began_at < since:
            return False
        entry.failures, entry.recheck_at = 0, 0.0
        return True

    def bar(self, host_id: int, reason: str, detail: str) -> None:
        """Forbid all requests to a host in this run, because of its name or address."""
        self._barred[host_id] = reason, detail

    def barred(self, host_id: int) -> tuple[str, str] | None:
        """Return the reason and the detail for which a host is barred, or None if it is not."""
        return self._barred.get(host_id)

    def is_fresh(self, host_id: int, now: float) -> bool:
        """Return whether pages of the host may be judged now."""
        return now < self.fresh_until(host_id)

    def fresh_until(self, host_id: int) -> float:
        """Return the time until which pages of the host may be judged; 0 if they may not be."""
        if host_id in self._barred:
            return inf
        entry = self._entries.get(host_id)
        if entry is None or host_id not in self._files or entry.record.standing == "unreachable":
            return 0.0
        return entry.recheck_at

    def closed(self, host_id: int, now: float) -> tuple[float, str | None]:
        """Return the time until which the host is closed, and why; (0, None) if it is open.

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
        found = self._file(host_id).verdict(self.agent, url)
        if not (found.allowed and self.uses):
            return found
        lines = [
            *self._file(host_id).usage(self.agent, url), *(self.reservation(host_id, url) or ())
        ]  # fmt: skip
        if not lines:
            return found
        from freshet.crawler.robots.preferences import forbidding, of_lines  # noqa: PLC0415 - few files have such lines

        forbids = forbidding([*of_lines(lines, "robots")], self.uses)
        return found if forbids is None else RobotsVerdict(allowed=False, rule=forbids.text)

    def usage(self, host_id: int, url: str) -> list[UsageLine] | None:
        """Return the usage lines for a page; None if the host's file is not in memory."""
        return self._file(host_id).usage(self.agent, url) if host_id in self._files else None

    def reserve(self, host_id: int, lines: Sequence[UsageLine]) -> None:
        """Record the lines of a host's TDM reservations file (``/.well-known/tdmrep.json``)."""
        self._reserved[host_id] = lines

    def reservation(self, host_id: int, url: str) -> list[UsageLine] | None:
        """Return the TDM reservation lines for a page; None if the file is unknown in this run."""
        lines = self._reserved.use(host_id)
        return None if lines is None else decisive(lines, url)

    def crawl_delay_s(self, host_id: int) -> float:
        """Return the Crawl-delay for this crawler, 0 if there is none."""
        return self._file(host_id).crawl_delay_s(self.agent) or 0.0

    def sitemaps(self, host_id: int) -> tuple[str, ...]:
        """Return the sitemaps listed in the host's robots.txt."""
        return self._file(host_id).sitemaps

    def naming_origins(self, sitemap_url: str) -> frozenset[str]:
        """Return other origins that list a sitemap in robots.txt (sitemaps.org: cross-submits)."""
        return frozenset(self._naming.get(sitemap_url, ()))

    def _keep(self, host_id: int, origin: str, file: RobotsTxt) -> None:
        """Keep a parsed file, and evict the least recently used files beyond ``room_bytes``."""
        self._held_bytes += file.size_bytes - self._files.pop(host_id, _NONE).size_bytes
        self._files[host_id] = file
        while self._held_bytes > self.room_bytes and len(self._files) > 1:
            last, old = self._files.popitem(last=False)
            self._held_bytes -= old.size_bytes
            self.put_away.add(last)
        for named in file.sitemaps:
            url = resolve(named, f"{origin}/robots.txt") or named
            if len(url) <= SITEMAP_URL_CHARS and not url.startswith(f"{origin}/"):
                self._naming.setdefault(url, set()).add(origin)

    def _file(self, host_id: int) -> RobotsTxt:
        if host_id in self._files:
            self._files.move_to_end(host_id)
        return self._files.get(host_id, _NONE)
