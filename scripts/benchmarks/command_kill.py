"""kill -9 at the n-th file call of each command that writes, and the same command again.

A library that is loaded before all others counts the calls that change files (write, rename,
fsync and so on), and kills at one of them; of every second write that is due, half is written. Then
the same command must end well, and leave what it leaves when nobody kills it: the same files, the
same numbers of rows in all tables, the same visits and digests, sound stores. (The search index of
a shard that got pages follows at its next run, killed or not.) Linux only, with a compiler of C.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Collection, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from time import monotonic
from typing import Any

import zstandard

from freshet.storage.database import open_store
from freshet.storage.shards import Shards
from freshet.storage.tables.runs import take_lease
from scripts.benchmarks.command import say
from scripts.benchmarks.crawling import crawl
from scripts.benchmarks.loopback import Web, addresses, serving
from scripts.benchmarks.site_contents import Calm
from scripts.benchmarks.store_inspection import StoreState, inspect

_ROOT = Path(__file__).parents[2]
_FRESHET = str(Path(sys.executable).with_name("freshet"))
_OLDER = _ROOT / "tests" / "storage" / "stores" / "schema-17.sqlite.zst"
_PAGES, _HOSTS = 25, 4
#: What is kept at the least, so that ``gc`` has something to delete.
_LITTLE = (
    "[store]\nbodies_per_page = 1\nsketches_per_page = 3\nfailure_age_days = 1\nlink_age_days = 1\n"
)
#: Tables whose rows depend on the time, not on what is kept.
_OF_TIMES = frozenset({"migration", "sqlite_sequence", "sqlite_stat1", "sqlite_stat4"})


@dataclass(frozen=True, slots=True)
class Command:
    """A command that writes in a folder; ``prepare`` makes the folder ready."""

    name: str
    words: tuple[str, ...]
    prepare: Callable[[Path], None] = lambda _: None


def _older(folder: Path) -> None:
    (folder / "crawl.db").write_bytes(zstandard.decompress(_OLDER.read_bytes()))
    (folder / "crawl.db").chmod(0o600)


def _much(folder: Path) -> None:
    _older(folder)
    _run(("gc", "--db", "crawl.db"), folder)
    (folder / "little.toml").write_text(_LITTLE)


def _other_texts(folder: Path) -> None:
    with closing(sqlite3.connect(folder / "crawl.db")) as store, store:
        store.execute("UPDATE version SET text_version = '1' WHERE text_version IS NOT NULL")


def _backup(folder: Path) -> None:
    _run(("backup", "--db", "crawl.db", "copy.db"), folder)


def _shards(folder: Path, count: int = 1) -> None:
    shards = Shards(folder / "shards", 1)
    shards.write()
    (folder / "crawl.db").rename(shards.path(0))

    async def take() -> None:
        database = await open_store(shards.path(0))
        await database.write(lambda db: take_lease(db, 0))
        await database.close()

    asyncio.run(take())
    if count > 1:
        _run(("shards", "split", str(count), "--db", "shards"), folder)


_DB = ("--db", "crawl.db")
_SHARDED = ("--db", "shards")
_SITE = "http://127.0.1.1:PORT/"
COMMANDS = (
    Command("backup", ("backup", *_DB, "copy.db")),
    Command("restore", ("restore", *_DB, "--force", "copy.db"), _backup),
    Command("gc", ("gc", *_DB, "--vacuum", "--config", "little.toml"), _much),
    Command("migration from schema 17", ("gc", *_DB), _older),
    Command(
        "forget --archives", ("forget", *_DB, "--prefix", "http://127.0.1.1:PORT/", "--archives")
    ),
    Command("rereduce", ("rereduce", *_DB), _other_texts),
    Command("archive --wacz", ("archive", "archive", "--wacz", "all.wacz")),
    Command("archive --cdxj", ("archive", "archive", "--cdxj", "all.cdxj")),
    Command("shards split", ("shards", "split", "3", *_SHARDED), _shards),
    Command("shards merge", ("shards", "merge", "1", *_SHARDED), lambda it: _shards(it, 3)),
    Command("shards move", ("shards", "move", "0", "there", *_SHARDED), lambda it: _shards(it, 2)),
)


def _run(words: tuple[str, ...], folder: Path, **calls: str) -> subprocess.CompletedProcess[str]:
    """Run a command in a folder; ``calls`` are variables of the library.

    Raises:
        RuntimeError: it failed, and was not killed.
    """
    kept = {name: value for name, value in os.environ.items() if not name.startswith("FRESHET_")}
    kept |= {"XDG_CONFIG_HOME": str(folder), "PYTHONDONTWRITEBYTECODE": "1"} | calls
    done = subprocess.run(
        [_FRESHET, *words], cwd=folder, env=kept, capture_output=True, text=True, check=False,
        start_new_session=True,
    )  # fmt: skip
    if done.returncode not in {0, -signal.SIGKILL}:
        raise RuntimeError(f"freshet {' '.join(words)} ended with {done.returncode}: {done.stderr}")
    return done


def _library(folder: Path) -> Path:
    target = folder / "file_calls.so"
    source = Path(__file__).with_name("file_calls.c")
    compiler = ["cc", "-shared", "-fPIC", "-O1", str(source), "-o", str(target), "-ldl"]
    subprocess.run(compiler, check=True)
    return target


@dataclass(frozen=True, slots=True)
class Left:
    """What a folder holds: its files, and of each store rows by table and what was observed."""

    files: frozenset[str]
    rows: Mapping[str, Mapping[str, int]]
    states: Mapping[str, StoreState]

    @classmethod
    def of(cls, folder: Path) -> Left:
        """Look into a folder that nobody writes."""
        files = [path for path in folder.rglob("*") if path.is_file()]
        stores = [path for path in files if path.suffix == ".db" and "crawl_run" in _rows(path)]
        names = {path: str(path.relative_to(folder)) for path in files}
        return cls(
            frozenset(names.values()),
            {names[path]: _rows(path) for path in files if path.suffix == ".db"},
            {names[path]: inspect(path) for path in stores},
        )

    def faults(self, wanted: Left) -> list[str]:
        """Return in what this differs from what is wanted."""
        found = [f"{name}: is there" for name in self.files - wanted.files]
        found += [f"{name}: is missing" for name in wanted.files - self.files]
        for name in self.rows.keys() & wanted.rows.keys():
            mine, other = self.rows[name], wanted.rows[name]
            found += [
                f"{name}: {table} has {mine.get(table)} rows, not {other.get(table)}"
                for table in mine.keys() | other.keys()
                if mine.get(table) != other.get(table)
            ]
        for name in self.states.keys() & wanted.states.keys():
            problems = set(self.states[name].problems) - set(wanted.states[name].problems)
            found += [f"{name}: {problem}" for problem in problems]
            if self.states[name] != wanted.states[name]:
                found.append(f"{name}: other visits or digests")
        return found


def _rows(path: Path) -> dict[str, int]:
    with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as store:
        sql = "SELECT name FROM sqlite_master WHERE type = 'table'"
        tables = [name for (name,) in store.execute(sql) if name not in _OF_TIMES]
        return {it: store.execute(f'SELECT count(*) FROM "{it}"').fetchone()[0] for it in tables}


def measure(kills: int, directory: Path, names: Collection[str] = ()) -> dict[str, Any]:
    """Kill each command, or those of these names, so many times, at calls spread over all."""
    # A store knows its archive by its path: all trials are in one folder.
    base, folder = directory / "base", directory / "folder"
    folder.mkdir()
    calm = Calm(_PAGES, latency_s=0.0, max_bytes=6_000)
    web = Web(calm, addresses(_HOSTS), {})
    options = ("--delay", "0", "--archive", str(folder / "archive"), "--index", "on")
    with serving(web, directory / "exchanges.log") as server:
        for _ in range(2):
            with crawl(server, folder / "crawl.db", *options) as running:
                running.report()
    for name in ("output.json", "errors.log", "sites.txt"):
        (folder / name).unlink(missing_ok=True)
    folder.rename(base)
    library, found = _library(directory), dict[str, Any]()
    for each in COMMANDS:
        if names and each.name not in names:
            continue
        words = tuple(word.replace("PORT", str(server.port)) for word in each.words)
        command = replace(each, words=words)
        found[command.name] = _killed(command, kills, base, directory, library)
        say(f"{command.name}: {found[command.name]}")
    return {
        "kills": sum(each["kills"] for each in found.values()),
        "wrong": sum(len(each["wrong"]) for each in found.values()),
        "commands": found,
    }


def _killed(
    command: Command, kills: int, base: Path, directory: Path, library: Path
) -> dict[str, Any]:
    ready, folder = directory / "ready", directory / "folder"
    for each in (ready, folder):
        shutil.rmtree(each, ignore_errors=True)
    shutil.copytree(base, folder)
    command.prepare(folder)
    shutil.copytree(folder, ready)
    calls = {"LD_PRELOAD": str(library)}
    count_file = directory / "calls"
    _run(command.words, folder, **calls, FILE_CALLS_COUNT=str(count_file))
    total, wanted = int(count_file.read_text()), Left.of(folder)
    done, wrong, began = 0, list[str](), monotonic()
    for number in range(kills):
        shutil.rmtree(folder)
        shutil.copytree(ready, folder)
        at = 1 + number * total // kills
        torn = {"FILE_CALLS_TORN": "1"} if number % 2 else {}
        result = _run(command.words, folder, **calls, **torn, FILE_CALLS_KILL=str(at))
        done += result.returncode == -signal.SIGKILL
        try:
            _run(command.words, folder)
        except RuntimeError as error:
            wrong.append(f"call {at} of {total}: {error}")
            continue
        wrong += [f"call {at} of {total}: {it}" for it in Left.of(folder).faults(wanted)]
    took = monotonic() - began
    return {"calls": total, "kills": done, "wrong": wrong, "seconds": round(took, 1)}
