"""``freshet discover``: the hub pages to visit for finding a site's new pages."""

from dataclasses import asdict
from math import isfinite
from typing import Annotated, Final

import typer

from freshet.crawler.cli.options import DEFAULT_DB, ConfigFile, Db, Json, home_of
from freshet.crawler.extensions.lab.discover import (
    Cover,
    HeldBackUrls,
    cover_of,
    read_site,
    still,
    throttled,
    why,
)
from freshet.crawler.frontier.clock import calendar
from freshet.crawler.run import terminal
from freshet.crawler.run.terminal import (
    amount,
    counted,
    fail,
    percent,
    plain,
    print_json,
    show_line,
    show_list,
)
from freshet.scheduler.discovery.covers import CoverRecord
from freshet.scheduler.discovery.thesis_covers import ALGORITHMS, BEST
from freshet.storage.tables.url_patterns import Throttle

# -- discover view -----------------------------------------------------------
_DAY_S: Final = 86_400.0
#: New sites that are shown; JSON has all.
_SITES: Final = 10


def print_cover(cover: Cover) -> None:
    """Print the cover, and the results of the algorithms in the past."""
    history = cover.history
    if not history.recrawls or not cover.new:
        show_line(_no_history(cover))
        return
    show_line(_headline(cover), "bold")
    if not cover.pages:
        show_line(_no_cover(cover))
    show_list(
        f"{cover.algorithm}: the {counted(len(cover.pages), 'page')} to visit next",
        ("page", "reveals", "now", "revealed", "visits", "last visit", "alike"),
        [
            (
                each.url,
                percent(each.share),
                amount(each.expected),
                each.revealed,
                each.visits,
                _date(each.visited_at * _DAY_S),
                each.cluster,
            )
            for each in cover.pages
        ],
    )
    sites = [(site, _date(at * _DAY_S)) for site, at in reversed((history.new_sites or {}).items())]
    more = f", the last {_SITES} of {len(sites):,}" if len(sites) > _SITES else ""
    show_list(f"Sites that were new{more}", ("site", "first seen"), sites[:_SITES])
    show_list(
        f"With {counted(cover.budget, 'page')} in each step of the past",
        ("algorithm", "coverage", "overhead", "depth"),
        [_row(name, record) for name, record in cover.past.items()],
    )
    things, thing = ("pages", "page") if history.new_sites is None else ("sites", "site")
    show_line(
        f"Reveals: the share of the new {things}. Now: how many it is expected to reveal. Alike: "
        f"pages with the same number revealed nearly the same. Overhead: visits for each {thing} "
        "found.",
        "dim",
    )


def _headline(cover: Cover) -> str:
    history = cover.history
    pages = counted(len(history.pages.url), "page")
    days = amount(float(history.times[1] - history.times[0]))
    steps = f"in {counted(len(history.recrawls), 'step')} of {days} days"
    if history.new_sites is None:
        return (
            f"{history.site}: {pages}, {cover.new:,} of them found {steps}; no link led to "
            f"{cover.orphans:,}"
        )
    return (
        f"{history.site}: {pages}, which first led to {counted(cover.new, 'other site')} {steps}; "
        f"no page that was known before led to {cover.orphans:,}"
    )


def _date(at: float) -> str:
    """Format a time independently of the store's age."""
    return f"{calendar(at).astimezone():%Y-%m-%d %H:%M}"


def as_json(cover: Cover) -> dict[str, object]:
    """Return the cover as JSON values."""
    history = cover.history
    return {
        "site": history.site,
        "pages": len(history.pages.url),
        "new": cover.new,
        "orphans": cover.orphans,
        "steps": [each * _DAY_S for each in history.times.tolist()],
        "new_per_day": history.new_per_day,
        "algorithm": cover.algorithm,
        "budget": cover.budget,
        "cover": [asdict(each) | {"visited_at": each.visited_at * _DAY_S} for each in cover.pages],
        "new_sites": None
        if history.new_sites is None
        else [{"site": site, "seen_at": at * _DAY_S} for site, at in history.new_sites.items()],
        "past": {name: _figures(record) for name, record in cover.past.items()},
    }


def _no_history(cover: Cover) -> str:
    history = cover.history
    if not history.pages.url:
        return f"{history.site}: no page of the site has had content yet"
    why = "no new page since their first visit: hub pages are known once new pages have appeared"
    if not history.recrawls:
        why = (
            "no step after the first crawl to judge by: it was visited for too short a time yet, "
            "or --step is too long"
        )
    elif history.new_sites is not None:
        why = (
            "none led to a new site since their first visit: hub pages are known once new sites "
            "have appeared"
        )
    return f"{history.site}: {counted(len(history.pages.url), 'page')}, and {why}"


