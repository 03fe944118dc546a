"""``freshet status``: the daemon, the last run, the store and its frontier."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from freshet.crawler.cli.options import DEFAULT_DB, Db, Json, stores_at, tell_down
from freshet.crawler.run import terminal
from freshet.crawler.run.hooks import status_parts
from freshet.crawler.run.orders import AUDITED_S
from freshet.crawler.run.status import StoreStatus, merged, read_shard, read_status, since_of
from freshet.crawler.run.terminal import (
    amount,
    clock_time,
    counted,
    counted_duplicates,
    joined,
    moment,
    percent,
    print_json,
    show_facts,
    show_line,
    show_list,
    show_not_crawled,
    show_rejecting,
    show_shells,
    size,
    span,
    spending,
    when,
)
from freshet.storage.entries import DiscoveryShares, Outlook
from freshet.storage.tables.near_duplicates import IndexState
from freshet.storage.tables.runs import CrawlRun, RunState

if TYPE_CHECKING:
    from freshet.crawler.run.daemon_status import BudgetUse, DaemonStatus

# -- the status of a daemon on one screen ------------------------------------

_DAY_S = 86_400.0
_CLASSES = ("daily or more", "weekly", "monthly", "yearly", "less often")
_BAR = 40
_EIGHTHS = " ▏▎▍▌▋▊▉"
_QUEUES_SHOWN = 4
_SHARDS_SHOWN = 64
#: Values of a shard that are shown, by JSON key, with their column headings.
_SHARD = {
    "pages": "pages", "due": "due", "waiting": "new", "requests_today": "today", "budget": "a day",
    "price": "price", "outgoing": "to send", "file_bytes": "file",
}  # fmt: skip


def _of_budget(it: DaemonStatus) -> dict[str, str | None]:
    """Return the lines about the budget and its use."""
    outlook, found, forgone = it.snapshot, it.snapshot.discovered, None
    pause_s = _DAY_S / outlook.budget
    pause = f"{pause_s:.2g} s" if pause_s < 10 else span(pause_s)
    if outlook.forgone >= 1:
        during = span(outlook.at - outlook.began_at)
        forgone = f"{amount(outlook.forgone)} in {during}: no host could take them"
    return {
        "budget": f"{amount(outlook.budget)} requests a day by {outlook.policy}, one every {pause}",
        "spent": f"{_spent(it.today, 'today')}, {_spent(it.day, 'in 24 h')}",
        "forgone": forgone,
        "visits": None if found.share is None else _visits(found),
    }


def _of_pages(outlook: Outlook) -> dict[str, str | None]:
    """Return the lines about the number of pages, and of expected new ones."""
    pages, found = None, outlook.discovered
    if outlook.watched:
        pages = (
            f"{outlook.watched:,}: {outlook.captured:,} captured, "
            f"{outlook.waiting:,} new waiting, {outlook.gone:,} gone"
        )
    new = _new_pages(found, outlook.waiting) if found.new_per_day else None
    return {"pages": pages, "new pages": new}


def _of_freshness(it: DaemonStatus) -> dict[str, str | None]:
    """Return the lines about the freshness of the copies, by estimates and by audits."""
    return {"fresh": _fresh(it), "harmonic cost": _harmonic(it)}


def _of_price(outlook: Outlook, shards: Sequence[Mapping[str, Any]]) -> dict[str, str | None]:
    """Return the lines about the price of a visit over all shards, and about site rhythms."""
    clocks = f"{percent(outlook.clocked)} of pages are scheduled by their site's rhythm"
    found: dict[str, str | None] = {"price": None, "rhythms": clocks if outlook.clocked else None}
    if outlook.price is not None:
        prices = [each["price"] for each in shards if each.get("price") is not None]
        prices = prices or [outlook.price]
        price = " to ".join(dict.fromkeys((amount(min(prices)), amount(max(prices)))))
        found["price"] = f"{price}: pages worth less than this are not visited now"
    return found


def _of_next(it: DaemonStatus, now: float) -> dict[str, str | None]:
    """Return the line about the next visit of a running daemon."""
    at, is_running = it.snapshot.next_at, it.process is not None
    if not is_running or it.next_url is None or at <= now:
        return {"next": None}
    return {"next": f"{it.next_url} at {clock_time(at)}"}


def print_daemon_status(
    it: DaemonStatus, now: float, shards: Sequence[Mapping[str, Any]] = ()
) -> None:
    """Print budget, freshness, change rates, hosts at their cap, and the next visit.

    With ``shards`` the status is their sum, and they are listed.
    """
    outlook = it.snapshot
    state = f"running (process {it.process})" if it.process else "not running"
    if shards:
        running = sum(each.get("process") is not None for each in shards)
        state = f"{running:,} of {counted(len(shards), 'shard')} running"
    show_facts(
        f"Daemon: {state}, as of {moment(outlook.at, now)}",
        _of_budget(it) | _of_pages(outlook) | _of_freshness(it) | _of_price(outlook, shards)
        | _of_next(it, now),
    )  # fmt: skip
    _print_shards(shards)
    _print_rates(outlook)
    show_list(
        "Hosts at their cap (visits a day)",
        ("host", "at most", "asked for", "refused", "pages"),
        [
            (q.queue, amount(q.most), amount(q.wanted), amount(q.refused), q.pages)
            for q in outlook.capped
        ],
        _QUEUES_SHOWN,
    )


def _print_shards(shards: Sequence[Mapping[str, Any]]) -> None:
    form: dict[str, Callable[[Any], str]] = {"budget": amount, "price": amount, "file_bytes": size}
    rows = []
    for it in shards:
        state = f"{it['writer'].split()[-1]} {it['process']}" if it.get("process") else "idle"
        values = [None if (v := it.get(key)) is None else form.get(key, int)(v) for key in _SHARD]
        rows.append((it["shard"], "down" if "down" in it else state, *values))
    show_list("Shards", ("shard", "state", *_SHARD.values()), rows, _SHARDS_SHOWN)


def _visits(found: DiscoveryShares) -> str:
    kinds = {
        "known pages": found.refreshing_visits,
        "new ones": found.first_visits,
        "hub pages": found.revealing_visits,
    }
    told = ", ".join(f"{count:,} to {what}" for what, count in kinds.items() if count)
    return f"{sum(kinds.values()):,}: {told}"


def _new_pages(found: DiscoveryShares, waiting: int) -> str:
    """Return the expected number of new pages per day, week or month, whichever is at least 1."""
    per, days = next(
        (it for it in (("day", 1.0), ("week", 7.0)) if found.new_per_day * it[1] >= 1),
        ("month", 30.44),
    )
    expected = counted(round(max(1.0, found.new_per_day * days)), "page")
    waits = f"{waiting:,} waiting" if waiting else "none waiting"
    return f"about {expected} a {per}; {waits}"


def _spent(found: BudgetUse, since: str) -> str:
    share = "" if found.share is None or found.share > 1 else f" ({percent(found.share)})"
    return f"{spending(found.requests, found.flowed, since)}{share}"


def _fresh(it: DaemonStatus) -> str | None:
    stale, measured = it.snapshot.stale, it.measured
    expected = None if stale is None else f"{percent(1 - stale)} expected"
    if measured is None:
        return expected
    binary = measured.binary
    interval = f"{100 * (1 - binary.upper):.0f} to {100 * (1 - binary.lower):.0f} %"
    by = f"{counted(measured.draws, 'spot check')} in {span(AUDITED_S)}"
    return joined((f"{percent(1 - binary.mean)} ({by}; {interval})", expected))


def _harmonic(it: DaemonStatus) -> str | None:
    harmonic = it.snapshot.harmonic
    expected = None if harmonic is None else f"{amount(harmonic)} expected"
    if it.measured is None:
        return expected
    found = it.measured.harmonic
    interval = f"{amount(found.lower)} to {amount(found.upper)}"
    return joined((expected, f"{amount(found.mean)} measured ({interval})"))


def _print_rates(outlook: Outlook) -> None:
    most, counts = max(outlook.changing), zip(_CLASSES, outlook.changing, strict=True)
    if most:
        rows = [(name, count, _bar(count, most)) for name, count in counts]
        show_list("Pages change", ("", "pages", ""), rows)


def _bar(count: int, most: int) -> str:
    """Return a bar in proportion to the count, in eighths of a character; at least one above 0."""
    eighths = max(round(count / most * _BAR * 8), int(count > 0))
    return "█" * (eighths // 8) + _EIGHTHS[eighths % 8].strip()


_SHOWN = 10
_show_first = partial(show_list, limit=_SHOWN)


def status_command(db: Db = DEFAULT_DB, json: Json = False) -> None:
    """Show the daemon, the last run, the store, and waiting hosts.

    A crawl may write the store at the same time.
    """
    stores, now = stores_at(db), time.time()
    if stores.shards is None:
        status, shards = terminal.run(read_status(db, now)), list[dict[str, object]]()
    else:
        found = terminal.run(stores.each(partial(read_shard, stores.paths, now)))
        status = merged(db, now, list(found.values()))
        told = {number: shard.row for number, shard in found.items()}
        told |= {n: {"shard": n, "down": why} for n, why in stores.down.items()}
        shards = [told[number] for number in sorted(told)]
    down = tell_down(db, stores.down)
    if json:
        print_json(status.as_json() | ({"shards": shards} if shards else {}) | down)
    else:
        _print(status, shards)


def _print(status: StoreStatus, shards: Sequence[Mapping[str, Any]]) -> None:
    of = f", {counted(len(shards), 'shard')}" if shards else ""
    show_line(f"{status.db} ({size(status.file_bytes)}{of})", "bold")
    if status.daemon is not None:
        print_daemon_status(status.daemon, status.at, shards)
    else:
        _print_shards(shards)
    _print_run(status)
    _print_holdings(status)
    _print_hosts(status)
    _show_first(
        "Bounded patterns (possible traps)",
        ("pattern", "kind", "crawled", "not"),
        [(f"{origin}{p.shape}", p.kind, p.crawled, p.held) for origin, p in status.bounded],
    )
    _show_first("Limits met by the last run", ("limit", "times"), list(status.bounds.items()))
    for name, part in status_parts().items():
        if (table := part.table(status.extensions[name])) is not None:
            _show_first(*table)
    show_not_crawled(status.held_back)
    shells = status.needs_javascript
    _show_first("Pages that need JavaScript", ("host", "pages"), list(shells.items()))
    show_shells(sum(shells.values()))
    _show_first(
        "Pages without content for a week or more",
        ("host", "pages"),
        list(status.no_content.items()),
    )
    show_rejecting(status.rejecting)
    count, shown = status.doubtful
    _show_first(
        f"Doubtful pages ({count:,}): stored, but perhaps block pages",
        ("page", "kind", "probability", "why"),
        [(it.url, it.kind, f"{it.probability:.2f}", it.why) for it in shown],
    )


def _print_run(status: StoreStatus) -> None:
    run, now = status.last_run, status.at
    if run is None:
        show_line("no crawl has run yet")
        return
    observed = [f"{kind} {count:,}" for kind, count in status.kinds.items()]
    seconds = status.seconds(run)
    show_facts(
        f"Run {run.run_id}: {_state(run.state, status.daemon)}",
        {
            "started": moment(run.started_at, now),
            "ended": when(run.ended_at, now),
            "last observation": when(status.observed_at, now),
            "no network": _no_network(run, now) if status.writer else None,
            "took": f"{seconds:,.1f} s" if seconds < 60 else span(seconds),
            "fetches": run.fetches,
            "observations": ", ".join(observed) or "none",
        },
    )


def _no_network(run: CrawlRun, now: float) -> str | None:
    """Return since when no host answers, or None if hosts do."""
    if (since := run.no_network_since) is None:
        return None
    return f"since {moment(since, now)}: not the hosts' fault; one is tried every 30 s"


def _state(state: RunState, daemon: DaemonStatus | None) -> str:
    if state == "ended":
        return "ended"
    if daemon is not None:
        return "running" if daemon.process else "killed (the same command continues)"
    if state == "running":
        return "running, or killed (the next crawl finishes it)"
    why = "limit reached" if state == "limit" else "interrupted"
    return f"{why} (the next crawl finishes it)"


def _print_holdings(status: StoreStatus) -> None:
    held, frontier = status.holdings, status.frontier
    added: dict[str, str | None] = {}
    for name, part in status_parts().items():
        added |= part.lines(status.extensions[name])
    show_facts(
        "Store",
        {
            "pages": f"{held.pages:,} of {held.urls:,} known URLs, {held.aliases:,} aliases",
            "hosts": held.hosts,
            "links": f"{held.links:,}, and {held.offsite_links:,} out of scope",
            "observations": held.observations,
            "versions": held.versions,
            "near-duplicates": _near_duplicates(status.duplicates),
            **added,
            "bodies": f"{held.bodies:,}, {size(held.body_bytes)} in {size(held.stored_bytes)}",
        },
    )
    if status.daemon is not None:
        return
    show_facts(
        "Frontier",
        {
            "due now": frontier["due"],
            "waiting for their time": frontier["waiting"] or None,
            "deferred to the next run": frontier["deferred"] or None,
        },
    )


def _near_duplicates(found: IndexState) -> str | None:
    """Return the number of duplicates in words; None before the first comparison."""
    if not found.pages and not found.unseen:
        return None
    # A running crawl compares its pages at its end; a killed one has not.
    to_come = f", {counted(found.unseen, 'observation')} not checked" if found.unseen else ""
    return counted_duplicates(found) + to_come


def _print_hosts(status: StoreStatus) -> None:
    now = status.at
    if status.daemon is None:
        show_list("Hosts with the most URLs due", ("host", "due"), status.busiest)
    _show_first(
        "Parked hosts",
        ("host", "until", "why", "URLs"),
        [(h.origin, when(h.until, now), h.reason, h.urls) for h in status.parked],
    )
    _show_first(
        "Deferred to the next run",
        ("host", "URLs", "why"),
        [(h.origin, h.urls, h.reason) for h in status.deferred],
    )
    _show_first(
        "robots.txt cannot be reached",
        ("host", "since", "why", "meanwhile"),
        [
            (
                origin,
                moment(since_of(robots), now),
                robots.reason,
                "nothing is fetched"
                if robots.standing == "unreachable"
                else "an older copy is used",
            )
            for origin, robots in status.robots_unreachable
        ],
    )
