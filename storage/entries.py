"""The words that the store keeps, and values that the nouns in ``records.py`` consist of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cache
from math import inf
from typing import TYPE_CHECKING, Any, Final, Literal, Self, TypeAlias, TypeVar, get_args

from freshet.storage import value

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

# -- sums --------------------------------------------------------------------

Record = TypeVar("Record", bound="DataclassInstance")


def summed(records: Sequence[Record], **others: object) -> Record:
    """Return a record like the first, with the sums of those fields that are not ``others``."""
    names = [each.name for each in fields(records[0]) if each.name not in others]
    sums = {name: sum(getattr(each, name) for each in records) for name in names}
    return replace(records[0], **sums, **others)


# -- fields with a type that differs from the stored value ---------------------


def stored(kind: type | str, *, optional: bool = False) -> dict[str, object]:
    """Return dataclass metadata that describes how a field is read from a store.

    ``kind`` is bool; or a record class, with a column for each of its fields; or, for a field that
    holds a whole column, the name of a numpy type ("object": a list of texts). An ``optional``
    record is None if its first column is NULL.
    """
    return {"stored": kind, "optional": optional}


# -- words -------------------------------------------------------------------
#
# Words that the store keeps and several packages use: kinds, detection stages, roles.

#: Reason why a URL is due; ``return``: a redirect set a required cookie and led back to the URL.
Reason: TypeAlias = Literal["refresh", "discovery", "signal", "audit", "return"]

#: Role of a URL in the crawl; only ``page`` counts as a page.
Role: TypeAlias = Literal["page", "sitemap", "feed"]

#: Outcome of a request.
Outcome: TypeAlias = Literal[
    "fetched", "not_modified", "redirected", "gone", "refused", "skipped", "failed"
]

#: Result of an observation. A failed fetch never erases history.
Kind: TypeAlias = Literal[
    "new", "unchanged", "changed", "redirected", "gone", "refused", "skipped", "failed"
]
KINDS: Final = get_args(Kind)  # in the order of their codes in columns

#: The stage of change detection that decided. In the stages between ``text`` and ``blocks``, blocks
#: differ without a change: they differ at every visit (``volatile``), belong to the site's template
#: (``frame``), alternate between earlier versions (``flip``), or probably differ without an edit of
#: the page (``minor``). ``document``: all blocks are equal, and a difference in the document counts
#: as a change.
Rung: TypeAlias = Literal[
    "304", "body", "text", "volatile", "frame", "flip", "minor", "blocks", "document"
]

#: Kinds of differences between two versions of a page: words, link targets, images, states of
#: controls, order of the parts, or else the layout of the document.
Channel: TypeAlias = Literal["words", "links", "images", "state", "order", "layout"]
CHANNELS: Final = get_args(Channel)
#: A difference outside the content of a page: the site's preferences on its use.
PREFERENCES: Final = "preferences"
#: Channels of the compared text: if a change of the text proves to be noise, the others are kept.
TEXT_CHANNELS: Final = frozenset[str]({"words", "order"})
#: Reason of an ``unchanged`` verdict with channels that differ and do not count as a change.
REFRESHED: Final = "refreshed"
#: Reason of a change back to an earlier text of the page.
RETURN: Final = "return"

#: Reason of a ``new`` observation of a known page: the previous text is from another version of the
#: extractor, so the texts cannot be compared.
REBASED: Final = "text_version"

#: Reasons of failures with a response without the expected text: only white space, an empty page
#: that had content before, or binary data; for a page that had a text, also a response with the
#: media type or the status of one without text.
NO_CONTENT: Final = frozenset({"empty", "stub", "binary", "content_type", "http_204", "http_205"})

#: Reasons of failures that this program causes: an exception, or a fault of the parser process.
OWN_FAULTS: Final = frozenset({"internal", "parser"})
#: Words for such a fault.
INTERNAL_ERROR: Final = "internal error of Freshet"

#: Knowledge of an origin's robots.txt (RFC 9309, section 2.3.1).
RobotsStanding: TypeAlias = Literal["parsed", "allow_all", "unreachable"]

#: Kind of redirect that makes a URL an alias of a page.
AliasKind: TypeAlias = Literal["permanent", "temporary", "refresh"]


@dataclass(frozen=True, slots=True)
class Columns:
    """Record of columns of equal length: arrays, or lists of texts."""

    def __len__(self) -> int:
        return len(getattr(self, fields(self)[0].name))

    def take(self, rows: NDArray[np.bool_] | NDArray[np.intp]) -> Self:
        """Return these rows."""
        import numpy as np  # noqa: PLC0415  # the parser's process starts without it

        taken: dict[str, Any] = {}
        for each in fields(self):
            column = getattr(self, each.name)
            is_text = isinstance(column, list)
            taken[each.name] = np.array(column, object)[rows].tolist() if is_text else column[rows]
        return replace(self, **taken)


@dataclass(frozen=True, slots=True)
class Amendment:
    """A correction, by later visits, of the observation of a page made at ``at``."""

    at: float
    kind: Kind
    rung: Rung
    reason: str


#: Suffix of the pattern of calendar pages.
DATES: Final = " (dates)"

#: Reason of a verdict on a response that may not be content.
DOUBTFUL: Final = "doubtful"


@dataclass(frozen=True, slots=True)
class Retraction:
    """Withdrawal of a page's last capture, made at ``at`` (None: any time), as not content.

    Only a doubtful capture is withdrawn. If the page ``returns``, it has its earlier content again,
    and the capture in between is withdrawn if it was doubtful.
    """

    page_id: int
    at: float | None
    reason: str
    detail: str
    returns: bool = False


@dataclass(frozen=True, slots=True)
class CopyFinding:
    """A page of a ``pattern`` that copies another page; not a copy if ``original_id`` is None.

    A page that ``is_barren`` shows only content of other pages, most of it from the original. It
    does not count as a copy if it leads to unknown pages.
    """

    page_id: int
    pattern: str
    original_id: int | None
    is_barren: bool = False


@dataclass(frozen=True, slots=True)
class ParameterFinding:
    """Verdict that a part of a host's URLs makes copies or not, from ``pairs`` of equal pages.

    ``name`` is the name of a :class:`~freshet.storage.identity.UrlVariant`, maybe with a value.
    """

    host_id: int
    name: str
    pairs: int
    makes_copies: bool


# -- hosts: politeness, robots.txt, headers ----------------------------------


@dataclass(frozen=True, slots=True)
class RobotsRecord:
    """One origin's robots.txt as last fetched; ``body`` is already cut to the limit.

    ``stale_since`` is set while an older copy is used because the file is unreachable.
    """

    standing: RobotsStanding
    fetched_at: float
    body: bytes = b""
    reason: str | None = None
    stale_since: float | None = None


@value(frozen=True, slots=True)
class HostState:
    """Politeness state of one host that survives a run.

    ``last_exchange_at`` is the end of the last request, or None before the first one.
    """

    host_id: int
    queue: str
    last_exchange_at: float | None
    delay_s: float
    failures: int = 0
    parked_until: float | None = None
    parked_reason: str | None = None


@dataclass(frozen=True, slots=True)
class Repeats:
    """Results of plain requests to a host, after others had failed.

    ``helped`` counts those in a row that were answered, ``vain`` those in a row that failed as
    well; the last one ended at ``repeated_at``.
    """

    helped: int = 0
    vain: int = 0
    repeated_at: float = -inf


@dataclass(frozen=True, slots=True)
class Host:
    """A host (scheme, name and port) as the frontier loads it."""

    host_id: int
    origin: str
    state: HostState | None = field(default=None, metadata=stored(HostState, optional=True))
    robots: RobotsRecord | None = field(default=None, metadata=stored(RobotsRecord, optional=True))
    repeats: Repeats | None = field(default=None, metadata=stored(Repeats, optional=True))


@dataclass(frozen=True, slots=True)
class HeaderSigns:
    """Evidence about a host from the headers of one response.

    ``skew_s`` is how far the host's clock is ahead of ours, ``modified_now`` whether Last-Modified
    was the time of the response, ``etag_moved`` whether the ETag differs from the last one,
    ``text_moved`` whether the page has changed: each None if it could not be measured.
    """

    skew_s: float | None = None
    modified_now: bool | None = None
    etag_moved: bool | None = None
    text_moved: bool | None = None


# -- change signals ----------------------------------------------------------

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

#: Source of a claim: a sitemap, a feed, a response header, a hub, or a ping.
ClaimKind: TypeAlias = Literal["sitemap", "feed", "last_modified", "websub", "ping"]

#: In the order of their codes in columns.
CLAIM_KINDS: Final[tuple[ClaimKind, ...]] = get_args(ClaimKind)

#: Those that are sent to us, without a poll: their times are by our clock.
PUSHED: Final[tuple[ClaimKind, ...]] = ("websub", "ping")


@dataclass(frozen=True, slots=True)
class Claim:
    """The page at ``url`` (canonical) changed last at some time in [``since``, ``until``].

    Unix seconds, equal if the source is exact. Raises ValueError unless finite and in order.
    """

    url: str
    since: float
    until: float

    def __post_init__(self) -> None:
        if not -inf < self.since <= self.until < inf:
            raise ValueError(f"no time is in [{self.since}, {self.until}]: {self.url}")


@dataclass(frozen=True, slots=True)
class SourceReport:
    """The ``claims`` that a source of a host made at one time.

    The source is named by its ``url``, None for the host itself; ``page_id`` is the page under
    which it is visited, if it is requested itself. ``rejected`` claims were not believable.
    """

    kind: ClaimKind
    host_id: int
    url: str | None
    claims: tuple[Claim, ...]
    rejected: int = 0
    page_id: int | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Claims(Columns):
    """m claims, in the order of their receipt.

    Attributes:
        source_id: (m,), id in table ``claim_source``.
        kind: (m,), index of the source's kind in :data:`CLAIM_KINDS`.
        page_id: (m,), the page of the claimed URL: its target, if it has moved there for good.
        since, until: (m,), Unix seconds by our clock, between which the page changed last; not
            after ``received_at``.
        received_at: (m,), Unix seconds.
    """

    source_id: NDArray[np.int64] = field(metadata=stored("int64"))
    kind: NDArray[np.int8] = field(metadata=stored("int8"))
    page_id: NDArray[np.int64] = field(metadata=stored("int64"))
    since: NDArray[np.float64] = field(metadata=stored("float64"))
    until: NDArray[np.float64] = field(metadata=stored("float64"))
    received_at: NDArray[np.float64] = field(metadata=stored("float64"))


@cache
def no_claims() -> Claims:
    """Return no claims at all."""
    import numpy as np  # noqa: PLC0415  # the parser's process starts without it

    times = np.empty(0)
    return Claims(
        source_id=np.empty(0, np.int64), kind=np.empty(0, np.int8), page_id=np.empty(0, np.int64),
        since=times, until=times, received_at=times,
    )  # fmt: skip


# -- hubs (WebSub) ------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class HubLink:
    """A page's hub and the topic as which the hub knows it; URLs."""

    hub: str
    topic: str


