"""The summary that ``freshet crawl`` ends with: a table by outcome, and what to know."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from freshet.crawler.commands.display import counted_duplicates, show_line, show_list
from freshet.crawler.commands.report import CrawlReport
from freshet.crawler.pool import Ending

_SHOWN = 20
_REASONS_SHOWN = 4


def print_summary(report: CrawlReport, db: Path) -> None:
    """Print the report for people."""
    print_outcomes(report)
    _print_changes(report)
    print_seeds(report)
    _print_left_out(report)
    _print_duplicates(report)
    _print_forgone(report)
    _print_last_line(report, db)


def print_outcomes(report: CrawlReport) -> None:
    """Print how many URLs came to what."""
    counts = {
        "new": report.new, "changed": report.changed, "unchanged": report.unchanged,
        "gone": report.gone, "redirected": report.redirected, "refused": report.refused,
        "skipped": report.skipped, "failed": report.errors,
    }  # fmt: skip
    rows = [(name, count, _mostly(report, name)) for name, count in counts.items() if count]
    total = ("pages (200 or 304)", report.pages, f"{report.fetches:,} requests in all")
    title = f"Run {report.run}{', resumed' if report.resumed else ''}"
    show_list(title, ("outcome", "URLs", "mostly"), [*rows, total])


def _print_forgone(report: CrawlReport) -> None:
    if report.forgone is not None and report.forgone >= 1:
        show_line(f"{report.forgone:,.0f} requests of the budget could not be used", "yellow")


def _mostly(report: CrawlReport, kind: str) -> str | None:
    found = [
        (reason.removeprefix(f"{kind}: "), n)
        for reason, n in report.reasons.items()
        if reason.startswith(f"{kind}: ")
    ]
    return ", ".join(f"{reason} {n:,}" for reason, n in found[:_REASONS_SHOWN]) or None


def _print_changes(report: CrawlReport) -> None:
    show_list(
        f"Changed ({len(report.changed_pages):,})",
        ("page", "blocks", "resemblance"),
        [
            (
                page.url,
                f"+{page.blocks_added or 0} -{page.blocks_removed or 0}",
                None if page.resemblance is None else f"{page.resemblance:.2f}",
            )
            for page in report.changed_pages
        ],
        _SHOWN,
    )
    _print_urls("Appeared", report.appeared)
    _print_urls("Vanished", report.vanished)


def _print_urls(title: str, urls: Sequence[str]) -> None:
    show_list(f"{title} ({len(urls):,})", ("page",), [(url,) for url in urls], _SHOWN)


def print_seeds(report: CrawlReport) -> None:
    """Print which sites moved, and which gave nothing."""
    show_list(
        "Sites that moved (http, https and www count as one site)",
        ("site", "crawled at"),
        [(seed.text, seed.root_url) for seed in report.moved_seeds],
        _SHOWN,
    )
    show_list(
        "Sites that gave nothing",
        ("site", "why"),
        [(seed.text, seed.reason) for seed in report.silent_seeds],
        _SHOWN,
    )


def _print_left_out(report: CrawlReport) -> None:
    show_list(
        "Deferred to the next run",
        ("host", "URLs", "why"),
        [(host.origin, host.urls, host.reason) for host in report.deferred],
        _SHOWN,
    )
    show_list(
        "Bounded URL patterns (possible traps)",
        ("pattern", "kind", "crawled", "not"),
        [(p.origin + p.shape, p.kind, p.admitted, p.refused) for p in report.bounded],
        _SHOWN,
    )
    show_list("Known, but not crawled", ("why", "URLs"), list(report.held_back.items()))


def _print_duplicates(report: CrawlReport) -> None:
    found = report.duplicates
    if found.duplicates:
        show_line("")
        show_line(f"{counted_duplicates(found)}; `freshet duplicates` shows them")


def _print_last_line(report: CrawlReport, db: Path) -> None:
    took = f"in {report.seconds:,.1f} s → {db}"
    show_line("")
    if report.ending is Ending.NOTHING_DUE:
        show_line(f"Finished {took}", "green")
    else:
        why = "limit reached" if report.ending is Ending.LIMIT else "interrupted"
        show_line(f"Stopped ({why}) {took}; the same command goes on", "yellow")
