"""``freshet diff URL [A B]``: show what changed between two stored versions of a page."""

import time
from html import escape
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Annotated, Final

import typer
from rich.text import Text

from freshet.crawler.cli.options import DEFAULT_DB, ConfigFile, Db, Json, Page
from freshet.crawler.compare.diff import AlignedBlock, BlockChange, Run, in_numbers, shortened
from freshet.crawler.frontier.clock import calendar
from freshet.crawler.read.documents import NoHistory, VersionDifference
from freshet.crawler.read.store import Store
from freshet.crawler.run.terminal import (
    fail,
    inert,
    moment,
    out,
    plain,
    print_json,
    say,
    show_facts,
    show_line,
    show_text,
    told_in_one_line,
    written,
)

# -- diff view ---------------------------------------------------------------
_STYLES: Final[dict[BlockChange, tuple[str, str]]] = {
    "kept": (" ", "dim"),
    "edited": ("~", ""),
    "moved": (">", "cyan"),
    "added": ("+", "green"),
    "removed": ("-", "red"),
}
#: Characters of an edited block that are shown on each side of a change.
_AROUND: Final = 60
_UNCHANGED_WIDTH: Final = 100


def print_difference(difference: VersionDifference, context: int, now: float) -> None:
    """Print the difference for people."""
    show_facts(
        difference.url,
        {
            "from": f"version {difference.before.number}, {moment(difference.before.at, now)}",
            "to": f"version {difference.after.number}, {moment(difference.after.at, now)}",
            "blocks": in_numbers(difference.blocks) or None,
            "why": difference.why,
        },
    )
    if difference.is_empty:
        show_line("No block of main text differs; only the frame of the page does.")
        return
    show_text(Text())
    for each in difference.around_changes(context):
        if isinstance(each, int):
            show_text(Text(f"  … {each:,} unchanged", style="dim"))
        else:
            show_text(_block(each, is_volatile=difference.is_volatile(each)))


def _block(block: AlignedBlock, *, is_volatile: bool) -> Text:
    mark, style = _STYLES[block.change]
    line = Text(f"{mark} ", style=style)
    text = plain(block.text)
    if is_volatile and block.change != "kept":
        line.append(f"{text}  (differs at every visit)")
        line.stylize("dim")
        return line
    match block.change:
        case "edited":
            for run in shortened(block.runs, _AROUND):
                _append_run(line, run)
        case "kept" if len(text) > _UNCHANGED_WIDTH:
            line.append(text[: _UNCHANGED_WIDTH - 1] + "…", style)
        case "moved":
            line.append(text, style)
            line.append(_direction(block), "dim")
        case _:
            line.append(text, style)
    return line


def _direction(block: AlignedBlock) -> str:
    """Return the direction in which readers see the block move.

    Added and removed blocks count as positions.
    """
    if block.before is None or block.after is None:
        return ""
    return f"  (moved {'down' if block.after > block.before else 'up'})"


def _append_run(line: Text, run: Run) -> None:
    if run.is_kept:
        line.append(_spaced(run.after))
        return
    # Without colours, use the brackets of wdiff.
    old, new = ("{}", "{}") if out.color_system else ("[-{}-]", "{{+{}+}}")
    if run.before:
        line.append(old.format(_spaced(run.before)), "red strike")
    if run.after:
        line.append(new.format(_spaced(run.after)), "bold green")


def _spaced(words: str) -> str:
    """Return printable text on one line, with its leading and trailing space."""
    start = " " if words[:1].isspace() else ""
    end = " " if words[-1:].isspace() and len(words) > 1 else ""
    return f"{start}{plain(words)}{end}"


# -- diff page ---------------------------------------------------------------
# A self-contained page: no script, no font, no network.
_PAGE: Final = Template((files(__package__) / "diff.html").read_text("utf-8"))


def page_of(difference: VersionDifference, context: int) -> str:
    """Return the HTML page, with ``context`` unchanged blocks around each change."""
    rows = [
        f'<p class="gap">{each:,} unchanged</p>'
        if isinstance(each, int)
        else _html_block(each, is_volatile=difference.is_volatile(each))
        for each in difference.around_changes(context)
    ]
    numbers = in_numbers(difference.blocks) or "no block of main text differs"
    page = _PAGE.substitute(
        title=escape(f"What changed: {difference.url}"),
        href=escape(difference.url),
        url=escape(difference.url),
        before=_version(difference.before.number, difference.before.at),
        after=_version(difference.after.number, difference.after.at),
        numbers=escape(numbers),
        blocks="\n".join(rows),
    )
    return inert(page)


def _version(number: int, at: float) -> str:
    moment = calendar(at)
    return f'{number} (<time datetime="{moment.isoformat()}">{moment:%Y-%m-%d %H:%M} UTC</time>)'


def _html_block(block: AlignedBlock, *, is_volatile: bool) -> str:
    words = "".join(map(_run, block.runs)) if block.change == "edited" else escape(block.text)
    label = "" if block.change == "kept" else f'<span class="word">{block.change}</span>'
    kind = f"{block.change} volatile" if is_volatile else block.change
    note = ' <span class="word">differs at every visit</span>' if is_volatile else ""
    return f'<p class="block {kind}">{label}{words}{note}</p>'


def _run(run: Run) -> str:
    if run.is_kept:
        return escape(run.after)
    before = f"<del>{escape(run.before)}</del>" if run.before else ""
    after = f"<ins>{escape(run.after)}</ins>" if run.after else ""
    return before + after


def diff_command(  # noqa: PLR0913, PLR0917 - the options are the arguments
    url: Page,
    before: Annotated[
        str | None,
        typer.Argument(
            metavar="[A]",
            help="The older version: its number in `freshet history` (-1 is the last), or a date; "
            "default: the one before B.",
        ),
    ] = None,
    after: Annotated[
        str | None, typer.Argument(metavar="[B]", help="The newer version; default: the last.")
    ] = None,
    db: Db = DEFAULT_DB,
    context: Annotated[
        int, typer.Option(metavar="N", min=0, help="Unchanged blocks to show around a change.")
    ] = 1,
    noise: Annotated[
        bool, typer.Option("--all", help="Count versions without a significant change as well.")
    ] = False,
    html: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write the diff as one HTML page; - is stdout."),
    ] = None,
    config: ConfigFile = None,
    json: Json = False,
) -> None:
    """Show what changed between two versions of a page.

    Blocks of main text are edited, moved, added or removed; edited ones are shown word by word.
    Without version numbers, the last significant change is shown.
    """
    if html is not None and json:
        fail("give --html or --json, not both", 2)
    with told_in_one_line(), Store(db, config=config) as store:
        try:
            difference = store.diff(url, before, after, all=noise)
        except NoHistory as error:
            fail(str(error), 0)
    if json:
        print_json(difference.as_json())
    elif html is None:
        print_difference(difference, context, time.time())
    else:
        with written(html) as file:
            file.write(page_of(difference, context))
        if str(html) != "-":
            say("written:", "green", str(html))
