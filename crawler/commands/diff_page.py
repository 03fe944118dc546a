"""A difference as one HTML page that needs nothing else: no script, no font, no network."""

from __future__ import annotations

from datetime import UTC, datetime
from html import escape
from string import Template
from typing import Final

from freshet.crawler.commands.difference import Difference, Gap
from freshet.crawler.comparison.alignment import AlignedBlock, Change
from freshet.crawler.comparison.summary import in_numbers
from freshet.crawler.comparison.words import Run

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


def page_of(difference: Difference, context: int) -> str:
    """The page, with so many unchanged blocks around each change."""
    rows = [
        _html_gap(each)
        if isinstance(each, Gap)
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
    moment = datetime.fromtimestamp(at, UTC)
    return f'{number} (<time datetime="{moment.isoformat()}">{moment:%Y-%m-%d %H:%M} UTC</time>)'


def _html_gap(gap: Gap) -> str:
    return f'<p class="gap">{gap.blocks:,} unchanged</p>'


def _html_block(block: AlignedBlock, *, is_volatile: bool) -> str:
    words = "".join(map(_run, block.runs)) if block.change is Change.EDITED else escape(block.text)
    label = "" if block.change is Change.KEPT else f'<span class="word">{block.change}</span>'
    kind = f"{block.change} volatile" if is_volatile else str(block.change)
    note = ' <span class="word">differs at every visit</span>' if is_volatile else ""
    return f'<p class="block {kind}">{label}{words}{note}</p>'


def _run(run: Run) -> str:
    if run.is_kept:
        return escape(run.after)
    before = f"<del>{escape(run.before)}</del>" if run.before else ""
    after = f"<ins>{escape(run.after)}</ins>" if run.after else ""
    return before + after
