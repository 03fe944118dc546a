"""Retries: the one place that says whether and when a failed URL is asked for again.

Pure. A host that is down is the lane's affair: its URLs wait with it and are not charged.
A URL that fails on a host that answers is charged an attempt, and put behind the others.
"""

from __future__ import annotations

from random import Random

from freshet.crawler.politeness.lanes import (
    NO_ADDRESS,
    Answer,
    PolitenessRules,
    answer_of,
    back_off_s,
)
from freshet.storage.records import DueUrl, FetchResult, Observation, Visit
from freshet.storage.words import Kind

_FINAL = frozenset(
    {
        "address", "no_such_host", "too_large", "headers_too_large", "encoding", "tls",
        "bad_redirect", "internal",
    }
)  # fmt: skip


class FailureRetries:
    """Turns failures into visits; ``attempts`` is how often a URL is tried in one run.

    In a ``lasting`` run URLs of a name without an address wait with their host.
    """

    def __init__(
        self, rules: PolitenessRules, attempts: int, rng: Random, *, lasting: bool = False
    ) -> None:
        self._lasting = lasting
        self._rules = rules
        self._attempts = attempts
        self._rng = rng

    def obey(self, rules: PolitenessRules) -> None:
        """Wait by these rules from now on."""
        self._rules = rules

    def visit(self, due: DueUrl, result: FetchResult, now: float) -> Visit:
        """The visit of a URL that failed."""
        observation = Observation(
            due.page_id, now, Kind.FAILED, status=result.status, reason=result.reason,
            detail=result.detail, duration_s=result.duration_s,
        )  # fmt: skip
        answer = answer_of(result.status, result.reason, lasting=self._lasting)
        retry_at = self._retry_at(due, result, answer, now)
        return Visit(
            due, observation, role=due.role, retry_at=retry_at, charged=answer is not Answer.DOWN
        )

    def _retry_at(
        self, due: DueUrl, result: FetchResult, answer: Answer, now: float
    ) -> float | None:
        if self._lasting and result.reason in NO_ADDRESS:
            return now
        if result.reason in _FINAL or answer in (Answer.FINE, Answer.FORBIDDEN):
            return None
        if answer is Answer.DOWN:
            return now
        if due.attempt + 1 >= self._attempts:
            return None
        return now + back_off_s(self._rules, due.attempt + 1, self._rng)
