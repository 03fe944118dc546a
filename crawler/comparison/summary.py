"""A change in one line."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from freshet.crawler.comparison.alignment import AlignedBlock, Change, counts
from freshet.crawler.comparison.words import Run

_MARKS: Final = {Change.ADDED: "+", Change.REMOVED: "−"}
#: Words of an edited block that are shown before and after what changed.
_AROUND: Final = 24
_ELLIPSIS: Final = "…"


def in_one_line(aligned: Sequence[AlignedBlock], width: int = 100) -> str:
    """What a reader wants to know first: the first edit, addition or removal, and how many more.

    >>> from freshet.crawler.comparison.alignment import align
    >>> in_one_line(align(["Price: 10.99 each"], ["Price: 11.49 each"]))
    '“Price: 10.99 → 11.49 each”'
    """
    changed = [block for block in aligned if block.change is not Change.KEPT]
    if not changed:
        return "no block of text differs"
    order = (Change.EDITED, Change.ADDED, Change.REMOVED, Change.MOVED)
    first = min(changed, key=lambda block: order.index(block.change))
    more = in_numbers(aligned) if len(changed) > 1 else ""
    line = _told(first, max(width - len(more) - 3, 30))
    return f"{line}  {more}".rstrip()


def in_numbers(aligned: Sequence[AlignedBlock]) -> str:
    """``2 edited, 1 added``: the kinds that there are, without the kept ones."""
    found = counts(aligned)
    return ", ".join(f"{n:,} {change}" for change, n in found.items() if n and change != "kept")


def shortened(runs: Sequence[Run], around: int = _AROUND) -> tuple[Run, ...]:
    """The runs of an edited block, with what was kept cut to ``around`` characters at each end."""
    last = len(runs) - 1
    return tuple(
        _cut(run, around if i else 0, around if i < last else 0) if run.is_kept else run
        for i, run in enumerate(runs)
    )


def _told(block: AlignedBlock, width: int) -> str:
    if block.change is Change.EDITED:
        words = "".join(_written(run) for run in shortened(block.runs))
        return f"“{_clipped(words, width)}”"
    mark = _MARKS.get(block.change, f"{block.change}:")
    return f"{mark} “{_clipped(block.text, width)}”"


def _written(run: Run) -> str:
    if run.is_kept:
        return run.after
    if not run.before:
        return f"[+ {run.after.strip()}] "
    return f"{run.before} → {run.after}" if run.after else f"[− {run.before.strip()}] "


def _cut(run: Run, head: int, tail: int) -> Run:
    text = run.after
    if len(text) <= head + tail + 10:
        return run
    start = text[:head].rsplit(" ", 1)[0] + " " if head else ""
    end = " " + text[len(text) - tail :].split(" ", 1)[-1] if tail else ""
    short = f"{start}{_ELLIPSIS}{end}"
    return Run(short, short)


def _clipped(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 1].rstrip() + _ELLIPSIS
