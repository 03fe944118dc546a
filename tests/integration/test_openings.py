"""What people open of the lists that they see changes the next ones."""

import asyncio
import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.console import as_json, freshet, shown
from tests.integration.scripted import Page, scripted
from tests.integration.test_search import crawled
from tests.storage.small_store import rows

WORDS = "A page about lanterns, which says little."


@pytest.fixture
async def db(tmp_path: Path) -> Path:
    """A store in which five pages are alike to a search."""
    names = [f"/{i}" for i in range(5)]
    links = " ".join(f'<a href="{each}">x</a>' for each in names)
    site = {
        each: Page(f"<title>Lantern</title><main><h1>Page</h1><p>{WORDS}</p></main>")
        for each in names
    }
    path = tmp_path / "crawl.db"
    async with scripted({"docs": site | {"/": Page(f"<title>All</title>{links}")}}) as web:
        await crawled(web, path, "on")
    return path


def listed(db: Path, *options: object) -> list[str]:
    found = as_json("search", "lanterns", "--db", db, *options)["results"]
    return [each["url"] for each in found]


def an_hour_later(db: Path) -> None:
    """Let all that was shown and opened be so an hour earlier."""
    with closing(sqlite3.connect(db)) as connection, connection:
        connection.execute("UPDATE showing SET at = at - 3600, opened_at = opened_at - 3600")


async def run(work: Any, *arguments: Any) -> Any:
    return await asyncio.to_thread(work, *arguments)


async def test_a_page_that_is_opened_stands_first_from_then_on(
    db: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = await run(freshet, "open", "1", "--db", db)
    assert (refused.exit_code, "set `record = true` in [presentation]" in refused.output) == (
        2, True,
    )  # fmt: skip
    monkeypatch.setenv("FRESHET_PRESENTATION__RECORD", "true")
    before = await run(freshet, "open", "1", "--db", db)
    assert "no list is kept; `freshet search` shows one" in before.output
    plain = await run(listed, db)
    for _ in range(3):
        place = (await run(listed, db)).index(plain[3]) + 1
        assert await run(shown, "open", place, "--db", db, "--print") == plain[3] + "\n"
    assert await run(listed, db) == plain
    an_hour_later(db)
    after = await run(listed, db)
    assert after[0] == plain[3]
    assert sorted(after) == sorted(plain)
    assert await run(listed, db, "--offset", 2) == after[2:]
    beyond = await run(freshet, "open", "9", "--db", db)
    assert "9: the last list has 3 to 5" in beyond.output
    text = await run(shown, "search", "lanterns", "--db", db)
    assert text.startswith(" 1  Lantern")


async def test_a_browser_is_started_and_its_absence_is_told(
    db: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FRESHET_PRESENTATION__RECORD", "true")
    started: list[str] = []

    def open_(url: str) -> bool:
        started.append(url)
        return False

    monkeypatch.setattr("webbrowser.open", open_)
    (first, *_) = await run(listed, db)
    told = await run(freshet, "open", "1", "--db", db)
    assert started == [first]
    assert "the environment variable BROWSER names one" in told.output


async def test_lists_of_other_programs_are_noted_once(
    db: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("FRESHET_PRESENTATION__RECORD", "true")
    urls, file = await run(listed, db), tmp_path / "lists.jsonl"
    lines: list[dict[str, Any]] = [
        {"shown": [*urls[:3], "http://elsewhere.example/"], "opened": [urls[2]], "id": "one"},
        {"shown": urls, "at": "2026-11-01T12:00Z", "promoted": [urls[4]], "opened": [urls[4]]},
    ]
    file.write_text("\n".join(map(json.dumps, [*lines, lines[0]])) + "\n\n")
    told = await run(as_json, "opened", "--from", file, "--db", db)
    assert told == {"lists": 2, "known_before": 1, "opened": 2, "unknown_urls": 2}
    assert (await run(as_json, "opened", "--from", file, "--db", db))["lists"] == 0
    odd = tmp_path / "odd.jsonl"
    odd.write_text(json.dumps({"shown": urls[:1], "id": "\ud800"}))
    assert (await run(as_json, "opened", "--from", odd, "--db", db))["lists"] == 1
    noted = rows(
        db, "SELECT place, promoted FROM showing WHERE opened_at IS NOT NULL ORDER BY place"
    )
    assert noted == [(3, 0), (5, 1)]
    told = await run(as_json, "status", "--db", db)
    assert told["openings"] == {"lists": 4, "shown": 14, "opened": 2, "promoted": 1}
    assert 0 <= told["attention"][1] < told["attention"][0] < told["attention"][2]
    an_hour_later(db)
    assert (await run(listed, db))[0] in {urls[2], urls[4]}


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("{", "line 1: Expecting property name"),
        ("[]", "line 1: not an object that has shown, of at, id, opened, promoted, shown"),
        ('{"shown": [], "who": "me"}', "line 1: not an object that has shown"),
        ('{"shown": "http://a.example/"}', "line 1: shown is not a list of URLs"),
        ('{"shown": ["nowhere"]}', "line 1: "),
        ('{"shown": [], "opened": ["http://a.example/"]}', "a.example/ is not among those shown"),
        ('{"shown": [], "at": "soon"}', "line 1: soon: not a moment"),
        ('{"shown": [], "at": 3}', "line 1: at is not a string"),
        ('{"shown": ["http://a.example/\\ud800"]}', ""),
        ("[" * 100_000, "line 1: "),
        ("\x00", "line 1: "),
        ("x" * 1_000_001, "lists.jsonl, line 1: more than 1,000,000 bytes"),
    ],
)
async def test_a_wrong_line_is_named(
    db: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, line: str, said: str
) -> None:
    monkeypatch.setenv("FRESHET_PRESENTATION__RECORD", "true")
    file = tmp_path / "lists.jsonl"
    file.write_text(line)
    result = await run(freshet, "opened", "--from", file, "--db", db)
    assert said in result.output
    if said:
        assert result.exit_code == 2
        assert result.output.startswith("freshet: ")
        assert result.output.count("\n") <= 3
    assert "an internal error" not in result.output
