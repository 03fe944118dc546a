"""A recording of a git repository."""

import sqlite3
import subprocess
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path

from scripts.benchmarks.record_site import main

LABELS = "SELECT text_hash, main_hash, jac_main FROM versions WHERE page = 2 ORDER BY time"


def recorded(
    folder: Path, *states: Sequence[str | None]
) -> Callable[[str], list[tuple[object, ...]]]:
    """Record commits of pages (None: deleted) that the start page links to."""
    git = ["git", "-C", f"{folder}", "-c", "user.name=a", "-c", "user.email=a@b.c"]
    subprocess.run([*git, "init", "-q"], check=True)
    for state in states:
        for number, text in enumerate((f'<a href="p1.html">next</a>{state}', *state)):
            path = folder / (f"p{number}.html" if number else "index.html")
            path.unlink(missing_ok=True) if text is None else path.write_text(text)
        subprocess.run([*git, "add", "."], check=True)
        subprocess.run([*git, "commit", "-qam", "a"], check=True)
    main([f"{folder}", f"{folder / 'site.sqlite'}", "--host", "a.example"])

    def select(words: str) -> list[tuple[object, ...]]:
        with closing(sqlite3.connect(folder / "site.sqlite")) as connection:
            return connection.execute(words).fetchall()

    return select


def test_a_commit_is_a_version_and_its_labels_say_what_it_changed(tmp_path: Path) -> None:
    texts = ("<p>one two", "<p>one two<nav>menu</nav>", "<p>three", None, "<p>one two")
    select = recorded(tmp_path, *[[text] for text in texts])
    (a, x, n), (b, y, o), (_, z, p), *rest = select(LABELS)
    assert (a != b, x == y, y == z, (n, o, p)) == (True, True, False, (None, 1.0, 0.0))
    assert rest == [(None, None, None), (a, x, None)]
    assert select("SELECT src, dst, t1 FROM links") == [(1, 2, None)]


def test_what_stands_on_many_pages_is_no_main_text(tmp_path: Path) -> None:
    pages = [[f"<p>Release {n}<p>page {i} of it" for i in range(10)] for n in (1, 2)]
    (a, x, _), (b, y, alike) = recorded(tmp_path, *pages)(LABELS)
    assert (a != b, x == y, alike) == (True, True, 1.0)
