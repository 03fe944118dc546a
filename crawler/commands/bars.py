"""Progress of what is simulated: a bar for each, on a terminal only."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeAlias

from rich.markup import escape
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from freshet.crawler.commands.console import err

#: Told what is simulated and which share of it is done.
Tell: TypeAlias = Callable[[str, float], None]


@contextmanager
def progress_bars() -> Iterator[Tell | None]:
    """What shows a share as a bar; None where nobody looks."""
    if not err.is_terminal:
        yield None
        return
    columns = TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn()
    with Progress(*columns, console=err, transient=True) as display:
        bars: dict[str, TaskID] = {}

        def tell(name: str, done: float) -> None:
            if name not in bars:
                bars[name] = display.add_task(escape(name), total=1.0)
            display.update(bars[name], completed=done)

        yield tell
