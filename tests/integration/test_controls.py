"""Nothing that a site says steers the terminal of whoever looks at it."""

import asyncio
import json
import re
from pathlib import Path

import pytest

from freshet.crawler.run.terminal import inert, json_text
from tests.console import freshet
from tests.integration.test_daemon import Stage
from tests.integration.test_edited_stores import by_hand

#: ESC, BEL, NUL, backspace, form feed, a lone CR, DEL, NEL, CSI, OSC, APC, separators of lines,
#: and what turns the direction of text around.
CONTROLS = [
    *"\x1b\x07\0\x08\x0c\r\x7f\x85\x9b\x9d\x9f\u2028\u2029",
    *"\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069",
]
TITLE = "A title" + "".join(f"{each}[31m" for each in CONTROLS) + "ends"
RAW = re.compile("|".join(map(re.escape, CONTROLS)))


@pytest.mark.parametrize("control", CONTROLS)
def test_a_control_is_escaped_in_json_and_replaced_elsewhere(control: str) -> None:
    text = f"a{control}b"
    assert inert(text) == "a\ufffdb"
    told = json_text({text: [text]})
    assert not RAW.search(told)
    assert json.loads(told) == {text: [text]}


@pytest.mark.parametrize("text", ["a\tb\nc", "a\r\nb", "שלום", "naïve 🙂 日本語", ""])
def test_what_is_no_control_stays(text: str) -> None:
    assert inert(text) == text
    assert json.loads(json_text(text)) == text
    assert not text.isprintable() or text in json_text(text)


@pytest.fixture(scope="module")
def hostile_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    stage = Stage(tmp_path_factory.mktemp("controls") / "crawl.db")
    asyncio.run(stage.keep(480.0, 1.0, ["news"], search__index="on"))
    with by_hand(stage.db) as db:
        for table, name in db.execute(
            "SELECT m.name, c.name FROM sqlite_master AS m, pragma_table_info(m.name) AS c "
            "WHERE m.type = 'table' AND c.type = 'TEXT'"
        ).fetchall():
            if name in {"title", "detail", "anchor", "reason", "etag", "fetch_url", "why"}:
                db.execute(f"UPDATE {table} SET {name} = ? WHERE {name} IS NOT NULL", (TITLE,))
    return stage.db


URL = "http://news.localhost/"


@pytest.mark.parametrize(
    "verb",
    [
        ("status", "--json"), ("changes", "--all", "--json"), ("explain", URL, "--json"),
        ("history", URL, "--json"), ("text", URL, "--format", "json"), ("text", URL),
        ("diff", URL, "--json"), ("diff", URL, "--html", "-"), ("signals", "--json"),
        ("duplicates", "--json"), ("search", "the", "--json"), ("changefeed",),
        ("changefeed", "--include-docs"), ("alerts", "--json"),
        ("export", "pages", "-o", "-"), ("export", "observations", "-o", "-"),
        ("export", "links", "-o", "-"), ("export", "estimates", "-o", "-"),
        ("export", "pages", "-o", "FILE.jsonl"), ("export", "observations", "-o", "FILE.jsonl"),
    ],
    ids=" ".join,
)  # fmt: skip
def test_no_machine_readable_output_steers_a_terminal(
    hostile_store: Path, tmp_path: Path, verb: tuple[str, ...]
) -> None:
    arguments = [each.replace("FILE", str(tmp_path / "out")) for each in verb]
    result = freshet(*arguments, "--db", hostile_store)
    assert result.exit_code == 0, result.output
    said = result.stdout + "".join(each.read_text() for each in tmp_path.glob("out*"))
    assert said
    assert RAW.findall(said) == []


@pytest.mark.parametrize("table", ["--json", "toml"])
def test_neither_do_settings(tmp_path: Path, table: str) -> None:
    config = tmp_path / "freshet.toml"
    config.write_text(f"[crawl]\ncontact = {json.dumps('me@example.org ' + TITLE)}\n")
    result = freshet(
        "config", "show", "--config", config, *(["--json"] if table == "--json" else [])
    )
    assert RAW.findall(result.stdout) == []
