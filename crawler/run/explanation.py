"""The stored facts on a URL and its next visit, as data and in words."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import takewhile
from pathlib import Path
from typing import Final

import aiosqlite

from freshet.config.settings import Settings
from freshet.crawler.read import documents
from freshet.crawler.robots import RobotsVerdict, in_force, is_fresh
from freshet.crawler.robots.preferences import as_json, from_text, in_words
from freshet.crawler.run.forecast import (
    Completeness,
    LastVisit,
    PageForecast,
    Rate,
    forecast_page,
    rate_of,
)
from freshet.crawler.run.terminal import (
    Cell,
    amount,
    counted,
    joined,
    moment,
    percent,
    rhythm,
    size,
    span,
    times,
    when,
)
from freshet.crawler.urls import origin
from freshet.storage.database import owner_of
from freshet.storage.entries import REBASED, Host, HostState, RobotsRecord, RobotsStanding
from freshet.storage.queries import page
from freshet.storage.queries.page import (
    FrontierPlace,
    GoodCapture,
    InLink,
    KnownUrl,
    OtherName,
    PastObservation,
)
from freshet.storage.records import Doubt
from freshet.storage.tables import claims as claims_tables
from freshet.storage.tables import hosts, pages, url_patterns
from freshet.storage.tables.claims import HeardClaim
from freshet.storage.tables.url_patterns import Throttle

_ALIASES = 20
_OBSERVATIONS = 5
_CLAIMS = 5
_DAY_S = 86_400.0
_HOUR_S = 3_600.0


@dataclass(frozen=True, slots=True)
class _Provenance:
    """The origin of a URL: how it became known, and from which source.

    ``how`` is seed, link, sitemap, feed, redirect, robots.txt or discovery (of feeds). ``source``
    is the line of the site list, or the linking URL.
    """

    how: str
    source: str | None
    anchor: str | None = None
    rel: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _RobotsView:
    """The verdict of a host's stored robots.txt on the URL.

    All stored files have given this verdict ``since`` that time. A file that is not ``fresh`` is
    fetched again before the next page.
    """

    verdict: RobotsVerdict
    since: float | None
    standing: RobotsStanding
    fetched_at: float
    fresh: bool
    stale_since: float | None
    reason: str | None
    crawl_delay_s: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """All stored facts on a URL; ``known`` is None if the store does not have it.

    An unknown URL may have ``linked_out_of_scope``, a link to it, and ``nearest``, similar known
    URLs. ``pattern`` is the pattern of a URL with parameters, ``copy_of`` the page with the same
    text.
    """

    url: str
    at: float
    next_visit: str
    known: KnownUrl | None = None
    found: _Provenance | None = None
    place: FrontierPlace | None = None
    robots: _RobotsView | None
    host: HostState | None
    capture: GoodCapture | None = None
    aliases: Sequence[OtherName] = ()
    pattern: Throttle | None = None
    copy_of: str | None = None
    observations: Sequence[PastObservation] = ()
    claims: Sequence[HeardClaim] = ()
    linked_out_of_scope: InLink | None = None
    nearest: Sequence[str] = ()

    def as_json(self) -> dict[str, object]:
        """Return the explanation as JSON values."""
        pattern, known = self.pattern, self.known
        return asdict(self) | {
            "known": known
            and asdict(known) | {"preferences": as_json(from_text(known.preferences))},
            "aliases": [{"url": a.url, "kind": a.kind, "at": a.at} for a in self.aliases],
            "pattern": pattern
            and {
                "shape": pattern.shape, "read": pattern.crawled, "copies": pattern.copies,
                "closed_at": pattern.closed_at,
            },
        }  # fmt: skip


async def explain(
    connection: aiosqlite.Connection, urls: Sequence[str], settings: Settings, now: float,
    *, brief: bool = False,
) -> Explanation:  # fmt: skip
    """Explain the first of these canonical URLs that the store has, or else the first one.

    ``brief`` omits the change signals, which are read from all sources of the store.
    """
    known = await page.find(connection, urls)
    if known is None:
        return await _explain_unknown(connection, urls, settings, now)
    page_id = known.page_id
    host = next(iter(await hosts.load(connection, [known.host_id], whole=True)))
    place = await page.frontier_place(connection, page_id)
    past = await hosts.past_robots(connection, host.host_id)
    robots = _robots_view(host, past, known.url, settings, now)
    aliases = await page.other_names(connection, page_id, _ALIASES)
    pattern = await url_patterns.pattern_of(connection, page_id)
    if known.held_back is not None:
        next_visit = _held_back(known.held_back, pattern)
    else:
        next_visit = _when(known, place, settings, now)
        if hindered := obstacle(robots, host.state, now):
            is_final = hindered.startswith(_FORBIDDEN)
            next_visit = f"not visited: {hindered}" if is_final else f"{next_visit}; {hindered}"
    return Explanation(
        url=known.url,
        at=now,
        next_visit=next_visit,
        known=known,
        found=await _finding(connection, known, aliases),
        place=place,
        robots=robots,
        host=host.state,
        capture=await page.good_capture(connection, page_id),
        aliases=aliases,
        pattern=pattern,
        copy_of=await url_patterns.original_of(connection, page_id),
        observations=await page.observations(connection, page_id, _OBSERVATIONS),
        claims=() if brief else await claims_tables.last_words(connection, page_id, _CLAIMS),
    )


async def _explain_unknown(
    connection: aiosqlite.Connection, urls: Sequence[str], settings: Settings, now: float
) -> Explanation:
    found = [(url, await hosts.find(connection, str(origin(url)))) for url in urls]
    url, host = next((each for each in found if each[1] is not None), found[0])
    past = await hosts.past_robots(connection, host.host_id) if host else []
    link = await page.first_link_out_of_scope(connection, url)
    why = "no seed, link, sitemap or redirect leads to it"
    if link is not None:
        why = "it was out of scope when a link to it was found"
    return Explanation(
        url=url,
        at=now,
        next_visit=f"not crawled: {why}",
        robots=None if host is None else _robots_view(host, past, url, settings, now),
        host=host.state if host else None,
        linked_out_of_scope=link,
        nearest=await documents.nearest(connection, url),
    )


def _robots_view(
    host: Host, past: Sequence[RobotsRecord], url: str, settings: Settings, now: float
) -> _RobotsView | None:
    """Return the verdict of a host's robots.txt; ``past`` are its files so far, newest first."""
    record = host.robots
    if record is None:
        return None
    file, agent = in_force(record), settings.crawl.product.lower()
    verdict = file.verdict(agent, url)
    same = takewhile(lambda it: in_force(it).allows(agent, url) == verdict.allowed, past)
    return _RobotsView(
        verdict=verdict,
        since=min((it.fetched_at for it in same), default=None),
        standing=record.standing,
        fetched_at=record.fetched_at,
        fresh=is_fresh(record, now, settings.robots.max_age_s),
        stale_since=record.stale_since,
        reason=record.reason,
        crawl_delay_s=file.crawl_delay_s(agent),
    )


