"""The summary that ``freshet daemon`` ends with."""

from __future__ import annotations

from pathlib import Path

from freshet.crawler.commands.display import show_line, span
from freshet.crawler.commands.report import CrawlReport
from freshet.crawler.commands.standing import Standing
from freshet.crawler.commands.standing_view import print_standing
from freshet.crawler.commands.summary import print_outcomes, print_seeds
from freshet.crawler.pool import Ending


def print_daemon_summary(
    report: CrawlReport, standing: Standing | None, db: Path, now: float
) -> None:
    """Print what an invocation of a daemon did, and how it stands, for people."""
    print_outcomes(report)
    if standing is not None:
        print_standing(standing, now)
    print_seeds(report)
    why = "limit reached" if report.ending is Ending.LIMIT else "interrupted"
    took = f"{report.seconds:,.1f} s" if report.seconds < 60 else span(report.seconds)
    show_line("")
    show_line(f"Stopped ({why}) after {took} → {db}; the same command goes on", "yellow")