# -- outlook: forecasts of a daemon ------------------------------------------

#: Least changes a day of the classes of :attr:`Outlook.changing`.
RATE_CLASSES: Final = (1.0, 1 / 7, 1 / 30, 1 / 365, 0.0)


@dataclass(frozen=True, slots=True)
class Audit:
    """A random audit sample: a page's ``expected`` chance to have become stale ``since`` a visit.

    ``hazard`` is the expected number of changes since then.
    """

    importance: float
    since: float
    expected: float
    hazard: float


@dataclass(frozen=True, slots=True)
class CappedQueue:
    """A host queue of ``pages`` pages that want more visits a day (``wanted``) than ``most``."""

    queue: str
    most: float
    wanted: float
    pages: int

    @property
    def refused(self) -> float:
        """Return the visits a day that go to other hosts."""
        return max(0.0, self.wanted - self.most)


@dataclass(frozen=True, slots=True)
class SiteOutlook:
    """A daemon's forecast for one site; fields as in Outlook and CappedQueue, None if unknown."""

    host_id: int
    at: float
    captured: int
    waiting: int
    gone: int
    stale: float | None
    wanted: float | None
    most: float | None
    capped: bool = field(metadata=stored(bool))


@dataclass(frozen=True, slots=True)
class DiscoveryShares:
    """Shares of the visits of an invocation, and the expected unknown pages.

    Attributes:
        first_visits: visits to pages that were never captured.
        revealing_visits: visits worth more for the new pages they may reveal than for freshness.
        refreshing_visits: all others.
        unknown_pages: expected pages that no visit has revealed yet.
        new_per_day: expected new pages a day.
    """

    first_visits: int = 0
    revealing_visits: int = 0
    refreshing_visits: int = 0
    unknown_pages: float = 0.0
    new_per_day: float = 0.0

    @property
    def share(self) -> float | None:
        """Return the share of visits made for discovery; None before the first visit."""
        found = self.first_visits + self.revealing_visits
        visits = found + self.refreshing_visits
        return found / visits if visits else None


