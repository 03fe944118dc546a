"""Write docs/BENCHMARKS.md from the figures in docs/benchmarks.

Run it as ``python -m scripts.documents``. Each file there is one topic: its title, a text, and a
list of figures, which say what was measured, by which command, at which commit, on which machine,
at which load and when. What is not known is left out. A commit more than 200 commits ago is marked.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypedDict

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs/BENCHMARKS.md"
FOLDER = ROOT / "docs/benchmarks"
OLD = 200
MARK = " †"
HEAD = f"""\
# Benchmarks

`python -m scripts.documents` writes this page from the files in `docs/benchmarks`; change those.
Each command prints its figures as JSON, and those of `scripts/reproduce` print tables. An empty
field is not known. *Load* is the load average of the machine. † marks figures from more than {OLD}
commits ago. `DIR` is a folder of recorded sites (or `FRESHET_EVOLUTION_DIR`) unless the text of a
topic says otherwise: the histories of real sites with every version of their pages, which
`scripts/record_site` makes from git repositories. Parts of a value are separated by semicolons.
"""
COLUMNS = ("figure", "measured", "goal", "command", "commit", "machine", "load", "date")


class Figure(TypedDict, total=False):
    """One row of a table."""

    figure: str
    measured: str
    goal: str
    command: str
    commit: str
    machine: str
    load: str
    date: str


class Topic(TypedDict, total=False):
    """One file: a heading with a table."""

    title: str
    text: str
    pictures: list[str]
    figures: list[Figure]


def topics() -> list[Topic]:
    """Return the topics in the order of the page."""
    return [json.loads(file.read_text(encoding="utf-8")) for file in sorted(FOLDER.glob("*.json"))]


def page(is_old: Callable[[str], bool]) -> str:
    """Return the text of the page."""
    found = topics()
    links = " ·\n".join(f"[{it['title']}](#{_anchor(it['title'])})" for it in found)
    return "\n".join([HEAD, links, *(line for it in found for line in _section(it, is_old)), ""])


def _anchor(title: str) -> str:
    return title.lower().replace(",", "").replace(" ", "-")


def _section(topic: Topic, is_old: Callable[[str], bool]) -> Iterator[str]:
    yield f"\n## {topic['title']}\n"
    if text := topic.get("text"):
        yield f"{text}\n"
    yield f"| {' | '.join(COLUMNS)} |"
    yield "|---" * len(COLUMNS) + "|"
    for figure in topic["figures"]:
        yield f"| {' | '.join(_cells(figure, is_old))} |"
    for picture in topic.get("pictures", []):
        yield f"\n{picture}"


def _cells(figure: Figure, is_old: Callable[[str], bool]) -> Iterator[str]:
    for name in COLUMNS:
        cell = str(figure.get(name, ""))
        if name == "command" and cell:
            cell = f"`{cell}`"
        if name == "commit" and cell and is_old(cell):
            cell += MARK
        yield cell


def is_old(commit: str) -> bool:
    """Return whether more than ``OLD`` commits were made since a commit."""
    command = ["git", "rev-list", "--count", f"{commit}..HEAD"]
    counted = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    return int(counted.stdout) > OLD


if __name__ == "__main__":
    PAGE.write_text(page(is_old), encoding="utf-8")
