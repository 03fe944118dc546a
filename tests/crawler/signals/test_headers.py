"""What headers say of time, and of hosts that say it."""

from email.utils import formatdate

from freshet.crawler.signals.headers import (
    HeaderSignals,
    HostHeaders,
)
from freshet.storage.entries import Kind, Outcome, Role
from freshet.storage.records import DueUrl, FetchResult, Observation, Validators

NOW = 1_800_000_000.0
HOUR_S = 3_600.0
DAY_S = 86_400.0
URL = "https://a.example/p"


def date(at: float) -> str:
    return formatdate(at, usegmt=True)


def answer(**headers: str) -> FetchResult:
    raw = tuple((k.replace("_", "-").encode(), v.encode()) for k, v in headers.items())
    return FetchResult(URL, Outcome.FETCHED, NOW, 0.5, status=200, headers=raw)


def hear(
    headers: HostHeaders,
    result: FetchResult,
    kind: Kind = Kind.UNCHANGED,
    *,
    etag: str | None = None,
    role: Role = Role.PAGE,
) -> HeaderSignals:
    due = DueUrl(1, URL, URL, 7, NOW, validators=Validators(etag))
    return headers.signals(due, role, Observation(1, NOW, kind, status=200), result)
