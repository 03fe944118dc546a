"""A cover as its user sees it: tables, and JSON."""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, datetime
from math import isfinite
from typing import Final

from freshet.crawler.commands.covering import Cover
from freshet.crawler.commands.display import counted, show_line, show_list
from freshet.crawler.commands.figures import amount, percent
from freshet.scheduler.discovery.judging import Record
from freshet.scheduler.discovery.thesis import BEST

_DAY_S: Final = 86_400.0
#: New sites that are shown; JSON has all.
_SITES: Final = 10
_HEADER = ("page", "reveals", "now", "revealed", "looks", "last look", "alike")
_PAST = ("algorithm", "coverage", "overhead", "depth")


def print_cover(cover: Cover) -> None:
    """The cover, and how algorithms did in the past."""
    history = cover.history
    if not history.recrawls or not cover.new:
        show_line(_no_history(cover))
        return
    show_line(_headline(cover), "bold")
    if cover.pages:
        _show_pages(cover)
    else:
        show_line(_no_cover(cover))
    if history.new_sites:
        _show_sites(history.new_sites)
    if cover.past:
        show_list(
            f"With {counted(cover.budget, 'page')} in each step of the past",
            _PAST,
            [_row(name, record) for name, record in cover.past.items()],
        )
    things, thing = ("pages", "page") if history.new_sites is None else ("sites", "site")
    show_line(
        f"Reveals: the share of the new {things}. Now: how many it is expected to reveal. Alike: "
        f"pages with the same number revealed nearly the same. Overhead: looks for each {thing} "
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


def _show_sites(sites: dict[str, float]) -> None:
    """The sites that were new, the last one first."""
    rows = [(site, _date(at * _DAY_S)) for site, at in reversed(sites.items())]
    more = f", the last {_SITES} of {len(rows):,}" if len(rows) > _SITES else ""
    show_list(f"Sites that were new{more}", ("site", "first seen"), rows[:_SITES])


def _show_pages(cover: Cover) -> None:
    show_list(
        f"{cover.algorithm}: the {counted(len(cover.pages), 'page')} to look at next",
        _HEADER,
        [
            (
                each.url, percent(each.share), amount(each.expected), each.revealed, each.looks,
                _date(each.looked_at * _DAY_S), each.cluster,
            )
            for each in cover.pages
        ],
    )  # fmt: skip


def _date(at: float) -> str:
    """A time that means the same in a store that was not written just now."""
    return f"{datetime.fromtimestamp(at, UTC).astimezone():%Y-%m-%d %H:%M}"


def as_json(cover: Cover) -> dict[str, object]:
    """The same as JSON values; times in Unix seconds."""
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
        "cover": [asdict(each) | {"looked_at": each.looked_at * _DAY_S} for each in cover.pages],
        "new_sites": None
        if history.new_sites is None
        else [{"site": site, "seen_at": at * _DAY_S} for site, at in history.new_sites.items()],
        "past": {name: _figures(record) for name, record in cover.past.items()},
    }


def _no_history(cover: Cover) -> str:
    site, pages = cover.history.site, counted(len(cover.history.pages.url), "page")
    if not cover.history.pages.url:
        return f"{site}: no page of it has had content yet"
    if not cover.history.recrawls:
        return (
            f"{site}: {pages}, and no step behind the first crawl to judge by: it was looked at "
            "for too short a time yet, or --step is too long"
        )
    if cover.history.new_sites is not None:
        return (
            f"{site}: {pages}, and none led to a new site since they were first looked at: what "
            "leads to others shows when one has"
        )
    return (
        f"{site}: {pages}, and nothing new since they were first looked at: what reveals new "
        "pages shows when there have been some"
    )


def _no_cover(cover: Cover) -> str:
    """Why nothing is chosen of a site that had new pages."""
    recrawls = cover.history.recrawls
    if cover.orphans == cover.new:
        return "No page that was known before led to any of them: there is none to look at for more"
    if not any(each.by(cover.history.alive_now[: each.old]).members.size for each in recrawls):
        return "Every page that revealed any is gone"
    return (
        f"{cover.algorithm} goes by the last step alone, which brought nothing that a page "
        f"revealed; {BEST} goes by all"
    )


def _row(name: str, record: Record) -> tuple[str, str, str, str]:
    overhead = percent(record.overhead) if isfinite(record.overhead) else "∞"
    return name, percent(record.coverage), overhead, amount(record.depth)


def _figures(record: Record) -> dict[str, float | None]:
    return {
        "coverage": record.coverage,
        "overhead": record.overhead if isfinite(record.overhead) else None,
        "depth": record.depth,
    }
