"""Records that packages exchange, made of the values in :mod:`freshet.storage.entries`.

In order of use: a :class:`DueUrl` leaves the frontier, is fetched to a :class:`FetchResult`, is
reduced and compared to an :class:`Observation`, and is stored as part of a :class:`Visit`.
Times named ``*_at`` are Unix seconds (UTC, float); durations are named ``*_s``.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache
from itertools import chain
from typing import Any, NamedTuple, Protocol, TypeAlias, TypeVar

from freshet.storage import entries, value

# -- targets: links of a page, and URLs for the frontier ---------------------


@dataclass(frozen=True, slots=True)
class Links:
    """The links of one page in document order, as columns of equal length.

    ``urls`` are canonical; ``fetch_urls`` are resolved, without the fragment; ``rels`` are
    lower-case, space-separated and sorted; ``anchors`` are the link texts.
    """

    urls: tuple[str, ...] = ()
    fetch_urls: tuple[str, ...] = ()
    rels: tuple[str, ...] = ()
    anchors: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.urls)


#: A URL for the frontier: a row with the columns of :class:`Targets`.
Target: TypeAlias = tuple[
    str, str, str, entries.Role, int, int,
    str | None, str | None, str | None, int, str | None,
]  # fmt: skip


class Targets(list[Target]):
    """URLs for the frontier, one per row.

    ``held_back`` is the reason why a URL is known but not crawled (``nofollow``, ``depth`` …), or
    None. ``trap_shapes`` and ``trap_kinds`` name the limited pattern of a URL; at most
    ``trap_caps`` of its URLs are crawled. ``patterns`` name the pattern that is closed when its
    pages prove to be copies.
    """

    COLUMNS = (
        "urls", "fetch_urls", "origins", "roles", "depths", "redirects",
        "held_back", "trap_shapes", "trap_kinds", "trap_caps", "patterns",
    )  # fmt: skip

    @property
    def urls(self) -> list[str]:
        """Return the canonical URLs."""
        return [row[0] for row in self]

    def column(self, name: str) -> list[Any]:
        """Return the values of a column."""
        place = self.COLUMNS.index(name)
        return [row[place] for row in self]


class SitemapSource(NamedTuple):
    """A sitemap that redirects to another sitemap, or an index that lists it.

    ``robots`` is the robots.txt of its host, empty if both sitemaps are on one host.
    """

    url: str
    is_seed: bool
    robots: bytes


@dataclass(frozen=True, slots=True)
class Alias:
    """The visited URL as an alias of the page at ``url``.

    If ``again``, that page is requested even if it was requested in this run.
    """

    url: str
    kind: entries.AliasKind
    again: bool = False


@dataclass(frozen=True, slots=True)
class Churn:
    """New links that a visit saw on a page since the visit at ``since`` (Unix seconds).

    ``appeared`` counts links to pages that were unknown at that time, ``dropped`` counts removed
    links, and ``stayed`` counts links that appeared after the first visit and are still present.
    """

    since: float
    appeared: int
    dropped: int
    stayed: int


@dataclass(frozen=True, slots=True)
class Validators:
    """Validators of a response (RFC 9110, section 8.8)."""

    etag: str | None = None
    last_modified: str | None = None


@dataclass(frozen=True, slots=True)
class Digests:
    """Digests of a page's last good capture, 16 bytes each (BLAKE2b).

    ``text_version`` is the version of the extractor that made the text.
    """

    body: bytes
    text: bytes | None
    text_version: str | None = None

    def is_comparable(self, text_version: str | None) -> bool:
        """Return whether a text of this extractor version can be compared with the stored text."""
        return self.text is None or self.text_version == text_version


@dataclass(frozen=True, slots=True)
class Rejected:
    """A page's last response if it was not content.

    ``digest`` is a digest of the rules and the bytes, ``reason`` is a word. These bytes were first
    seen at ``since``.
    """

    digest: bytes
    reason: str
    since: float


@dataclass(frozen=True, slots=True)
class Doubt:
    """A doubt whether a page's last content is any: the kind of block page, as a word.

    ``probability`` (0 to 1) is an estimate, ``why`` a sentence for people.
    """

    kind: str
    probability: float
    why: str


@value(frozen=True, slots=True)
class DueUrl:
    """A URL that leaves the frontier.

    ``url`` is the canonical form, the page's identity; ``fetch_url`` is the URL that is requested.
    ``attempt`` counts failed tries in this run, ``redirects`` the hops that led here.
    ``digests`` is None before the first good capture. If the last response was ``rejected``, the
    ``validators`` are its validators. ``doubt`` is the doubt about the last good capture.
    ``not_modified`` counts the 304s in a row since a response that was read at ``read_at``. At
    ``plain_at`` a plain request was answered after another had failed.
    ``repeat_of`` is the reason of the failure after which this visit repeats the request.
    ``preferences`` has the statements about the page's use, as stored.
    """

    page_id: int
    url: str
    fetch_url: str
    host_id: int
    due_at: float
    reason: entries.Reason = "discovery"
    role: entries.Role = "page"
    depth: int = 0
    attempt: int = 0
    redirects: int = 0
    seed_id: int | None = None
    validators: Validators = field(default_factory=Validators, metadata=entries.stored(Validators))
    digests: Digests | None = field(default=None, metadata=entries.stored(Digests, optional=True))
    rejected: Rejected | None = field(
        default=None, metadata=entries.stored(Rejected, optional=True)
    )
    doubt: Doubt | None = field(default=None, metadata=entries.stored(Doubt, optional=True))
    audit: entries.Audit | None = field(
        default=None, metadata=entries.stored(entries.Audit, optional=True)
    )
    not_modified: int = 0
    read_at: float | None = None
    plain_at: float | None = None
    repeat_of: str | None = None
    preferences: str | None = None


#: Few names are asked for, each of every page.
_lower = lru_cache(256)(str.lower)


@value(frozen=True, slots=True)
class FetchResult:
    """The result of one request, as a value: a failure is a result, never an exception.

    ``reason`` is a short stable word (``dns``, ``tls``, ``timeout``, ``too_large``, ``http_500`` …)
    unless the outcome is ``fetched`` or ``not_modified``; ``detail`` is a sentence for people.
    Headers are raw, ``wire_body`` is as received, ``body`` decoded, ``location`` the resolved
    redirect target. ``request_headers`` is empty if nothing was sent, ``status_line`` if nothing
    was received. ``truncated`` is a word of WARC 1.1 (section 5.13) if ``wire_body`` is incomplete,
    else None. ``requests`` counts a browser's requests for a rendered page, by host queue, and
    ``body`` is then its document; None: the page was not rendered. ``repairs`` names the repairs of
    the response. ``head`` has the bytes of its head as received, from the network.
    """

    url: str
    outcome: entries.Outcome
    started_at: float
    duration_s: float
    status: int | None = None
    reason: str | None = None
    detail: str | None = None
    request_headers: tuple[tuple[str, str], ...] = ()
    headers: tuple[tuple[bytes, bytes], ...] = ()
    wire_body: bytes = b""
    body: bytes = b""
    peer: str | None = None
    location: str | None = None
    retry_after_s: float | None = None
    status_line: bytes = b""
    truncated: str | None = None
    requests: Mapping[str, int] | None = None
    repairs: tuple[str, ...] = ()
    head: bytes = b""
    # The values by name in lower case.
    _values: dict[str, tuple[str, ...]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    @property
    def ended_at(self) -> float:
        """Return the end of the request, in Unix seconds."""
        return self.started_at + self.duration_s

    def header(self, name: str) -> str | None:
        """Return the first header of that name, decoded as Latin-1, or None."""
        values, key = self._values or self._read(), _lower(name)
        return values[key][0] if key in values else None

    def header_values(self, name: str) -> Sequence[str]:
        """Return all headers of that name in order, decoded as Latin-1."""
        values, key = self._values or self._read(), _lower(name)
        return values.get(key, ())

    def _read(self) -> Mapping[str, tuple[str, ...]]:
        """Decode the headers, which is done once."""
        values = self._values
        # All at once: each of a dozen would take a call.
        text = b"\n".join(chain.from_iterable(self.headers)).decode("latin-1")
        lines, keys = text.split("\n"), text.lower().split("\n")
        if len(lines) != 2 * len(self.headers):
            # What an archive has may be anything.
            lines = [each.decode("latin-1") for each in chain.from_iterable(self.headers)]
            keys = [each.lower() for each in lines]
        for key, each in zip(keys[::2], lines[1::2], strict=True):
            values[key] = (*values[key], each) if key in values else (each,)
        return values


@value(frozen=True, slots=True)
class Observation:
    """The result of one visit to one page. Append-only.

    ``resemblance`` (0 to 1) and its standard error are Broder's estimate from MinHash values, or
    None. ``kinds`` names the channels that differ, in the order of :data:`.entries.CHANNELS` with
    spaces between; for an ``unchanged`` page they do not count as a change.
    """

    page_id: int
    at: float
    kind: entries.Kind
    rung: entries.Rung | None = None
    status: int | None = None
    reason: str | None = None
    detail: str | None = None
    resemblance: float | None = None
    resemblance_se: float | None = None
    blocks_added: int | None = None
    blocks_removed: int | None = None
    duration_s: float = 0.0
    size_bytes: int | None = None
    kinds: str | None = None

    @property
    def visited_at(self) -> datetime:
        """The time of the visit, in UTC."""
        return datetime.fromtimestamp(self.at, UTC)


@value(frozen=True, slots=True)
class Capture:
    """The stored content of a page with other bytes than at the last visit.

    ``body`` is zstd-compressed, None if it is not kept; ``sketch`` is versioned bytes, None without
    text; ``noindex`` is the page's directive. ``words`` has the lines for the search index
    (:class:`.extensions.Indexed`), None without an index or without new lines. ``channels`` has
    digests of the parts of its document, None if they are not made yet.
    """

    digests: Digests
    size_bytes: int
    content_type: str | None = None
    encoding: str | None = None
    sketch: bytes | None = None
    body: bytes | None = None
    title: str | None = None
    language: str | None = None
    canonical_url: str | None = None
    noindex: bool = False
    noarchive: bool = False
    nofollow: bool = False
    words: str | None = None
    channels: bytes | None = None


@dataclass(frozen=True, slots=True)
class PageHistory:
    """The stored state with which a page's next text is compared.

    ``sketch`` and ``memory`` are versioned bytes; ``still`` counts the visits since then
    without a difference. ``text_version`` is as in :class:`Digests`.
    """

    sketch: bytes
    memory: bytes | None
    still: int
    text_version: str | None = None


@value(frozen=True, slots=True)
class Visit:
    """All changes that one visit makes to the store, in one transaction.

    ``validators``, ``links`` and ``memory`` (versioned bytes) replace the page's,
    ``not_content`` (versioned bytes) the knowledge about its host, when not None; ``offsite`` marks
    the columns of ``links`` that leave the scope. ``retry_at`` keeps the URL in the frontier
    (``charged`` adds to its attempts), to be requested at ``fetch_url``. ``fetches`` counts
    requests. ``amendments`` corrects earlier observations, ``retractions`` names captures that
    were not content, ``copies`` counts for patterns of bounded URLs, ``parameters`` has the
    parts of a host's URLs that make copies. ``said`` has claims of changes. ``noindex`` is the
    directive of the headers of content, None without one; ``signs`` and ``wish_s`` are read from
    the headers, None without a response. ``advertised`` is the hub that the page names.
    ``rejected`` is a response that was not content, else None. ``doubt`` is the doubt about its
    content. ``preferences`` has the new statements about the page's use ("": none), as stored.
    ``plain_at`` is as in :class:`DueUrl`, ``repeats`` belongs to the host with that id; None: as
    before. ``rest`` has further entries; each is made when the one before has committed.
    """

    due: DueUrl
    observation: Observation
    role: entries.Role = "page"
    fetches: int = 1
    validators: Validators | None = None
    capture: Capture | None = None
    links: Links | None = None
    offsite: frozenset[int] = frozenset()
    targets: Targets | None = None
    alias: Alias | None = None
    retry_at: float | None = None
    charged: bool = True
    fetch_url: str | None = None
    host: entries.HostState | None = None
    new_root: str | None = None
    memory: bytes | None = None
    amendments: tuple[entries.Amendment, ...] = ()
    not_content: bytes | None = None
    retractions: tuple[entries.Retraction, ...] = ()
    copies: tuple[entries.CopyFinding, ...] = ()
    parameters: tuple[entries.ParameterFinding, ...] = ()
    said: entries.SourceReport | None = None
    noindex: bool | None = None
    signs: entries.HeaderSigns | None = None
    wish_s: float | None = None
    advertised: entries.HubLink | None = None
    rejected: Rejected | None = None
    doubt: Doubt | None = None
    preferences: str | None = None
    plain_at: float | None = None
    repeats: tuple[int, entries.Repeats] | None = None
    rest: "AsyncIterator[StoreUpdate] | None" = field(default=None, repr=False, compare=False)

    @property
    def at(self) -> float:
        """Return the time of the observation, in Unix seconds."""
        return self.observation.at


@dataclass(frozen=True, slots=True)
class StoredSeed:
    """A line of the site list; ``seed_id`` is 0 until it is stored.

    ``url`` is tried first, ``fallback_url`` if the line has no scheme and ``url`` does not answer.
    New items of the site lose half of their value in ``half_life_hours``. The scope begins at
    ``root_url``, None until that is known.
    """

    text: str
    url: str
    fallback_url: str | None
    importance: float = 1.0
    half_life_hours: float | None = None
    seed_id: int = 0
    root_url: str | None = None
    page_id: int | None = None


@dataclass(frozen=True, slots=True)
class Estimate:
    """The daemon's belief about one page at one moment; a row of table ``estimate``.

    Attributes:
        page_id: of the page.
        at: Unix seconds of the valuation.
        visited_at: the last visit that the estimate includes; before the first visit, when the page
            was found.
        rate: changes a day; between ``low`` and ``high`` with a probability of 90 %.
        hazard: x, the changes expected from the last visit until ``at``: the copy is stale with
            probability 1 − e^{−x}.
        importance: μ.
        clocked: 0 to 1, the weight of the site's rhythm in ``hazard``.
        claimed: whether the page's change signals are trusted; None without signals.
        worth: of a visit at ``at``; None if the policy has no index, or if the page precedes all
            others.
        urgent: whether the page is a new item of an ephemeral source, to be fetched at once.
        reveals: expected new pages that a visit reveals.
        arrival_rate: new items a day at an ephemeral source; an item loses half of its value in
            ``half_life_hours``. None elsewhere.
        planned: visits a day by a rate policy's plan; None under other policies.
        not_before: Unix seconds before which the page is not visited; None: no limit.
        due_at: Unix seconds at which a visit is expected to be worth the price, or is planned;
            None: not for years, or unknown.
        paid: worth of the last visit when the page was chosen; None: unknown.
    """

    page_id: int
    at: float
    visited_at: float
    rate: float
    low: float
    high: float
    hazard: float
    importance: float
    clocked: float = 0.0
    claimed: bool | None = field(default=None, metadata=entries.stored(bool))
    worth: float | None = None
    urgent: bool = field(default=False, metadata=entries.stored(bool))
    reveals: float = 0.0
    arrival_rate: float | None = None
    half_life_hours: float | None = None
    planned: float | None = None
    not_before: float | None = None
    due_at: float | None = None
    paid: float | None = None


class TableChange(Protocol):
    """A change of an extension's tables, written in the transaction of its :class:`StoreUpdate`."""

    def __call__(self, db: Any, /) -> None:
        """Write it with this connection of :mod:`sqlite3`."""


