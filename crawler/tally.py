"""Counts of acknowledged visits and a daemon at one moment, for progress; the user-facing error."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from freshet.storage.entries import OWN_FAULTS, REBASED, Outlook
from freshet.storage.records import Acknowledged, Observation, Visit

#: Reason for the end of a pool's run.
Ending = Literal["nothing due", "interrupted", "limit", "requests", "paused", "cut off"]

ANSWERED = frozenset({"new", "changed", "unchanged", REBASED})


class Tally:
    """Counts of one invocation; only pages count, not robots.txt, sitemaps and feeds.

    A page that is retried counts once, when it is settled. ``internal_errors`` are the failures
    through a fault of this program, by the name of the exception.
    """

    def __init__(self) -> None:
        self.fetches = 0
        self.admitted = 0
        self.kinds: Counter[str] = Counter()
        self.reasons: Counter[tuple[str, str]] = Counter()
        self.internal_errors: Counter[str] = Counter()
        self.retries = 0

    def add(self, batch: Sequence[Acknowledged]) -> None:
        """Count what the writer has committed."""
        for item in batch:
            self.fetches += item.entry.fetches
            self.admitted += item.admitted
            if isinstance(item.entry, Visit) and item.entry.role == "page":
                self._count(item.entry)
            for was, reason in item.retracted:
                self.kinds[was] -= 1
                self.kinds["failed"] += 1
                self.reasons["failed", reason] += 1

    @property
    def pages(self) -> int:
        """Pages that answered 200 or 304."""
        return sum(self.kinds[kind] for kind in ANSWERED)

    @property
    def refused_by_robots(self) -> int:
        """URLs that robots.txt forbids."""
        return self.reasons["refused", "robots"]

    @property
    def errors(self) -> int:
        """URLs that failed for good in this invocation."""
        return self.kinds["failed"]

    def _count(self, visit: Visit) -> None:
        if visit.retry_at is not None:
            self.retries += 1
            return
        observation: Observation = visit.observation
        kind = observation.kind
        self.kinds[REBASED if observation.reason == REBASED else kind] += 1
        if observation.reason is not None:
            self.reasons[observation.kind, observation.reason] += 1
        if observation.reason in OWN_FAULTS:
            # The words in brackets may differ from page to page.
            self.internal_errors[(observation.detail or "unknown").partition("(")[0]] += 1


def needs_extra(what: str, extra: str) -> str:
    """Return the message that something needs an extra that is not installed."""
    # No command: on the public package index "freshet" is another program.
    return f"{what} needs the extra {extra!r}: install Freshet with it (docs/guide/install.md)"


#: Audits of this many seconds measure the freshness of the copy.
AUDITED_S: Final = 7 * 86_400.0


@dataclass(frozen=True, slots=True, kw_only=True)
class DaemonSnapshot:
    """A daemon at one moment, and its last outlook.

    ``spent`` requests of the ``flowed`` ones, which the budget has allowed since the start;
    ``next_url`` is requested next, not before ``next_at``.
    """

    spent: int
    flowed: float
    next_at: float
    next_url: str | None
    outlook: Outlook | None