def _no_cover(cover: Cover) -> str:
    """Say why no page of a site with new pages is chosen."""
    recrawls = cover.history.recrawls
    if cover.orphans == cover.new:
        return "No known page led to any of them, so no hub page can be chosen"
    if not any(each.by(cover.history.alive_now[: each.old]).members.size for each in recrawls):
        return "All pages that revealed any are gone"
    return (
        f"{cover.algorithm} uses only the last step, in which no page revealed anything; "
        f"{BEST} uses all steps"
    )


def _row(name: str, record: CoverRecord) -> tuple[str, str, str, str]:
    overhead = percent(record.overhead) if isfinite(record.overhead) else "∞"
    return name, percent(record.coverage), overhead, amount(record.depth)


def _figures(record: CoverRecord) -> dict[str, float | None]:
    return {
        "coverage": record.coverage,
        "overhead": record.overhead if isfinite(record.overhead) else None,
        "depth": record.depth,
    }


# -- throttled view ----------------------------------------------------------
#: Rows of the table; JSON has all.
_SHOWN: Final = 40


def print_throttled(found: HeldBackUrls) -> None:
    """Print how far the site was crawled, and which URLs are held back and why."""
    reach = found.reach
    known = f"{found.site}: {counted(reach['known'], 'URL')} known, {reach['asked']:,} crawled"
    waiting = f", {reach['waiting']:,} waiting" if reach["waiting"] else ""
    if not found.throttles:
        show_line(f"{known}{waiting}; no URL was throttled", "bold")
        return
    show_line(f"{known}{waiting}, {reach['held']:,} held back", "bold")
    show_list(
        "Throttled URLs",
        ("held back", "what", "why", "still", "for example"),
        [_throttled_row(found, each) for each in found.throttles],
        _SHOWN,
    )
    show_line(
        "Read: visited, with an answer. Of their own: a text that no other page has, and more "
        "than a heading that no other page shows. A pattern is opened again when its pages do.",
        "dim",
    )


def throttled_as_json(found: HeldBackUrls) -> dict[str, object]:
    """Return the held-back URLs as JSON values."""
    return {
        "site": found.site,
        **found.reach,
        "throttled": [
            asdict(each)
            | {"host": found.origins[each.host_id], "why": why(each), "still": still(each)}
            for each in found.throttles
        ],
        "patterns": [
            {
                "host": found.origins[each.host_id], "pattern": each.pattern, "read": each.read,
                "own": each.own, "yield": each.shrunk,
            }
            for each in found.yields
        ],
    }  # fmt: skip


def _throttled_row(
    found: HeldBackUrls, each: Throttle
) -> tuple[int, str, str, str | None, str | None]:
    origin = found.origins[each.host_id] if len(found.origins) > 1 else ""
    what = each.shape if each.shape is not None else each.kind
    return each.held, plain(f"{origin}{what}"), plain(why(each)), still(each), each.example


def discover_command(  # noqa: PLR0913, PLR0917 - the options are the arguments
    site: Annotated[str, typer.Argument(metavar="SITE", help="A host or URL of the site.")],
    db: Db = DEFAULT_DB,
    algorithm: Annotated[
        str, typer.Option(metavar="NAME", help=f"The algorithm: {', '.join(ALGORITHMS)}.")
    ] = BEST,
    budget: Annotated[
        int, typer.Option(metavar="K", min=1, help="Old pages that may be visited again.")
    ] = 10,
    step: Annotated[
        float | None,
        typer.Option(
            metavar="DAYS",
            min=0.001,
            help="The steps of the past (default: a week, or a tenth of the past).",
        ),
    ] = None,
    explain: Annotated[
        bool, typer.Option("--explain", help="Show which URLs were throttled (traps), and why.")
    ] = False,
    new_sites: Annotated[
        bool, typer.Option("--new-sites", help="Find other sites that no page led to, not pages.")
    ] = False,
    config: ConfigFile = None,
    json: Json = False,
) -> None:
    """Show which pages of a site reveal its new pages.

    A page reveals its link targets, and the targets of new pages behind them. The past is cut into
    steps; before each the algorithm chooses by the earlier steps, and is judged by the new pages.
    """
    if algorithm not in ALGORITHMS:
        fail(f"--algorithm {algorithm}: there are {', '.join(ALGORITHMS)}", 2)
    db = home_of(db, site, config)
    if explain:
        held_back = terminal.run(throttled(db, site))
        if json:
            print_json(throttled_as_json(held_back))
        else:
            print_throttled(held_back)
        return
    with terminal.told_in_one_line():
        history = terminal.run(read_site(db, site, step, is_of_sites=new_sites))
        found = cover_of(history, algorithm, budget)
    if json:
        print_json(as_json(found))
    else:
        print_cover(found)