@dataclass(frozen=True, slots=True)
class StoreUpdate:
    """All changes that something other than a visit makes to the store, in one transaction.

    ``fetches`` counts requests; afterwards the host is in the state ``host``. ``robots`` is the new
    robots.txt of the host with that id, ``repeats`` as in :class:`Visit`. ``seeds`` are pairs of a
    seed's id and the URL at which it is crawled. ``said`` has claims that a source pushed without a
    request. ``change`` is a change of an extension's tables. ``outlook``, ``sites`` and
    ``estimates`` are a daemon's.
    """

    at: float
    fetches: int = 0
    targets: Targets = field(default_factory=Targets)
    host: entries.HostState | None = None
    robots: tuple[int, entries.RobotsRecord] | None = None
    repeats: tuple[int, entries.Repeats] | None = None
    seeds: tuple[tuple[int, str], ...] = ()
    said: entries.SourceReport | None = None
    change: TableChange | None = None
    outlook: entries.Outlook | None = None
    sites: Sequence[entries.SiteOutlook] = ()
    estimates: tuple[Estimate, ...] = ()


Entry = Visit | StoreUpdate


@value(frozen=True, slots=True)
class Acknowledged:
    """The writer's reply after the transaction has committed.

    ``supplied`` has the hosts with new due URLs, by ``pages`` (ids): new pages, and some that were
    gone and are linked again. ``retracted`` has visits of this invocation that have become
    failures: the former kind and the reason. ``withdrawn`` has the pages, by host, that are no
    longer due. ``claims`` has the new claims of the whole batch, by our clock, in its last entry.
    ``churn`` is None for a first visit, and if no link appeared.
    """

    entry: Entry
    supplied: frozenset[int] = frozenset()
    pages: tuple[int, ...] = ()
    retracted: tuple[tuple[entries.Kind, str], ...] = ()
    withdrawn: tuple[tuple[int, frozenset[int]], ...] = ()
    claims: entries.Claims = field(default_factory=entries.no_claims, compare=False)
    churn: Churn | None = None

    @property
    def admitted(self) -> int:
        """Return the number of new URLs."""
        return len(self.pages)


