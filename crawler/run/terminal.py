"""Output for users: results to stdout, progress and messages to stderr; running a verb's work."""

import asyncio
import fcntl
import gc
import json
import os
import re
import sqlite3
import sys
import tempfile
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from math import ceil, inf
from pathlib import Path
from typing import IO, Final, NoReturn, TypeAlias, TypeVar

import typer
import uvloop
from rich.console import Console, RenderableType
from rich.filesize import decimal
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from freshet.config import ConfigError
from freshet.crawler.admission import site_lists
from freshet.crawler.errors import CrawlError, UsageError
from freshet.crawler.frontier.clock import calendar, dated
from freshet.entry_points import BrokenExtension
from freshet.storage.database import sync
from freshet.storage.errors import StoreError
from freshet.storage.tables.hosts import RejectingHost
from freshet.storage.tables.near_duplicates import IndexState

#: Results for people; plain text in a pipe, and NO_COLOR is obeyed.
out = Console(highlight=False, soft_wrap=True)
#: Progress and messages.
err = Console(stderr=True, highlight=False, soft_wrap=True)


#: Terminal controls except tabs and line ends, line separators, and controls of text direction.
_CONTROLS: Final = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]|\r(?!\n)"
)


def inert(text: str, instead: str = "\N{REPLACEMENT CHARACTER}") -> str:
    """Return the text without characters that control a terminal."""
    return _CONTROLS.sub(instead, text)


def json_text(value: object) -> str:
    """Return a value as JSON, with escapes for the characters that :func:`inert` removes."""
    text = json.dumps(value, ensure_ascii=False)
    return _CONTROLS.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def print_json(value: object) -> None:
    """Print one JSON value on one line, with times in ISO 8601."""
    sys.stdout.write(json_text(dated(value)) + "\n")