@dataclass(frozen=True, slots=True)
class Outlook:
    """A daemon's status and forecast.

    Attributes:
        at: Unix seconds; ``began_at`` is the start of this invocation.
        budget: requests a day, by ``policy``.
        flowed: requests that the budget allowed since ``began_at``; ``forgone`` is the part not
            made because no URL was due.
        watched: pages; ``captured`` have a copy, ``gone`` no longer exist, ``waiting`` were
            never fetched.
        stale: the share of the captured pages' importance with an expected stale copy, ``harmonic``
            the expected mean of H(N); None without captured pages.
        price: 10th percentile of the values of the last visits; None if the policy has no price.
        changing: captured pages that change at least as often as each of :data:`RATE_CLASSES`.
        clocked: share of the captured pages that follow their site's change model.
        next_at: earliest start of the next request, for ``next_page_id``.
        capped: host queues where politeness allows less than is wanted, the most refused first.
        discovered: the search for new pages.
    """

    at: float
    began_at: float
    budget: float
    policy: str
    flowed: float
    forgone: float
    watched: int
    captured: int
    waiting: int
    gone: int
    stale: float | None
    harmonic: float | None
    price: float | None
    changing: tuple[int, ...]
    clocked: float
    next_at: float
    next_page_id: int | None
    capped: tuple[CappedQueue, ...] = ()
    discovered: DiscoveryShares = DiscoveryShares()
