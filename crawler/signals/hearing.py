"""What is heard of each host in the headers of its answers, added to every visit.

Whether Last-Modified means anything is decided by host: where it is mostly the time of the
answer, it is made up with the page.
"""

from __future__ import annotations

import logging
from collections import OrderedDict, deque
from dataclasses import dataclass, field, replace
from statistics import median
from typing import Final

from freshet.crawler.signals.claiming import Claimed, Complaints, claimed
from freshet.crawler.signals.headers import Times, etag_moved, text_moved, times_of
from freshet.storage.entries import ClaimKind, HeaderSigns
from freshet.storage.records import FetchResult, Observation, Visit
from freshet.storage.words import Kind, Role

log = logging.getLogger(__name__)

#: A host's clock is the median of so many answers.
_MEASURED: Final = 15
#: From so many answers on a host's Last-Modified is judged.
_JUDGED_AFTER: Final = 5
_HOSTS: Final = 20_000
#: More is worth telling: it moves what the host claims by minutes.
_TOLD_S: Final = 120.0
_ANSWERS: Final = frozenset({Kind.NEW, Kind.CHANGED, Kind.UNCHANGED})


@dataclass(slots=True)
class _Heard:
    skews: deque[float] = field(default_factory=lambda: deque(maxlen=_MEASURED))
    modified_now: int = 0
    modified_past: int = 0

    @property
    def makes_dates_up(self) -> bool:
        answers = self.modified_now + self.modified_past
        return answers >= _JUDGED_AFTER and self.modified_now > self.modified_past


class Hearing:
    """Listens to the headers of every answer."""

    def __init__(self, complaints: Complaints) -> None:
        self._complaints = complaints
        self._hosts: OrderedDict[int, _Heard] = OrderedDict()

    def skew_s(self, host_id: int) -> float:
        """By how much a host's clock is ahead of ours, 0 where nothing is known."""
        heard = self._hosts.get(host_id)
        return median(heard.skews) if heard is not None and heard.skews else 0.0

    def listen(self, visit: Visit, result: FetchResult) -> Visit:
        """The visit, with what the headers of the answer say."""
        if visit.observation.kind not in _ANSWERS:
            return visit
        times = times_of(result)
        heard = self._of(visit.due.host_id)
        self._note(heard, times, visit)
        skew = median(heard.skews) if times.skew_s is not None else None
        seen = visit.observation
        signs = HeaderSigns(
            skew,
            times.modified_now,
            etag_moved(visit.due.validators, result.header("ETag")),
            text_moved(seen.kind, seen.status),
        )
        visit = replace(visit, signs=signs, wish_s=times.wish_s)
        if visit.claim_kind is not None or visit.role is not Role.PAGE:
            return visit
        return self._with_claim(visit, result, seen, times, heard)

    def _with_claim(
        self, visit: Visit, result: FetchResult, seen: Observation, times: Times, heard: _Heard
    ) -> Visit:
        said = result.header("Last-Modified")
        if said is None or times.modified_now or heard.makes_dates_up:
            return visit
        found = claimed([(visit.due.url, said)], seen.at, self.skew_s(visit.due.host_id))
        self._complain(visit, found)
        return replace(
            visit, claim_kind=ClaimKind.LAST_MODIFIED, claims=found.claims,
            claims_rejected=found.rejected,
        )  # fmt: skip

    def _note(self, heard: _Heard, times: Times, visit: Visit) -> None:
        if times.modified_now is not None:
            heard.modified_now += times.modified_now
            heard.modified_past += not times.modified_now
        if times.skew_s is None:
            return
        heard.skews.append(times.skew_s)
        skew = median(heard.skews)
        if abs(skew) >= _TOLD_S and self._complaints.is_new(f"clock {visit.due.host_id}"):
            ahead = "ahead of" if skew > 0 else "behind"
            log.info(
                "%s: the host's clock is %.0f s %s ours; what it claims is moved by that",
                visit.due.url, abs(skew), ahead,
            )  # fmt: skip

    def _complain(self, visit: Visit, found: Claimed) -> None:
        self._complaints.tell(f"Last-Modified of {visit.due.url.split('/')[2]}", found)

    def _of(self, host_id: int) -> _Heard:
        heard = self._hosts.pop(host_id, None) or _Heard()
        self._hosts[host_id] = heard
        if len(self._hosts) > _HOSTS:
            self._hosts.popitem(last=False)
        return heard
