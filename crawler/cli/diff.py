"""``freshet diff URL [A B]``: what changed between two stored versions of a page."""

import sys
import time
from html import escape
from pathlib import Path
from string import Template
from typing import Annotated, Final

import typer
from rich.text import Text

from freshet.crawler.cli.options import DEFAULT_DB, ConfigFile, Db, Json, Page
from freshet.crawler.clock import calendar
from freshet.crawler.compare.diff import AlignedBlock, BlockChange, Run, in_numbers, shortened
from freshet.crawler.documents import VersionDifference
from freshet.crawler.store import Store
from freshet.crawler.terminal import (
    fail,
    moment,
    out,
    plain,
    print_json,
    say,
    show_facts,
    show_line,
    show_text,
    told_in_one_line,
)

# -- diff view ---------------------------------------------------------------
_STYLES: Final[dict[BlockChange, tuple[str, str]]] = {
    "kept": (" ", "dim"),
    "edited": ("~", ""),
    "moved": (">", "cyan"),
    "added": ("+", "green"),
    "removed": ("-", "red"),
}
#: Characters of an edited block that are shown on each side of what changed.
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
        },
    )
    if difference.is_empty:
        show_line("No block of main text differs: only the frame of the page does.")
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
    if is_volatile and block.change != "kept":
        line.append(f"{plain(block.text)}  (differs at every visit)")
        line.stylize("dim")
        return line
    if block.change == "edited":
        for run in shortened(block.runs, _AROUND):
            _append_run(line, run)
        return line
    text = plain(block.text)
    if block.change == "kept" and len(text) > _UNCHANGED_WIDTH:
        text = text[: _UNCHANGED_WIDTH - 1] + "…"
    line.append(text, style)
    if block.change == "moved" and block.before is not None and block.after is not None:
        # As a reader sees it: added and removed blocks count, too.
        line.append(f"  (moved {'down' if block.after > block.before else 'up'})", "dim")
    return line


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
    """Return one printable line that keeps the blanks at its ends."""
    start = " " if words[:1].isspace() else ""
    end = " " if words[-1:].isspace() and len(words) > 1 else ""
    return f"{start}{plain(words)}{end}"


# -- diff page ---------------------------------------------------------------
# One self-contained page: no script, no font, no network.
_PAGE: Final = Template("""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>$title</title>
<style>
:root { color-scheme: light dark; --ink: #1d2125; --paper: #fff; --faint: #6b7480;
  --line: #e3e6ea; --new: #d9f2e0; --new-ink: #0b5a2b; --old: #fbe0de; --old-ink: #8c1d18;
  --moved: #dcebfb; --moved-ink: #0b4a8f; }
@media (prefers-color-scheme: dark) { :root { --ink: #e4e7eb; --paper: #16191d;
  --faint: #939ca8; --line: #2c3238; --new: #12351f; --new-ink: #9be0b3; --old: #421b19;
  --old-ink: #f2aba6; --moved: #15304d; --moved-ink: #a6cdf7; } }
body { margin: 0 auto; max-width: 46rem; padding: 2rem 1.2rem 4rem; color: var(--ink);
  background: var(--paper); font: 16px/1.55 system-ui, sans-serif; overflow-wrap: anywhere; }
h1 { font-size: 1.15rem; margin: 0 0 .4rem; }
header { border-bottom: 1px solid var(--line); margin-bottom: 1.4rem; padding-bottom: .9rem; }
header p { margin: .1rem 0; color: var(--faint); font-size: .92rem; }
.block { margin: .5rem 0; padding: .35rem .7rem; border-left: 3px solid transparent; }
.kept { color: var(--faint); }
.added { border-color: var(--new-ink); background: var(--new); }
.removed { border-color: var(--old-ink); background: var(--old); color: var(--old-ink); }
.moved { border-color: var(--moved-ink); background: var(--moved); }
.edited { border-color: var(--faint); }
.volatile { opacity: .55; }
.word { font-size: .75rem; letter-spacing: .04em; text-transform: uppercase; color: var(--faint);
  margin-right: .5rem; }
ins { background: var(--new); color: var(--new-ink); text-decoration: none; border-radius: 2px; }
del { background: var(--old); color: var(--old-ink); border-radius: 2px; }
.gap { color: var(--faint); font-size: .85rem; text-align: center; margin: .9rem 0; }
a { color: inherit; }
@media print { body { max-width: none; } }
</style>
</head>
<body>
<header>
<h1><a href="$href" rel="noreferrer nofollow">$url</a></h1>
<p>from version $before to version $after</p>
<p>$numbers</p>
</header>
<main>
$blocks
</main>
</body>
</html>
""")


def page_of(difference: VersionDifference, context: int) -> str:
    """Return the page, with some unchanged blocks around each change."""
    rows = [
        f'<p class="gap">{each:,} unchanged</p>'
        if isinstance(each, int)
        else _html_block(each, is_volatile=difference.is_volatile(each))
        for each in difference.around_changes(context)
    ]
    numbers = in_numbers(difference.blocks) or "no block of main text differs"
    return _PAGE.substitute(
        title=escape(f"What changed: {difference.url}"),
        href=escape(difference.url),
        url=escape(difference.url),
        before=_version(difference.before.number, difference.before.at),
        after=_version(difference.after.number, difference.after.at),
        numbers=escape(numbers),
        blocks="\n".join(rows),
    )


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
            "without it the one before B.",
        ),
    ] = None,
    after: Annotated[
        str | None, typer.Argument(metavar="[B]", help="The newer version; without it the last.")
    ] = None,
    db: Db = DEFAULT_DB,
    context: Annotated[
        int, typer.Option(metavar="N", min=0, help="Unchanged blocks to show around a change.")
    ] = 1,
    noise: Annotated[
        bool, typer.Option("--all", help="Count versions without a significant change, too.")
    ] = False,
    html: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write the diff there as one HTML page; - is stdout."),
    ] = None,
    config: ConfigFile = None,
    json: Json = False,
) -> None:
    """Show what changed between two stored versions of a page, block by block.

    Blocks of main text are edited, moved, added or removed; edited ones are shown word by word.
    Without numbers the last significant change is shown.
    """
    if html is not None and json:
        fail("--html and --json exclude each other", 2)
    with told_in_one_line(), Store(db, config=config) as store:
        difference = store.diff(url, before, after, all=noise)
    if json:
        print_json(difference.as_json())
    elif html is None:
        print_difference(difference, context, time.time())
    else:
        _write(html, page_of(difference, context))


def _write(file: Path, page: str) -> None:
    if str(file) == "-":
        sys.stdout.write(page)
        return
    try:
        file.write_text(page, "utf-8")
    except OSError as error:
        fail(f"--html {file}: cannot be written: {error.strerror}")
    say("written:", "green", str(file))