async def _finding(
    connection: aiosqlite.Connection, known: KnownUrl, aliases: Sequence[OtherName]
) -> _Provenance | None:
    """Return how a URL was found: as a seed, or else by a link, a redirect or robots.txt."""
    if text := await page.seed_text(connection, known):
        return _Provenance("seed", text)
    link = await page.first_link(connection, known.page_id)
    is_linked_later = link is None or link.first_seen_at > known.found_at
    if known.redirects and aliases and is_linked_later:
        return _Provenance("redirect", aliases[0].url)
    return _unlinked(known) if link is None else _by_link(link)


def _by_link(link: InLink) -> _Provenance:
    how = "link" if link.role == "page" else str(link.role)
    return _Provenance(how, link.url, link.anchor or None, link.rel or None)


def _unlinked(known: KnownUrl) -> _Provenance | None:
    """Return how a URL without links was found: robots.txt names it, or feed discovery tried it."""
    how = {"sitemap": "robots.txt", "feed": "discovery"}.get(known.role)
    return _Provenance(how, None) if how else None


def _held_back(why: str, pattern: Throttle | None) -> str:
    """Return why a URL is not crawled, and why its pattern is closed."""
    if why == pages.FOREIGN:
        return "not crawled here: it belongs to another shard of the store"
    if why == url_patterns.BY_PART:
        return (
            f"not crawled: {why}: a part of its URL makes no difference on this host, and the page "
            "is known under another URL; a sample is visited to see if that changes "
            "(traps.min_copy_pairs = 0 turns this off)"
        )
    if why != url_patterns.KIND or pattern is None:
        return f"not crawled: {why}"
    return (
        f"not crawled: {why}: {pattern.copies:,} of {pattern.crawled:,} pages like {pattern.shape} "
        "repeat the text of other pages; a sample is visited to see if that changes"
    )


