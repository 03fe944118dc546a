"""How facts are shown to people: times, sizes, the words of strangers, tables.

Titles, anchors and robots.txt rules come from servers: whatever could steer a terminal is
taken out of them before they are shown.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import TypeAlias

from rich.console import Console, RenderableType
from rich.filesize import decimal
from rich.table import Table
from rich.text import Text

from freshet.crawler.commands.console import out
from freshet.storage.tables.near_duplicates import IndexState

Cell: TypeAlias = str | int | None

#: On a narrow terminal the columns are folded, but not below this width: no time is torn.
_FOLDED = 33
#: A number as text, with or without a unit; without end; or "there is none".
_NUMBER = re.compile(r"[-−]?\d[\d,.]*( ?%)?|∞|–")
_MINUTE_S, _HOUR_S, _DAY_S = 60, 3_600, 86_400
#: Off a terminal nothing is folded or cut to a width: the lines are for other programs.
_unbounded = Console(highlight=False, width=100_000)


def relative(at: float, now: float) -> str:
    """How far a time lies from now, in its largest unit, cut: ``in 3 min``, ``2 h ago``."""
    seconds = int(abs(at - now))
    if not seconds:
        return "now"
    return f"in {span(seconds)}" if at > now else f"{span(seconds)} ago"


def span(seconds: float) -> str:
    """A duration in its largest unit, cut; two days and more count in days."""
    if seconds < _MINUTE_S:
        return f"{int(seconds)} s"
    if seconds < _HOUR_S:
        return f"{int(seconds // _MINUTE_S)} min"
    if seconds < 2 * _DAY_S:
        return f"{int(seconds // _HOUR_S)} h"
    return f"{int(seconds // _DAY_S):,} d"


def moment(at: float, now: float) -> str:
    """A time on the local clock (ISO 8601, to the second), and how far it is from now."""
    local = datetime.fromtimestamp(at, UTC).astimezone()
    return f"{local:%Y-%m-%d %H:%M:%S} ({relative(at, now)})"


def clock_time(at: float) -> str:
    """A time on the local clock, without its day."""
    return f"{datetime.fromtimestamp(at, UTC).astimezone():%H:%M:%S}"


def size(count: int) -> str:
    """A number of bytes with a decimal unit."""
    return decimal(count)


def plain(words: str) -> str:
    """One printable line: blanks run together, control characters show as U+FFFD."""
    line = " ".join(words.split())
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in line)


def counted(count: int, noun: str, adjective: str = "") -> str:
    """A number with its noun, in the plural where it is not one."""
    return f"{count:,} {adjective}{noun}{'s' * (count != 1)}"


def counted_duplicates(state: IndexState) -> str:
    """How many pages are the same as another one."""
    return (
        f"{state.duplicates:,} of {counted(state.pages, 'page')} with a text are duplicates, "
        f"in {counted(state.groups, 'group')}"
    )


def joined(parts: Iterable[str | None], separator: str = ", ") -> str | None:
    """The parts that there are, or None."""
    return separator.join(part for part in parts if part) or None


def show_line(words: str, style: str = "") -> None:
    """Print one line."""
    _print(Text(plain(words), style=style))


def show_text(text: Text) -> None:
    """Print a paragraph whose parts have styles of their own; its words must be plain."""
    _print(text)


def show_facts(title: str, facts: Mapping[str, Cell]) -> None:
    """Print names and values under a title; those that are None are left out."""
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column(overflow="fold")
    for name, value in facts.items():
        if value is not None:
            grid.add_row(name, _shown(value))
    _show(title, grid)


def show_list(
    title: str, header: Sequence[str], rows: Sequence[Sequence[Cell]], limit: int | None = None
) -> None:
    """Print the first ``limit`` rows under a title and a header, and how many are beyond.

    Columns without any value are left out, and a list without rows altogether.
    """
    table = Table(box=None, header_style="dim", pad_edge=False, padding=(0, 2, 0, 0))
    columns = [
        (name, cells)
        for name, *cells in zip(header, *rows[:limit], strict=True)
        if any(cell is not None for cell in cells)
    ]
    for name, cells in columns:
        numbers = all(_is_number(cell) for cell in cells)
        widest = max(len(_shown(cell)) for cell in cells)
        table.add_column(
            name,
            justify="right" if numbers else "left",
            overflow="fold",
            min_width=min(widest, _FOLDED),
        )
    for row in zip(*(cells for _, cells in columns), strict=True):
        table.add_row(*map(_shown, row))
    _show(title, table)
    if limit is not None and len(rows) > limit:
        show_line(f"… and {len(rows) - limit:,} more", "dim")


def _is_number(cell: Cell) -> bool:
    """Whether it belongs to a column that is read from its last digit."""
    return cell is None or isinstance(cell, int) or _NUMBER.fullmatch(cell) is not None


def _show(title: str, table: Table) -> None:
    if table.row_count:
        _print(Text.assemble("\n", (plain(title), "bold")))
        _print(table)


def _shown(value: Cell) -> Text:
    if value is None:
        return Text()
    return Text(f"{value:,}" if isinstance(value, int) else plain(value))


def _print(thing: RenderableType) -> None:
    if out.is_terminal:
        out.print(thing, soft_wrap=False, crop=False)
        return
    with _unbounded.capture() as captured:
        _unbounded.print(thing)
    sys.stdout.writelines(f"{line.rstrip()}\n" for line in captured.get()[:-1].split("\n"))
