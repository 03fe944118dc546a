"""``freshet replay``: fill a store from archives, or compare policies on a store's history."""

from collections.abc import Sequence
from contextlib import closing
from dataclasses import asdict
from operator import attrgetter
from pathlib import Path
from typing import Annotated, Final

import typer

from freshet.config.settings import Settings
from freshet.crawler.cli.options import ConfigFile, Json, read_settings
from freshet.crawler.errors import CrawlError
from freshet.crawler.run import terminal
from freshet.crawler.run.archive_player import ReplayCounts
from freshet.crawler.run.hooks import COMPARISONS, Comparing, ComparisonRequest
from freshet.crawler.run.orders import CrawlReport, crawls_per_day
from freshet.crawler.run.replay import Archives, Losses, replay
from freshet.crawler.run.terminal import err, fail, print_json, show_list
from freshet.entry_points import loaded
from freshet.scheduler import PolicyError
from freshet.scheduler.queue.rankers import ranker_of

#: The policy comparison of an extension, or None.
_COMPARING: Final[Comparing | None] = next(iter(loaded(COMPARISONS).values()), None)
_DEFAULT_POLICIES: Final = () if _COMPARING is None else _COMPARING.DEFAULT_POLICIES

# -- replay report -----------------------------------------------------------
_SQLITE: Final = b"SQLite format 3\0"


def is_store(path: Path) -> bool:
    """Return whether a file is a database, not an archive."""
    try:
        with path.open("rb") as file:
            return file.read(len(_SQLITE)) == _SQLITE
    except OSError:
        # The reader reports the error.
        return False


def fill(
    db: Path, paths: Sequence[Path], settings: Settings
) -> tuple[list[CrawlReport], ReplayCounts, Losses]:
    """Replay archives into a new store; an index file is written beside it.

    Return the reports of the runs, the counts of other exchanges, and the losses.
    """
    index = db.with_name(f"{db.name}.order")
    if db.exists() and not index.exists():
        raise CrawlError(
            f"{db}: not made by a replay ({index.name} is not beside it); name a new file with --db"
        )
    with (
        err.status("Reading the archives") as status,
        closing(Archives(paths, index, settings, status.update)) as archives,
    ):
        try:
            reports, counts = terminal.run(replay(settings, db, archives.runs()))
        except typer.Exit as end:
            if end.exit_code == terminal.INTERRUPTED:
                err.print("The replayed part is kept; the same command continues there.")
            raise
        return reports, counts, archives.losses


def show(reports: list[CrawlReport], counts: ReplayCounts, losses: Losses, *, json: bool) -> None:
    """Print the result of a replay."""
    if json:
        runs = [report.as_json() for report in reports]
        print_json({"runs": runs, "other_exchanges": asdict(counts)} | losses.as_json())
        return
    header = ("run", "pages", "new", "changed", "unchanged", "gone", "refused", "errors")
    show_list("Replayed runs", header, [attrgetter(*header)(it) for it in reports])
    print_losses(losses)


def print_losses(losses: Losses) -> None:
    """Print what a replay could not read."""
    for line in losses.lines():
        err.print(line, markup=False, highlight=False, soft_wrap=True)


def _compare(
    store: Path, policies: Sequence[str], settings: Settings, compared: ComparisonRequest
) -> None:
    """Compare policies on a store's history; exit if no extension can."""
    if _COMPARING is None:
        fail("the comparison of policies needs the extension lab, which is not installed", 2)
    _COMPARING.compare(store, policies, settings, compared)


def replay_command(  # noqa: PLR0913, PLR0917 - the options are the arguments
    past: Annotated[
        list[Path],
        typer.Argument(
            metavar="PAST…",
            help="A store with history; or archives: WARC, WACZ, CDXJ, folders or lists of them.",
        ),
    ],
    db: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Replay archives into this new store.")
    ] = None,
    policy: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME[:OPTIONS]",
            help=f"A policy to compare; may be repeated (default: {', '.join(_DEFAULT_POLICIES)}).",
        ),
    ] = None,
    budget: Annotated[
        list[str] | None,
        typer.Option(
            metavar="N/day|N/hour",
            help="A budget of requests; may be repeated (default: the store's budget).",
        ),
    ] = None,
    shown: Annotated[
        float,
        typer.Option(
            metavar="SHARE",
            min=0.0,
            max=0.9,
            help="Share of the recorded time that all policies see and that is not scored.",
        ),
    ] = 0.1,
    plots: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Also write PNG figures to this folder.")
    ] = None,
    parquet: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Also write Parquet tables to this folder.")
    ] = None,
    config: ConfigFile = None,
    json: Json = False,
) -> None:
    """Fill a store from archives, or compare policies on its past.

    With --db, each exchange of the archives passes robots.txt, text extraction, comparison and the
    store in the order of time, as in a crawl. An interrupted replay resumes.

    With --policy, --budget, --plots or --parquet, or without --db, policies are compared:

    Each day, a policy chooses pages and gets the version that the store had on that day. It learns
    from these visits only, and learns of a page when the store did. The exact time of a change
    between two captures is unknown, so costs are ranges. Harmonic cost (each further missed change
    adds less) and binary cost (stale or not) are means over pages and days, weighted by importance.
    """
    settings, _ = read_settings(config, {})
    budgets = [crawls_per_day(text) for text in budget or []]
    policies = policy or _DEFAULT_POLICIES
    compared = ComparisonRequest(budgets, shown, plots, parquet, json)
    store = past[0]
    with terminal.told_in_one_line(PolicyError):
        _check(past, policies, db)
        if _COMPARING is not None:
            _COMPARING.check(plots, parquet)
        if db is not None:
            reports, counts, losses = fill(db, past, settings)
            if not any((policy, budgets, plots, parquet)):
                show(reports, counts, losses, json=json)
                return
            print_losses(losses)
            store = db
        elif not is_store(store):
            fail("archives are replayed into a new store; name it with --db FILE", 2)
        _compare(store, policies, settings, compared)


def _check(past: Sequence[Path], policies: Sequence[str], db: Path | None) -> None:
    """Exit if a path or a policy name is wrong."""
    for path in past:
        if not path.exists():
            fail(f"{path}: there is no such file; give a store or archives", 2)
        if len(past) > 1 and is_store(path):
            fail(f"{path}: this is a store; a store must be the only argument", 2)
        if db is not None and is_store(path):
            fail(
                f"{path}: this is a store; --db takes archives only. "
                f"`freshet rereduce --db {path}` extracts its kept bodies again",
                2,
            )
    for name in policies:
        ranker_of(name, 1.0, archived=True)