T = TypeVar("T")


class WriterHost:
    """The run that a writer works for; this base class has no effect."""

    def committed(self, batch: Sequence[Acknowledged]) -> None:
        """Observe a batch that is in the store now."""

    async def secure(self) -> None:
        """Sync an archive, which must not be behind the store; called before each transaction."""

    async def endure(self, work: Callable[[], Awaitable[T]]) -> T:
        """Do some work on the store, and decide whether it is tried again where it is unavailable.

        Raises:
            StoreUnavailable: it is not.
        """
        return await work()


class Agenda(Protocol):
    """The order in which the due URLs of the hosts that are ready are fetched."""

    def next(self, ready: Collection[int], now: float) -> DueUrl | None:
        """Take the next due URL of one of the hosts in ``ready`` (longest ready first)."""

    def waiting(self, host_id: int) -> bool:
        """Return whether a due URL of this host can be taken now."""

    def done(self, acknowledged: Acknowledged) -> None:
        """Learn from a committed entry."""

    def put_back(self, due: DueUrl) -> None:
        """Take back a URL that has not been visited; it is due as before."""

    @property
    def hungry(self) -> bool:
        """Return whether :meth:`replenish` would load pages before any falls due."""

    async def replenish(self, now: float) -> tuple[Sequence[entries.Host], Sequence[int]]:
        """Load the URLs that :meth:`next` will need.

        Return the hosts not seen before, and the ids of all hosts that have URLs now.
        """

    def wakes_at(self) -> float | None:
        """Return when the next URL that waits for its time (a retry) falls due, or None."""

    def overdue_at(self) -> float:
        """Return when a page is overdue and may be requested ahead of the budget, or inf."""

    def target_of(self, host_id: int) -> int | None:
        """Return the host to which a host has only redirected so far, or None."""

    def take_probe(self, host_id: int) -> bool:
        """Return whether a host may be asked for a URL that cannot exist, and count the request."""
