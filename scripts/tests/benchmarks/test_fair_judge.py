"""The judge of schedules: labels of its own, budgets that are kept, and rivals that remember."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path

import pytest
import zstandard

from scripts.benchmarks import site_labels
from scripts.benchmarks.plain_strategies import RIVALS, Links
from scripts.benchmarks.recorded_web import Recording
from scripts.benchmarks.site_labels import changes, lines_of, resemblance
from scripts.benchmarks.site_windows import DAY_S, Known, Window

_STATES = tuple[tuple[float, Mapping[str, str | None]], ...]
_TEXT = " ".join(f"word{n}" for n in range(60))


def page(text: str, *links: str, note: str = "") -> str:
    anchors = "".join(f'<li><a href="{link}">{link}</a>' for link in links)
    return (
        f"<!doctype html><title>t</title><nav><ul>{anchors}</ul></nav>"
        f"<main><h1>Title</h1><p>{text}</p>{note}<p>Last updated in spring</p></main>"
    )


def recorded(path: Path, *states: tuple[float, Mapping[str, str | None]]) -> Recording:
    """A site whose pages become these on these days; None: gone."""
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(
            "CREATE TABLE meta (key, value); CREATE TABLE pages (id, url, kind);"
            "CREATE TABLE versions (page, time, blob); CREATE TABLE blobs (id, base, data);"
            "CREATE TABLE links (src, dst, t0, t1);"
            "INSERT INTO meta VALUES ('hosts', 'site.example'), ('base', ''), ('t_start', '0'),"
            f" ('t_end', '{400 * DAY_S}');"
        )
        ids = {url: n for n, url in enumerate(dict.fromkeys(u for _, it in states for u in it), 1)}
        for url, number in ids.items():
            connection.execute("INSERT INTO pages VALUES (?, ?, 'html')", (number, url))
        for day, pages in states:
            for url, text in pages.items():
                packed = zstandard.ZstdCompressor().compress((text or "").encode())
                blob = connection.execute("SELECT count(*) FROM blobs").fetchone()[0]
                if text is not None:
                    connection.execute("INSERT INTO blobs VALUES (?, NULL, ?)", (blob, packed))
                version = (ids[url], day * DAY_S, None if text is None else blob)
                connection.execute("INSERT INTO versions VALUES (?, ?, ?)", version)
        connection.commit()
    return Recording(path)


@pytest.mark.parametrize(
    ("body", "lines"),
    [
        ("<body><nav>a</nav><main>" + "<p>b c</p>" * 30 + "</main>", ("b c",) * 30),
        ("<body><header>a</header><p>b</p><footer>c</footer>", ("b",)),
        ("<body><p>b</p><p>Last modified: today</p><p>© us</p><p>–</p>", ("b",)),
        ("<body><main>few</main><article>" + "<p>x</p>" * 30 + "</article>", ("x",) * 30),
        ('<meta charset="no such"><p>é</p>', ("é",)),
        ("", ()),
    ],
)
def test_the_lines_of_a_page_are_those_of_its_main_text(body: str, lines: Sequence[str]) -> None:
    assert lines_of(body.encode()) == lines


def test_the_same_lines_in_another_order_are_the_same() -> None:
    assert resemblance(["a b", "c d"], ["c d", "a b"]) == 1.0
    assert resemblance(["a b c d e"], ["a b c d f"]) == pytest.approx(1 / 3)


def test_what_comes_to_many_pages_at_once_is_no_change_of_any(tmp_path: Path) -> None:
    urls = [f"/{n}.html" for n in range(8)]
    first = {url: page(f"{_TEXT} of {url}") for url in urls}
    banner = {url: page(f"{_TEXT} of {url}", note="<p>We have moved</p>") for url in urls}
    edited = {"/3.html": page("another text entirely", note="<p>We have moved</p>")}
    with closing(recorded(tmp_path / "s.sqlite", (0, first), (5, banner), (9, edited))) as site:
        found = changes(site)
        assert dict(found) == {site.ids["/3.html"]: [9 * DAY_S]}
        # They are kept with the recording.
        assert changes(site) == found


def test_while_one_benchmark_labels_a_site_another_one_waits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    label = site_labels._found

    def found(site: Recording) -> Iterator[tuple[int, float]]:
        # Else both would write their labels, and each change count twice.
        locked = pytest.raises(sqlite3.OperationalError, match="locked")
        with closing(sqlite3.connect(site.path, timeout=0)) as other, locked:
            other.execute("BEGIN IMMEDIATE")
        yield from label(site)

    monkeypatch.setattr(site_labels, "_found", found)
    texts = [" ".join(f"{n}w{k}" for k in range(40)) for n in range(2)]
    states = [(float(n), {"/": page(text)}) for n, text in enumerate(texts)]
    with closing(recorded(tmp_path / "s.sqlite", *states)) as site:
        assert len(changes(site)) == 1


@pytest.mark.parametrize("name", RIVALS)
def test_a_careful_crawler_keeps_its_budget_and_asks_what_is_dead_once(
    name: str, tmp_path: Path
) -> None:
    urls = [f"/{n}.html" for n in range(12)]
    start = page(_TEXT, *urls, "/dead.html", "/away/index.html")
    state = {"/": start, **{url: page(f"{_TEXT} {url}") for url in urls}, "/away/": page("x")}
    later = {"/": page(_TEXT, *urls, "/new.html"), "/new.html": page("new"), "/5.html": None}
    with closing(recorded(tmp_path / "s.sqlite", (0, state), (100, later))) as site:
        pages = {number: Known(0.0, 360.0, -1.0, ()) for number in site.pages}
        window = Window(site, 0.0, 360.0, pages, {})
        runs = [
            RIVALS[name](Window(site, 0.0, 360.0, pages, {}, seed), Links(window), 84)
            for seed in (0, 1)
        ]
    for crawler in runs:
        assert 40 < crawler.requests <= 84
        asked = Counter({url: it.tries for url, it in crawler.known.items()})
        assert asked["https://site.example/dead.html"] == 1
        assert asked["https://site.example/5.html"] == 1
        assert crawler.web.kinds["missing"] == 1
        assert site.ids["/new.html"] in crawler.visits
        sessions = len(set(crawler.web.asked))
        assert crawler.web.robots == sessions
    # Equal pages are in another order in each run.
    assert runs[0].visits != runs[1].visits