def _when(known: KnownUrl, place: FrontierPlace | None, settings: Settings, now: float) -> str:
    """Return the next step for a known URL."""
    if place is None:
        alias = known.alias
        if alias is not None and alias.kind == "permanent":
            again_at = alias.at + settings.crawl.permanent_recheck_days * _DAY_S
            if again_at > now:
                return f"an alias, visited again in the first run after {moment(again_at, now)}"
        if known.asked_again_at is not None and known.asked_again_at > now:
            again = moment(known.asked_again_at, now)
            return f"gone or no content, visited again in the first run after {again}"
        return "due in the next crawl"
    if place.deferred is not None:
        return f"deferred to the next run ({place.deferred}), due first there"
    if place.due_at > now:
        return f"another try is due at {moment(place.due_at, now)}"
    return "due now"


#: Start of the obstacle that makes all other facts irrelevant.
_FORBIDDEN: Final = "robots.txt forbids"


def obstacle(robots: _RobotsView | None, host: HostState | None, now: float) -> str | None:
    """Return what prevents a visit, or None."""
    if robots is not None and robots.standing == "unreachable":
        return f"its host is not visited while robots.txt is unreachable: {robots.reason}"
    if robots is not None and not robots.verdict.allowed:
        rule = robots.verdict.rule
        return f"{_FORBIDDEN} this page" + (f" ({rule})" if rule else "")
    if host is not None and host.parked_until is not None and host.parked_until > now:
        return f"its host is paused until {moment(host.parked_until, now)}: {host.parked_reason}"
    return None


# -- the forecast in sentences -----------------------------------------------

#: Smallest number of expected new pages that is mentioned.
_MENTIONED_FROM: Final = 0.05


def sentences(
    it: PageForecast, now: float, *, obstacle: str | None, is_running: bool
) -> Iterator[str]:
    """Yield the forecast in sentences; ``obstacle`` is what prevents a visit now."""
    if it.excluded_by is not None:
        yield f"Not visited: the [[sites]] table {it.excluded_by} sets never = true."
        return
    if obstacle is not None and obstacle.startswith(_FORBIDDEN):
        yield f"{obstacle}. It is not visited."
        return
    yield from _history(it, now)
    yield f"Its importance is {it.importance.value:.3g} ({it.importance.said()})."
    if it.captured or it.not_before is None:
        yield from _value(it)
        yield from _due(it, now)
    else:
        yield f"It is visited again from {moment(it.not_before, now)} on."
    yield from _of_host(it)
    if it.searched is not None:
        yield it.searched
    if obstacle:
        yield f"Now {obstacle}."
    if not is_running:
        yield _without_daemon(it, now)


def _of_host(it: PageForecast) -> Iterator[str]:
    """Yield what politeness allows at the page's host."""
    if it.capped is not None:
        yield (
            f"Its host allows {amount(it.capped.most)} visits a day; "
            f"{amount(it.capped.wanted)} are wanted."
        )


def _without_daemon(it: PageForecast, now: float) -> str:
    ended = 0.0 if it.estimated_at is None else now - it.estimated_at
    is_long = ended > _HOUR_S
    return f"No daemon has run for {span(ended)}." if is_long else "No daemon is running."


