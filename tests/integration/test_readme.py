"""Each command of the README does what is said of it, on sites of loopback.

The two scripts have tests of their own (scripts/tests/test_demo.py; scripts/test runs this one),
and scripts/first_minutes installs with pipx.
"""

import asyncio
import json
import os
import re
import shlex
import signal
import sqlite3
import sys
from collections.abc import AsyncIterator
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from tests.integration.quick import QUICK
from tests.integration.scripted import Page, Scripted, scripted

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text("utf-8")
#: No mail server is needed: no mail is sent by what is tested here.
PROGRAM = """
from freshet.crawler.cli import run
from freshet.crawler.extensions.alerts.cli import watch
watch.create_connection = lambda address, timeout: open("/dev/null")
run()
"""
TEXTS = {
    "/minutes": "The council met on the first Monday of the month and heard three reports.",
    "/harbour": "Boats longer than eight metres need a mooring of their own all year.",
    "/library": "The reading room opens an hour earlier from May, as members had wished.",
}


def commands(text: str) -> list[list[str]]:
    """Return the commands in the shell blocks of a page, without those that are scripts."""
    blocks = re.findall(r"^```sh\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    lines = "\n".join(blocks).replace("\\\n", " ").splitlines()
    typed = [shlex.split(line, comments=True) for line in lines]
    return [words[1:] for words in typed if words and words[0] == "freshet"]


COMMANDS = commands(README)


def site(name: str) -> dict[str, Page]:
    links = " ".join(f'<a href="{target}">{target}</a>' for target in TEXTS)
    front = (
        f"<title>{name}</title><main><p>What the office of {name} makes known.</p>{links}</main>"
    )
    return {"/": Page(front)} | {
        target: Page(f"<title>{target}</title><main><p>{text}</p></main>")
        for target, text in TEXTS.items()
    }


SHOP = {"/tea": Page('<title>Tea</title><main><h1>Tea</h1><p class="price">12.90 €</p></main>')}
SITES = {name: site(name) for name in ("docs", "law", "tax", "gazette", "example")} | {"shop": SHOP}


@dataclass(frozen=True, slots=True)
class Typist:
    """Types commands of the README in a folder; its hosts are those of loopback."""

    folder: Path
    web: Scripted
    python: str = sys.executable

    async def type(self, words: list[str], *, until: str = "") -> tuple[int, str, str]:
        """Run a command; return its exit code, output and log. ``until`` it says so: Ctrl-C."""
        here = [self._here(word) for word in words]
        said = {f"FRESHET_{k.upper().replace('.', '__')}": json.dumps(v) for k, v in QUICK.items()}
        if self.python == sys.executable:
            said["PYTHONPATH"] = str(ROOT)
        process = await asyncio.create_subprocess_exec(
            self.python, "-c", PROGRAM, *here, cwd=self.folder, env=os.environ | said,
            stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )  # fmt: skip
        assert process.stderr is not None
        seen = ""
        while until and until not in seen:
            line = await process.stderr.readline()
            assert line, seen
            seen += line.decode()
        if until:
            process.send_signal(signal.SIGINT)
        out, err = await process.communicate()
        assert process.returncode is not None
        return process.returncode, out.decode(), seen + err.decode()

    def _here(self, word: str) -> str:
        """Return a word with the hosts of loopback; mail addresses are no hosts."""
        port = self.web.port
        host = r"(?<![@\w.-])(?:https://)?(\w+)(?:\.example(?:\.org)?|(?<=example)\.org)(?![\w.])"
        return re.sub(host, rf"http://\1.localhost:{port}", word)


@pytest.fixture
async def typist(tmp_path: Path) -> AsyncIterator[Typist]:
    async with scripted(SITES) as web:
        yield Typist(tmp_path, web)


def of(verb: str, part: str = "") -> list[str]:
    """Return the command of the README with this verb, and this word in it."""
    (found,) = {tuple(words) for words in COMMANDS if words[0] == verb and part in " ".join(words)}
    return list(found)


def test_no_command_of_the_readme_is_left_out() -> None:
    tried = [
        of("crawl", "docs."), of("changefeed"), of("sync"), of("daemon"), of("watch", "shop"),
        of("watch", "law"), of("crawl", "--archive"), of("archive"), of("replay"),
    ]  # fmt: skip
    assert sorted(tried) == sorted(map(list, {tuple(words) for words in COMMANDS}))


@pytest.mark.long
async def test_an_index_stays_in_step(typist: Typist) -> None:
    code, _, err = await typist.type(of("crawl", "docs."))
    assert code == 0, err
    code, out, err = await typist.type(of("changefeed"))
    assert code == 0, err
    *pages, end = map(json.loads, out.splitlines())
    texts = [page["doc"]["markdown"] for page in pages]
    assert sum(text in page for text in TEXTS.values() for page in texts) == 3
    code, out, err = await typist.type(of("changefeed"))
    assert [json.loads(line) for line in out.splitlines()] == [end], err
    await keeps_watching(typist)


@pytest.mark.long
async def test_a_table_of_vectors_is_in_step(typist: Typist) -> None:
    code, _, err = await typist.type(of("crawl", "docs."))
    assert code == 0, err
    (typist.folder / "my_model.py").write_text("def embed(texts): return [[len(t)] for t in texts]")
    await typist.type(of("sync"), until="in step: 4 changes")
    with closing(sqlite3.connect(typist.folder / "vectors.db")) as db:
        found = [text for (text,) in db.execute("SELECT markdown FROM chunk")]
    assert sum(text in each for text in TEXTS.values() for each in found) == 3


@pytest.mark.long
async def test_three_commands_lead_from_nothing_to_a_table_of_vectors(typist: Typist) -> None:
    (wanted,) = re.findall(r"^pipx install '(\./\[sqlite-vec\])'$", README, re.MULTILINE)
    # pipx does the same: an environment of its own, and pip in it.
    python = str(typist.folder / "venv/bin/python")
    for words in ((sys.executable, "-m", "venv", "venv"), (python, "-m", "pip", "install", wanted)):
        place = ROOT if wanted in words else typist.folder
        done = await asyncio.create_subprocess_exec(*words, cwd=place)
        assert await done.wait() == 0
    user = replace(typist, python=python)
    code, _, err = await user.type(of("crawl", "docs."))
    assert code == 0, err
    guide = (ROOT / "docs/guide/sync.md").read_text("utf-8")
    (model,) = re.findall(r"^```python\n(.*?)^```", guide, re.MULTILINE | re.DOTALL)
    (typist.folder / "my_model.py").write_text(model, "utf-8")
    await user.type(of("sync"), until="in step: 4 changes")
    again = await user.type([*of("sync"), "--once"])
    assert (again[0], "0 changes, 0 passages written" in again[2]) == (0, True), again
    with closing(sqlite3.connect(typist.folder / "vectors.db")) as db:
        held = db.execute("SELECT count(*) FROM chunk").fetchone()
        made = db.execute("SELECT count(*) FROM vector_rowids").fetchone()
    assert held == made == (4,)


async def keeps_watching(typist: Typist) -> None:
    """Start the daemon and press Ctrl-C: it says what it does, and ends cleanly."""
    code, _, err = await typist.type(of("daemon"), until=" keeps crawl.db fresh")
    assert code == 0, err
    lines = [json.loads(line) for line in err.splitlines()]
    assert {line["level"] for line in lines} == {"info"}
    assert lines[-1]["message"].startswith("stopped (interrupted)")


@pytest.mark.long
@pytest.mark.parametrize(("part", "shown"), [("shop", "12.9 ("), ("law", "all pages below")])
async def test_what_is_watched_is_shown_written_and_visited(
    typist: Typist, part: str, shown: str
) -> None:
    code, out, err = await typist.type(of("watch", part))
    assert (code, shown in out) == (0, True), out + err
    written = (typist.folder / "freshet.toml").read_text("utf-8")
    assert "me%40example.org" in written or "me@example.org" in written
    await keeps_watching(typist)


async def test_an_archive_is_made(typist: Typist) -> None:
    code, _, err = await typist.type(of("crawl", "--archive"))
    assert code == 0, err
    code, _, err = await typist.type(of("archive"))
    assert code == 0, err
    assert (typist.folder / "example.wacz").stat().st_size > 1_000


@pytest.mark.long
async def test_schedules_are_compared(typist: Typist) -> None:
    for _ in range(2):
        assert (await typist.type(of("crawl", "docs.")))[0] == 0
    code, out, err = await typist.type(of("replay"))
    assert code == 0, err
    assert all(policy in out for policy in ("site_clock", "lambda_crawl", "uniform"))