def asks() -> bool:
    """Return whether a user at a terminal can be asked."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def fail(message: str, code: int = 1) -> NoReturn:
    """Print an error on one line and exit with a code (2 for wrong usage)."""
    say("freshet:", "red", message)
    raise typer.Exit(code)


def say(word: str, style: str, message: str) -> None:
    """Print one line on stderr, without secrets and control characters."""
    from freshet.crawler.fetch.masking import masked  # noqa: PLC0415 - most runs say nothing

    line = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in masked(message))
    err.print(Text.assemble((word, style), " ", " ".join(line.split())))


# -- display -----------------------------------------------------------------
# Titles, anchors and robots.txt rules come from servers, so characters that control a terminal are
# removed before they are shown.
Cell: TypeAlias = str | int | None

#: Formats a number of bytes with a decimal unit.
size: Final = decimal
#: Columns are folded on a narrow terminal, but not below this width, so that times stay whole.
_FOLDED = 33
#: A number with or without a unit, infinity, or a dash for no value.
_NUMBER = re.compile(r"[-−]?\d[\d,.]*( ?%)?|∞|–")
_MINUTE_S, _HOUR_S, _DAY_S = 60, 3_600, 86_400
#: In a pipe, lines are not folded or cut: other programs read them.
_unbounded = Console(highlight=False, width=100_000)


def relative(at: float, now: float) -> str:
    """Format the distance of a time from now, truncated: ``in 3 min``, ``2 h ago``."""
    seconds = int(abs(at - now))
    if not seconds:
        return "now"
    return f"in {span(seconds)}" if at > now else f"{span(seconds)} ago"


def span(seconds: float) -> str:
    """Format a duration in its largest unit, truncated; from two days on in days."""
    if seconds < _MINUTE_S:
        return f"{int(seconds)} s"
    if seconds < _HOUR_S:
        return f"{int(seconds // _MINUTE_S)} min"
    if seconds < 2 * _DAY_S:
        return f"{int(seconds // _HOUR_S)} h"
    return f"{int(seconds // _DAY_S):,} d"


def moment(at: float, now: float) -> str:
    """Format a time on the local clock (ISO 8601, to the second), and its distance from now."""
    local = calendar(at).astimezone()
    return f"{local:%Y-%m-%d %H:%M:%S} ({relative(local.timestamp(), now)})"


def when(at: float | None, now: float) -> str | None:
    """Format a time as :func:`moment` does; None stays None."""
    return None if at is None else moment(at, now)


def clock_time(at: float) -> str:
    """Format a time on the local clock, without the date."""
    return f"{calendar(at).astimezone():%H:%M:%S}"


def plain(words: str) -> str:
    """Return one printable line: blanks are merged, control characters become U+FFFD."""
    line = " ".join(words.split())
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in line)


def counted(count: int, noun: str, adjective: str = "") -> str:
    """Format a number with its noun, in the plural unless it is 1."""
    return f"{count:,} {adjective}{noun}{'s' * (count != 1)}"


def counted_duplicates(state: IndexState) -> str:
    """Format the number of duplicates among the pages."""
    return (
        f"{state.duplicates:,} of {counted(state.pages, 'page')} with a text are duplicates, "
        f"in {counted(state.groups, 'group')}"
    )


#: The setting that changes each reason for which URLs are not crawled.
_SETTINGS: Final = {
    "depth": "crawl.max_depth", "nofollow": "crawl.follow_nofollow",
    "extension": "fetch.excluded_extensions", "max_pages": "max_pages in [[sites]]",
    "never": "never in [[sites]]",
    "trap: session": "traps.max_session_urls", "trap: calendar": "traps.max_calendar_urls",
    "trap: query": "traps.max_query_urls", "trap: feeds": "signals.max_feeds",
    "trap: path": "traps.max_repeats, max_path_segments, max_url_length",
    "trap: copies": "traps.min_copy_urls", "trap: parameter": "traps.min_copy_pairs",
}  # fmt: skip


def setting_of(why: str) -> str | None:
    """Return the setting that changes a reason for which URLs are not crawled, or None."""
    return _SETTINGS.get(why)


def show_not_crawled(counts: Mapping[str, int]) -> None:
    """Print the number of known URLs that are not crawled, by reason and setting."""
    rows = [(why, count, setting_of(why)) for why, count in counts.items()]
    show_list("Known but not crawled", ("why", "URLs", "setting"), rows)


def show_shells(count: int) -> None:
    """Print advice on pages that need JavaScript, if there are some."""
    if count:
        need = f"{counted(count, 'page')} need{'s' * (count == 1)} JavaScript and could not be read"
        do = "name the site's feed, sitemap or API instead, or leave it out (`never` in [[sites]])"
        show_line(f"{need}: {do}", "yellow")


_REJECTING_SHOWN: Final = 5


def show_rejecting(hosts: Sequence[RejectingHost]) -> None:
    """Print the hosts with many block pages, and advice."""
    do = "`freshet explain URL` says why; if they are pages, please report it"
    for host in hosts[:_REJECTING_SHOWN]:
        show_line(f"{host.words}: {do}", "yellow")


def joined(parts: Iterable[str | None], separator: str = ", ") -> str | None:
    """Join the non-empty parts, or return None."""
    return separator.join(part for part in parts if part) or None


def show_line(words: str, style: str = "") -> None:
    """Print one line."""
    show_text(Text(plain(words), style=style))


def show_facts(title: str, facts: Mapping[str, Cell]) -> None:
    """Print names and values under a title, without None values."""
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column(overflow="fold")
    for name, value in facts.items():
        if value is not None:
            grid.add_row(name, _shown(value))
    _show(title, grid)


def _is_number(cell: Cell) -> bool:
    return cell is None or isinstance(cell, int) or _NUMBER.fullmatch(cell) is not None


def show_list(
    title: str, header: Sequence[str], rows: Sequence[Sequence[Cell]], limit: int | None = None
) -> None:
    """Print the first ``limit`` rows under a title and a header, and the number of the others.

    Empty columns and empty lists are omitted.
    """
    table = Table(box=None, header_style="dim", pad_edge=False, padding=(0, 2, 0, 0))
    columns = [
        (name, cells)
        for name, *cells in zip(header, *rows[:limit], strict=True)
        if any(cell is not None for cell in cells)
    ]
    for name, cells in columns:
        widest = max(len(_shown(cell)) for cell in cells)
        table.add_column(
            name,
            justify="right" if all(map(_is_number, cells)) else "left",
            overflow="fold",
            min_width=min(widest, _FOLDED),
        )
    for row in zip(*(cells for _, cells in columns), strict=True):
        table.add_row(*map(_shown, row))
    _show(title, table)
    if limit is not None and len(rows) > limit:
        show_line(f"… and {len(rows) - limit:,} more", "dim")


def _show(title: str, table: Table) -> None:
    if table.row_count:
        show_text(Text.assemble("\n", (plain(title), "bold")))
        show_text(table)


def _shown(value: Cell) -> Text:
    if value is None:
        return Text()
    return Text(f"{value:,}" if isinstance(value, int) else plain(value))


def show_text(thing: RenderableType) -> None:
    """Print a styled text or a table; its words must be plain."""
    if out.is_terminal:
        out.print(thing, soft_wrap=False, crop=False)
        return
    with _unbounded.capture() as captured:
        _unbounded.print(thing)
    sys.stdout.writelines(f"{line.rstrip()}\n" for line in captured.get()[:-1].split("\n"))


# -- figures -----------------------------------------------------------------
_MINUTES, _HOURS = 1_440.0, 24.0
#: Tolerance for 1/p that should be a whole number.
_ROUNDING = 1e-9


def amount(value: float) -> str:
    """Format three significant digits, or all before the point: ``12,345``, ``56.7``."""
    if abs(value) == inf:
        return "∞"
    rounded = float(f"{value:.3g}")
    if abs(rounded) >= 1e15 or 0 < abs(rounded) < 1e-4:
        return f"{value:.2e}"
    return f"{value:,.0f}" if abs(rounded) >= 1_000 else f"{rounded:g}"


def percent(share: float) -> str:
    """Format a share of 1 as a percentage with one decimal, and never as 0 unless it is 0."""
    if 0 < share < 0.001:
        return f"{amount(100 * share)} %"
    return f"{100 * share:.1f} %"


def changed_share(resemblance: float) -> str:
    """Format the changed share of a text, truncated: an estimate in steps of 1/128."""
    return f"about {int(100 - 100 * resemblance)} %" if resemblance <= 0.99 else "under 1 %"


def blocks(added: int | None, removed: int | None) -> str | None:
    """Format the numbers of added and removed blocks; None if they were not compared."""
    if added is None and removed is None:
        return None
    # Words changed within unmoved blocks.
    return f"+{added or 0} −{removed or 0}" if added or removed else "within blocks"


def spending(requests: int, allowed: float, of: str) -> str:
    """Format the requests made ``of`` some time, and how many the budget has allowed by then.

    Requests can exceed the budget: a page rendered by a browser costs several requests, and a
    lowered budget allows fewer from then on.
    """
    if requests - allowed <= 0.5:
        # Print the exact count: three digits would round it down.
        return f"{requests:,} of {allowed:,.0f} {of}"
    return f"{requests:,} {of}, {requests - allowed:,.0f} ahead of plan"


#: Units of an interval in days, longest first.
_UNITS: Final = (("year", 365.25), ("month", 30.44), ("week", 7.0), ("day", 1.0))


def rhythm(per_day: float) -> str:
    """Format a rate for people.

    >>> [rhythm(rate) for rate in (288, 5.2, 1.1, 1 / 3, 1 / 7, 1 / 40, 1 / 800)]
    ... # doctest: +NORMALIZE_WHITESPACE
    ['about every 5 min', 'about 5.2 times a day', 'about once a day', 'about every 3 days',
     'about once a week', 'about once a month', 'about every 2 years']
    """
    if per_day > 24:
        return f"about every {_brief(_MINUTES / per_day)} min"
    if per_day >= 1.5:
        return f"about {_brief(per_day)} times a day"
    days = inf if per_day <= 0 else 1 / per_day
    if days > 100 * 365.25:
        return "hardly ever"
    unit, length = next((it for it in _UNITS if days >= 0.75 * it[1]), _UNITS[-1])
    count = round(days / length)
    return f"about once a {unit}" if count <= 1 else f"about every {count:,} {unit}s"


def within(share: float, lower: float, upper: float) -> str:
    """Format a share of 1 as a percentage, with its interval."""
    return f"{percent(share)} ({100 * lower:.0f} to {100 * upper:.0f} %)"


def times(ratio: float | None) -> str:
    """Format a ratio to two decimals; None is infinite."""
    return "∞" if ratio is None else f"{ratio:,.2f}"


def every(days: float | None) -> str:
    """Format an interval: ``every 12 min``, ``every 5.2 hours``, ``every 3.2 days``, ``never``."""
    if days is None or days == inf:
        return "never"
    if days * _HOURS < 1:
        return f"every {_brief(days * _MINUTES)} min"
    if days < 2:
        return f"every {_brief(days * _HOURS)} hours"
    return f"every {_brief(days)} days"


def lasting(days: float) -> str:
    """Format a time span to a tenth, below two days in hours: ``19.2 h``, ``2.5 d``."""
    return f"{days * _HOURS:.1f} h" if days < 2 else f"{days:,.1f} d"


def on_changes(probability: float, crawling: str) -> str:
    """Format the share of signalled changes that are followed by a visit."""
    if probability >= 1 - _ROUNDING:
        return "at each change"
    if crawling == "periodic":
        return f"1 change in {ceil(1 / probability * (1 - _ROUNDING)):,}"
    return f"{percent(probability)} of changes"


def _brief(value: float) -> str:
    """Format two significant digits, or all before the point."""
    rounded = float(f"{value:.2g}")
    return amount(value if rounded >= 100 else rounded)


# -- bars --------------------------------------------------------------------
#: Receives the name of the current work and the share of it that is done.
Tell: TypeAlias = Callable[[str, float], None]


@contextmanager
def progress_bars() -> Iterator[Tell]:
    """Yield a function that shows progress as a bar, or does nothing without a terminal."""
    if not err.is_terminal:
        yield lambda _name, _done: None
        return
    from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn  # noqa: PLC0415 - slow to import

    columns = TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn()
    with Progress(*columns, console=err, transient=True) as display:
        bars: dict[str, TaskID] = {}

        def tell(name: str, done: float) -> None:
            if name not in bars:
                bars[name] = display.add_task(escape(name), total=1.0)
            display.update(bars[name], completed=done)

        yield tell


# -- running -----------------------------------------------------------------
T = TypeVar("T")

#: The exit code after Ctrl-C, as in shells.
INTERRUPTED: Final = 130
#: Environment variable that shows tracebacks, for developers.
_DEBUG = "FRESHET_DEBUG"
#: Exceptions that typer itself reports or exits with; it bundles click.
_TOLD: Final = (
    typer.Exit,
    typer.Abort,
    *(it for it in typer.BadParameter.__mro__ if it.__name__ == "ClickException"),
)


def _users_errors() -> tuple[type[Exception], ...]:
    """Return the errors that the user must act on."""
    from freshet.scheduler import PolicyError  # noqa: PLC0415 - only where one was raised

    return BrokenExtension, ConfigError, CrawlError, PolicyError, StoreError


@contextmanager
def told_in_one_line(*wrong_usage: type[Exception]) -> Iterator[None]:
    """Exit with one line on an error that the user must act on; ``wrong_usage`` exits with 2."""
    try:
        yield
    except _users_errors() as error:
        fail(str(error), 2 if isinstance(error, (ConfigError, UsageError, *wrong_usage)) else 1)
    except sqlite3.Error as error:
        fail(f"the store cannot be read or written: {error}; `freshet doctor` checks it")
    except KeyboardInterrupt:
        fail("interrupted", INTERRUPTED)
    except Exception as error:
        # The entry point handles output that cannot be written.
        ended = isinstance(error, _TOLD) or getattr(error, "errno", None)
        if ended or os.environ.get(_DEBUG):
            raise
        fail(f"an internal error: {error!r}; set {_DEBUG}=1 for a traceback, and report it")


def spellings(text: str) -> list[str]:
    """Return :func:`site_lists.spellings`; errors exit as in :func:`told_in_one_line`."""
    with told_in_one_line():
        return site_lists.spellings(text)


def run(work: Coroutine[object, object, T]) -> T:
    """Run ``work`` on uvloop and return its result; errors exit as in :func:`told_in_one_line`."""
    # Imported objects are permanent, and pages make few cycles.
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)
    with told_in_one_line(), asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(work)


# -- replacing ---------------------------------------------------------------
#: Number of characters that :mod:`tempfile` adds to names.
_RANDOM_CHARS: Final = 8


@contextmanager
def replaced(output: Path, mode: int = 0o666) -> Iterator[Path]:
    """Yield a file beside ``output`` that replaces it, synced, when the block succeeds.

    The new file gets the permissions of the old one, or else those of ``mode`` that the umask
    allows. Files left behind by killed programs are removed.
    """
    # Follow a symbolic link: its target is replaced, not the link.
    output = Path(os.path.realpath(output))
    _remove_left(output)
    handle, name = tempfile.mkstemp(dir=output.parent, prefix=_begun(output))
    # The lock shows other processes that the file is being written.
    fcntl.flock(handle, fcntl.LOCK_EX)
    whole = Path(name)
    try:
        yield whole
        os.umask(mask := os.umask(0))
        whole.chmod(output.stat().st_mode & 0o7777 if output.exists() else mode & ~mask)
        sync(whole)
        whole.replace(output)
        sync(output.parent)
    finally:
        whole.unlink(missing_ok=True)
        os.close(handle)


def _begun(output: Path) -> str:
    """Return the prefix of the names of files that will replace a file."""
    # Leave room for the random part within the longest possible name.
    return f".{output.name[:40]}.freshet-"


def _remove_left(output: Path) -> None:
    """Remove the replacement files of programs that have ended."""
    begin = _begun(output)
    with suppress(OSError):
        for file in output.parent.iterdir():
            if file.name.startswith(begin) and len(file.name) == len(begin) + _RANDOM_CHARS:
                _remove_unless_locked(file)


def _remove_unless_locked(file: Path) -> None:
    """Remove a file that is not locked; another user's file stays."""
    with suppress(OSError), file.open("rb") as left:
        fcntl.flock(left, fcntl.LOCK_EX | fcntl.LOCK_NB)
        file.unlink()


@contextmanager
def replacing(output: Path) -> Iterator[Path]:
    """Yield a file that replaces ``output``, as :func:`replaced` does.

    A pipe or device is yielded itself. Exit if it cannot be written.
    """
    try:
        if output.exists() and not (output.is_file() or output.is_dir()):
            yield output
            return
        with replaced(output) as whole:
            yield whole
    except OSError as error:
        fail(f"{output}: cannot be written: {error.strerror or error}; name another file")


@contextmanager
def written(output: Path) -> Iterator[IO[str]]:
    """Yield standard output for ``-``, else a text file that appears when it is complete."""
    if str(output) == "-":
        yield sys.stdout
        return
    with replacing(output) as whole, whole.open("w", encoding="utf-8", newline="") as file:
        yield file