def _history(it: PageForecast, now: float) -> Iterator[str]:
    last = it.last
    if last is None:
        yield f"Found {_ago(it.age_days * _DAY_S)} and not fetched yet."
        return
    if it.captured and last.kind != "gone":
        yield change_rate(it.rate)
    ago = _ago(now - last.at)
    match last.kind:
        case "new" | "changed" | "unchanged":
            yield _visited(it, last, ago)
        case "gone":
            yield (
                f"It was gone {_times(last.in_a_row)} ({_why(last)}), last {ago}; each time in a "
                f"row reduces the value of a visit to a {'tenth' if it.captured else 'hundredth'}."
            )
        case "failed":
            kept = "the copy from before is kept" if it.captured else "there is no copy yet"
            yield f"Visits failed {_times(last.in_a_row)} ({_why(last)}), last {ago}; {kept}."
        case _:
            what = {
                "redirected": f"It redirected to {last.detail}",
                "refused": f"Its host's robots.txt forbade it ({last.detail})",
            }.get(last.kind, f"It is not crawled ({_why(last)})")
            yield f"{what} when it was visited {ago}."


def change_rate(rate: Rate) -> str:
    """Return a change rate as a sentence."""
    comparisons = counted(rate.compared, "comparison")
    if is_vague(rate):
        return (
            f"Too early to say how often it changes ({comparisons}); assumed: "
            f"{rhythm(rate.per_day)}."
        )
    return f"It changes {rhythm(rate.per_day)} ({comparisons})."


#: A rate is shown if its 90 % interval is narrower than this ratio.
_TELLING_RATIO: Final = 30.0


def is_vague(rate: Rate) -> bool:
    """Return whether a rate is too uncertain to show."""
    return not rate.compared or rate.upper > _TELLING_RATIO * rate.lower


def _visited(it: PageForecast, last: LastVisit, ago: str) -> str:
    found = {"new": "fetched for the first time", "changed": "found changed"}
    what = found.get(last.kind, "found unchanged")
    if last.reason == REBASED:
        what = "extracted in another way than before, and not compared as its last bytes are gone,"
    why = ""
    if last.sampled:
        why = ", by a spot check"
    return f"It was {what} {ago}{why}; {_chance(it.stale)}{_basis(it)}."


def _chance(stale: float) -> str:
    if stale >= 0.995:
        return "it has surely changed since"
    return f"the chance that it has changed since is {percent(stale)}"


def _basis(it: PageForecast) -> str:
    if it.claimed:
        return ", by its change signals, which have been reliable"
    rhythm = ", by the rhythm of its site" if it.clocked else ""
    return rhythm if it.claimed is None else f"{rhythm}; its change signals have been unreliable"


def _why(last: LastVisit) -> str:
    return ": ".join(word for word in (last.reason, last.detail) if word) or "reason unknown"


def _source(it: PageForecast, arrival_rate: float) -> str:
    told = (
        f"It is an ephemeral source: about {amount(arrival_rate)} new items appear a day, "
        f"which lose half of their value in {span((it.half_life_hours or 0.0) * 3_600)}."
    )
    if it.learnt_from is None:
        return told
    return (
        f"{told} This is learnt from {counted(round(it.learnt_from), 'click')} on its items and "
        f"from other sources; an item is worth {times(it.item_value)} times the configured value."
    )


def _value(it: PageForecast) -> Iterator[str]:
    if it.arrival_rate is not None:
        yield _source(it, it.arrival_rate)
    if it.signals is not None:
        yield _SIGNALS[it.signals]
    if it.urgent:
        yield "It is a new item of an ephemeral source: it is visited before other pages."
    elif it.planned is not None:
        yield _plan(it)
    elif _is_overdue(it):
        yield f"The settings ask for a visit every {_days(it.most_days)}: it is overdue, so first."
    elif it.estimated_at is not None:
        yield from _value_parts(it)


def _value_parts(it: PageForecast) -> Iterator[str]:
    """Yield what determines the value of a visit."""
    if it.value is None:
        if not it.captured:
            yield "Without a copy, it is chosen by its importance and its days of waiting."
        return
    if not it.captured:
        yield (
            "Without a copy, the value of a visit is its importance times the days of waiting "
            "and of one turn of all pages, times the chance that the page exists."
        )
    if it.reveals >= _MENTIONED_FROM:
        yield f"A visit is expected to find {amount(it.reveals)} new pages."


#: By whether its change signals are considered complete.
_SIGNALS: Final[dict[Completeness, str]] = {
    "learnt": "Its signals have reported nearly every change, so visits follow them.",
    "set": "Its [[sites]] table sets its signals as complete, so visits follow them.",
    "doubted": "Its [[sites]] table sets its signals as complete, but visits ignore that: no "
    "source reports this page, or one has missed too many changes.",
    "not used": "Its [[sites]] table sets its signals as complete; the policy judges them by "
    "itself.",
}


