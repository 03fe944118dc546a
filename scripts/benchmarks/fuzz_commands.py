"""Cases of the fuzz run, and those that give files and variables to commands."""

from __future__ import annotations

import json
import logging
import os
import re
import tomllib
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from typer.testing import CliRunner, Result

from freshet.crawler.cli.verbs import application
from scripts.benchmarks.fuzz_inputs import document, expanded, wacz, warc

_DEFAULTS = Path(__file__).parents[2] / "config/defaults.toml"
_NOWHERE = "http://127.0.0.1:9/"


@dataclass(slots=True)
class Case:
    """One case: its inputs as they are made, and what was wrong."""

    target: str
    seed: int
    directory: Path
    inputs: list[tuple[str, bytes]] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)

    def rng(self, *words: object) -> Random:
        """Chance of its own for every part, whatever the order of the parts."""
        return Random(" ".join(map(str, (self.seed, *words))))

    def written(self, name: str, data: bytes) -> Path:
        """Keep an input, and write it where a command reads it."""
        self.inputs.append((name, data))
        path = self.directory / name
        path.write_bytes(data)
        return path


def run_command(case: Case, arguments: Sequence[str], **variables: str) -> Result:
    """Call ``freshet`` in this process, as its users do; what it must not do is noted."""
    with _environment({**variables, "FRESHET_DEBUG": "1"}, case.directory):
        result = CliRunner().invoke(application([]), list(arguments))
    called = f"freshet {' '.join(arguments)} {variables or ''}"
    error = result.exception
    if error is not None and not isinstance(error, SystemExit):
        case.wrong.append(f"{called}: {''.join(traceback.format_exception(error))}")
    elif result.exit_code not in {0, 1, 2}:
        case.wrong.append(f"{called}: exit code {result.exit_code}")
    elif "Traceback" in result.output or "internal error" in result.output:
        case.wrong.append(f"{called}: {result.output[-2_000:]}")
    elif result.exit_code == 1 and len(_REASON.findall(result.stderr)) != 1:
        case.wrong.append(f"{called}: exit code 1 and no single reason: {result.stderr[-500:]!r}")
    return result


_REASON = re.compile(r"^freshet: \S", re.MULTILINE)


@contextmanager
def _environment(variables: Mapping[str, str], directory: Path) -> Iterator[None]:
    """These variables, and the directory as that of work and settings; the log as before."""
    before, place, root = dict(os.environ), Path.cwd(), logging.getLogger()
    handlers, level = root.handlers[:], root.level
    os.environ.update(variables, XDG_CONFIG_HOME=str(directory))
    os.chdir(directory)
    try:
        yield
    finally:
        root.handlers[:] = handlers
        root.setLevel(level)
        os.chdir(place)
        os.environ.clear()
        os.environ.update(before)


def archives(case: Case) -> None:
    """An archive or an index, replayed into a store and listed."""
    rng = case.rng("archive")
    name, data = {
        0: ("a.warc.gz", warc(rng)), 1: ("a.warc", warc(rng)), 2: ("a.wacz", wacz(rng)),
        3: ("a.cdxj", document(rng, "cdxj")), 4: ("a.arc", document(rng, "arc")),
        5: ("a.cdx", document(rng, "cdxline") * rng.randint(1, 9)), 6: ("a.warc.gz", warc(rng)),
    }[rng.randrange(7)]  # fmt: skip
    if name in {"a.cdxj", "a.cdx"}:
        case.written("a.warc", warc(rng))
    path = str(case.written(name, data))
    run_command(case, ["replay", path, "--db", str(case.directory / "crawl.db"), "--json"])
    run_command(case, ["archive", path, "--json"])
    run_command(case, ["archive", str(case.directory), "--cdxj", "i", "--wacz", "w.wacz"])
    run_command(case, ["replay", path])


def settings(case: Case) -> None:
    """A settings file and a variable, shown and crawled with."""
    rng = case.rng("settings")
    defaults = tomllib.loads(_DEFAULTS.read_text("utf-8"))
    tables = {group: table for group, table in defaults.items() if isinstance(table, dict)}
    keys = [(group, key) for group, table in tables.items() for key in table]
    group, key = rng.choice(keys)
    usual = json.dumps(tables[group][key])
    near = re.sub(r"[0-9]", lambda _: rng.choice("0123456789"), usual)
    text = {
        0: f"[{group}]\n{key} = {near}\n", 1: f"[{group}]\n{key} = {expanded(rng, 'n')}\n",
        2: f"[{group}]\n{key} = {expanded(rng, 'tomlvalue')}\n",
        3: expanded(rng, "toml", host="127.0.0.1:9", key=key),
    }[rng.randrange(4)]  # fmt: skip
    data = document(rng, "toml", key=key) if rng.random() < 0.2 else text.encode("utf-8", "replace")
    path = str(case.written("freshet.toml", data))
    group, key = rng.choice(keys)
    value = expanded(rng, rng.choice(("n", "word", "tomlvalue", "url", "json"))).replace("\0", "")
    value = value.encode("utf-8", "replace").decode()
    variable = {f"FRESHET_{group}__{key}".upper(): value} if rng.random() < 0.5 else {}
    case.inputs.append(("variable", repr(variable).encode()))
    if run_command(case, ["config", "show", "--config", path], **variable).exit_code == 0:
        options = ["--patience", "0", "--time-limit", "2", "--delay", "0", "--db", "crawl.db"]
        run_command(case, ["crawl", _NOWHERE, "--config", path, *options], **variable)


def lists(case: Case) -> None:
    """A list of sites, imported twice and crawled; the second import must add nothing."""
    rng = case.rng("list")
    data = document(rng, "list", host="127.0.0.1:9")
    name = rng.choice(("sites.txt", "sites.csv", "sites.opml", "sites.xml", "urls.yaml", "a.json"))
    path = str(case.written(name, data))
    kind = ["--format", rng.choice(("opml", "sitemap", "urlwatch", "changedetection"))]
    kind = kind if rng.random() < 0.4 else []
    into = str(case.directory / f"into.{rng.choice(('txt', 'csv'))}")
    if rng.random() < 0.3:
        case.written(Path(into).name, document(rng, "list", host="127.0.0.1:9"))
    if run_command(case, ["import", path, "--into", into, *kind]).exit_code == 0:
        again = run_command(case, ["import", path, "--into", into, "--json", *kind])
        if again.exit_code != 0 or json.loads(again.stdout)["added"]:
            case.wrong.append(f"importing again is not idle: {again.output[:500]}")
    options = ["--patience", "0", "--time-limit", "2", "--delay", "0", "--db"]
    db = str(case.directory / "crawl.db")
    for file in (path, into):
        run_command(case, ["crawl", "--sites", file, *options, db])
