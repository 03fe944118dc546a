"""A difference on a screen: coloured on a terminal, marked like wdiff's output elsewhere."""

from __future__ import annotations

from typing import Final

from rich.text import Text

from freshet.crawler.commands.console import out
from freshet.crawler.commands.difference import Difference, Gap
from freshet.crawler.commands.display import moment, plain, show_facts, show_line, show_text
from freshet.crawler.comparison.alignment import AlignedBlock, Change
from freshet.crawler.comparison.summary import in_numbers, shortened
from freshet.crawler.comparison.words import Run

_STYLES: Final = {
    Change.KEPT: (" ", "dim"),
    Change.EDITED: ("~", ""),
    Change.MOVED: (">", "cyan"),
    Change.ADDED: ("+", "green"),
    Change.REMOVED: ("-", "red"),
}
#: Characters of an edited block that are shown on each side of what changed.
_AROUND: Final = 60
_UNCHANGED_WIDTH: Final = 100


def print_difference(difference: Difference, context: int, now: float) -> None:
    """Print it for people."""
    show_facts(
        difference.url,
        {
            "from": f"version {difference.before.number}, {moment(difference.before.at, now)}",
            "to": f"version {difference.after.number}, {moment(difference.after.at, now)}",
            "blocks": in_numbers(difference.blocks) or None,
        },
    )
    if difference.is_empty:
        show_line("No block of main text differs: only the frame of the page does.")
        return
    show_text(Text())
    for each in difference.around_changes(context):
        if isinstance(each, Gap):
            show_text(_gap(each))
        else:
            show_text(_block(each, is_volatile=difference.is_volatile(each)))


def _gap(gap: Gap) -> Text:
    return Text(f"  … {gap.blocks:,} unchanged", style="dim")


def _block(block: AlignedBlock, *, is_volatile: bool) -> Text:
    mark, style = _STYLES[block.change]
    line = Text(f"{mark} ", style=style)
    if is_volatile and block.change is not Change.KEPT:
        line.append(f"{plain(block.text)}  (differs at every visit)")
        line.stylize("dim")
        return line
    if block.change is Change.EDITED:
        for run in shortened(block.runs, _AROUND):
            _append_run(line, run)
        return line
    text = plain(block.text)
    if block.change is Change.KEPT and len(text) > _UNCHANGED_WIDTH:
        text = text[: _UNCHANGED_WIDTH - 1] + "…"
    line.append(text, style)
    if block.change is Change.MOVED and block.before is not None and block.after is not None:
        line.append(f"  (moved {_distance(block.after - block.before)})", "dim")
    return line


def _distance(blocks: int) -> str:
    """Which way, for those who read: other blocks that came or went count, too."""
    return "down" if blocks > 0 else "up"


def _append_run(line: Text, run: Run) -> None:
    if run.is_kept:
        line.append(_spaced(run.after))
        return
    # Where there are no colours the brackets of wdiff say the same.
    old, new = ("{}", "{}") if out.color_system else ("[-{}-]", "{{+{}+}}")
    if run.before:
        line.append(old.format(_spaced(run.before)), "red strike")
    if run.after:
        line.append(new.format(_spaced(run.after)), "bold green")


def _spaced(words: str) -> str:
    """One printable line whose blanks at the ends stay."""
    start = " " if words[:1].isspace() else ""
    end = " " if words[-1:].isspace() and len(words) > 1 else ""
    return f"{start}{plain(words)}{end}"