def _plan(it: PageForecast) -> str:
    plan = f"The plan of {it.policy} for {_budget(it)}"
    if not it.planned:
        return f"{plan} gives it no visits: other pages gain more."
    return f"{plan} visits it {rhythm(it.planned)}."


def _is_overdue(it: PageForecast) -> bool:
    return it.captured and it.most_days is not None and it.age_days >= it.most_days


def _due(it: PageForecast, now: float) -> Iterator[str]:
    if it.captured and it.least_days and it.least_days != it.most_days:
        yield f"The settings keep visits at least {_days(it.least_days)} apart."
    if it.captured and it.most_days is not None and not _is_overdue(it):
        yield f"The settings ask for a visit every {_days(it.most_days)}."
    if it.due_in_days is None:
        yield from _not_due(it, now)
        return
    at = now + it.due_in_days * _DAY_S
    if at <= now:
        yield "It is next when its host allows a request." if it.capped else "It is next in line."
    else:
        yield f"The next visit is due about {moment(at, now)}."


def _not_due(it: PageForecast, now: float) -> Iterator[str]:
    """Yield why no visit is due."""
    if it.not_before is not None:
        yield f"It is not visited before {moment(it.not_before, now)}."
    elif it.price is not None and it.value is not None:
        yield (
            f"With {_budget(it)} it is not visited now: other pages change more for the cost of a "
            "visit. A spot check may visit it."
        )


def _budget(it: PageForecast) -> str:
    number, _, unit = it.budget.partition("/")
    return f"{amount(float(number))} requests a {unit.strip()}"


def _ago(seconds: float) -> str:
    return f"{span(max(0.0, seconds))} ago"


def _days(days: float | None) -> str:
    return span((days or 0.0) * _DAY_S)


def _times(count: int) -> str:
    return {1: "once", 2: "twice"}.get(count, f"{count} times in a row")


# -- reading, and facts by title ---------------------------------------------


async def read(
    db: aiosqlite.Connection, urls: Sequence[str], settings: Settings, now: float,
    *, brief: bool = False,
) -> tuple[Explanation, PageForecast | None, Rate | None]:  # fmt: skip
    """Return the explanation of a URL, the forecast of its page, and its change rate."""
    it = await explain(db, urls, settings, now, brief=brief)
    ahead = await forecast_page(db, it.known.page_id, now, brief=brief) if it.known else None
    if ahead is None and it.known is not None and it.capture is not None:
        return it, None, await rate_of(db, it.known.page_id)
    return it, ahead, None if ahead is None else ahead.rate


def next_visit_lines(
    it: Explanation, ahead: PageForecast | None, rate: Rate | None, db: Path
) -> Iterator[str]:
    """Yield the next visit of a URL of the store at ``db``, in paragraphs."""
    if ahead is None:
        yield it.next_visit
    else:
        hindered = obstacle(it.robots, it.host, it.at)
        is_running = (owner_of(db) or ("",))[0].endswith("daemon")
        yield " ".join(sentences(ahead, it.at, obstacle=hindered, is_running=is_running))
    if ahead is None and rate is not None:
        yield f"{change_rate(rate)} Estimated from the visits to this page only."


def facts_of(it: Explanation) -> dict[str, Mapping[str, Cell]]:
    """Return facts on a URL by title and name; None values are unknown."""
    found = dict[str, Mapping[str, Cell]]()
    if it.known is None:
        link = it.linked_out_of_scope
        linked = f"{link.url} {_quoted(link.anchor) or ''}" if link else None
        found["Unknown"] = {"linked from": linked, "nearest": joined(it.nearest)}
    else:
        found["URL"] = _identity(it, it.known)
    if it.robots is not None:
        found["robots.txt"] = _robots(it.robots, it.at)
    if it.host is not None:
        found["Politeness"] = _politeness(it.host, it.at)
    if it.capture is not None:
        found["Last good capture"] = _capture(it.capture, it.at)
    return found


def _identity(it: Explanation, known: KnownUrl) -> dict[str, Cell]:
    place, alias = it.place, known.alias
    return {
        "requested as": known.fetch_url,
        "role": known.role,
        "depth": str(known.depth),
        "found": joined((moment(known.found_at, it.at), _found(it.found) if it.found else None)),
        "held back": known.held_back,
        "no content since": when(known.no_content_since, it.at),
        "perhaps no content": _doubt(known.doubt),
        "use": joined(map(" ".join, in_words(from_text(known.preferences)))),
        "answered plain requests only": when(known.plain_at, it.at),
        "copy of": it.copy_of,
        "alias of": f"{alias.url} ({alias.kind}, {moment(alias.at, it.at)})" if alias else None,
        "aliases": joined(f"{name.url} ({name.kind})" for name in it.aliases),
        "due": f"{moment(place.due_at, it.at)}, for {place.reason}" if place else None,
        "failed tries": str(place.attempt) if place and place.attempt else None,
        "deferred": place.deferred if place else None,
        "ETag": known.validators.etag,
        "Last-Modified": known.validators.last_modified,
        "server's wish": _reuse_time(known.wish_s),
    }


def _doubt(doubt: Doubt | None) -> str | None:
    return f"{doubt.kind} ({doubt.probability:.2f}): {doubt.why}" if doubt else None


def _reuse_time(wish_s: float | None) -> str | None:
    """Return the lifetime in Cache-Control or Expires; it is only shown."""
    if wish_s is None:
        return None
    return f"reuse for {span(wish_s)}" if wish_s else "revalidate every time"


def _found(found: _Provenance) -> str:
    words = joined((found.source, _quoted(found.anchor), found.rel and f"rel={found.rel}"), " ")
    preposition = {
        "seed": "seed",
        "robots.txt": "named by robots.txt",
        "discovery": "as a feed of its host",
    }.get(found.how, f"{found.how} from")
    return f"{preposition} {words}" if words else preposition


def _quoted(anchor: str | None) -> str | None:
    return f"“{anchor}”" if anchor else None


def _robots(robots: _RobotsView, now: float) -> dict[str, Cell]:
    verdict = robots.verdict
    standings: dict[RobotsStanding, str] = {
        "parsed": "read",
        "allow_all": "missing: everything is allowed",
        "unreachable": f"unreachable: everything is forbidden ({robots.reason})",
    }
    return {
        "verdict": "allowed" if verdict.allowed else "forbidden",
        "since": when(robots.since, now),
        "rule": f"{verdict.rule} (line {verdict.line})" if verdict.rule else None,
        "group": f"User-agent: {verdict.agent}" if verdict.agent else None,
        "file": standings[robots.standing],
        "fetched": moment(robots.fetched_at, now),
        "state": _freshness(robots, now),
        "Crawl-delay": f"{robots.crawl_delay_s:g} s" if robots.crawl_delay_s else None,
    }


def _freshness(robots: _RobotsView, now: float) -> str:
    if robots.stale_since is not None:
        since = moment(robots.stale_since, now)
        return f"an older copy; the file is unreachable since {since}: {robots.reason}"
    return "fresh" if robots.fresh else "fetched again before the next page"


def _politeness(host: HostState, now: float) -> dict[str, Cell]:
    return {
        "host queue": host.queue,
        "delay": f"{host.delay_s:g} s",
        "last request": when(host.last_exchange_at, now),
        "failures in a row": host.failures or None,
        "paused until": f"{moment(host.parked_until, now)}: {host.parked_reason}"
        if host.parked_until is not None and host.parked_until > now
        else None,
    }


def _capture(capture: GoodCapture, now: float) -> dict[str, Cell]:
    size_shown = size(capture.size_bytes) if capture.size_bytes is not None else None
    flags = ("noindex", "noarchive", "nofollow")
    return {
        "checked": moment(capture.checked_at, now),
        "content": f"as of {moment(capture.since, now)}; {capture.versions:,} "
        f"{'version' if capture.versions == 1 else 'versions'} in all",
        "size": joined((size_shown, None if capture.body_kept else "body not kept")),
        "type": joined((capture.content_type, capture.encoding)),
        "title": capture.title,
        "language": capture.language,
        "rel=canonical": capture.canonical_url,
        "meta robots": joined(flag for flag in flags if getattr(capture, flag)),
    }
