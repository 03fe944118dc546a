"""Hostile sites, loads and files: each row ends as a recorded outcome within bounds.

Every row is a real command in a process of its own, beside well-behaved hosts where the row has
them; what these get is compared with what they get alone. ``holds`` says whether all bounds were
kept: of all rows, and those of the row (``scripts/benchmarks/hostile_rows.py``).
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from functools import partial
from pathlib import Path
from time import monotonic
from typing import Any

from scripts.benchmarks import command
from scripts.benchmarks.crawling import CrawlProcess
from scripts.benchmarks.exchanges import read_log
from scripts.benchmarks.hostile_rows import ROWS, Outcome, Row, Seen
from scripts.benchmarks.loopback import Web, addresses, serving
from scripts.benchmarks.memory_watch import MemoryWatch
from scripts.benchmarks.site_contents import Calm
from scripts.benchmarks.store_inspection import reading

_ROOT = Path(__file__).parents[2]
#: Bounds of all rows.
MOST = {"peak_mb": 400.0, "stretch_ms": 150.0}
#: What a command may take to drain and to end after its time.
_GRACE_S = 20.0
_NEIGHBOURS = 4
#: Calm pages without end, so that there is always one to ask for.
_CALM = Calm(100_000, min_bytes=2_000, max_bytes=6_000)
_COLUMNS = (
    "peak_mb", "cpu_s", "cpu_children_s", "stretch_ms", "requests_hostile", "requests_strangers",
    "rows", "neighbours_requests", "neighbours_rate", "exit_code",
)  # fmt: skip


def measure(names: Sequence[str], directory: Path) -> dict[str, Any]:
    """Run the rows by name; the calm hosts alone first, where a row has them beside it."""
    alone = 0.0
    if any(ROWS[name].neighbours for name in names):
        alone = run(Row(), directory)["neighbours_per_s"]
    found: dict[str, dict[str, Any]] = {}
    for name in names:
        found[name] = run(ROWS[name], directory, alone)
        command.say(line(name, found[name]))
    return {
        "neighbours_alone_per_s": alone,
        "rows": found,
        "hold": sum(each["holds"] for each in found.values()),
    }


def run(row: Row, directory: Path, alone: float = 0.0) -> dict[str, Any]:
    """The figures of one row, and whether it holds."""
    place = directory / row.name
    place.mkdir()
    beside = serving(Web(_CALM, addresses(_NEIGHBOURS), {}), place / "calm.log")
    with _attacking(row, place) as port, beside if row.neighbours else nullcontext() as calm:
        seeds = row.seeds(port) + (calm.seeds() if calm else [])
        (place / "sites.txt").write_text("\n".join(seeds) + "\n", "utf-8")
        figures, reports = _invoked(row, place)
    outcome = _outcome(row, place, figures, reports)
    figures |= _counted(row, outcome)
    if alone and row.neighbours:
        figures["neighbours_rate"] = round(figures["neighbours_per_s"] / alone, 2)
    broken = list(_broken(row, outcome))
    return figures | {"faults": row.faults, "holds": not broken, "broken": broken}


@contextmanager
def _attacking(row: Row, place: Path) -> Iterator[int]:
    process = subprocess.Popen(
        [sys.executable, "-m", "scripts.benchmarks.hostile_process", row.name, place / "log"],
        cwd=_ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    with process:
        assert process.stdin is not None
        assert process.stdout is not None
        yield int(process.stdout.readline())
        process.stdin.close()


def _invoked(row: Row, place: Path) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Run the row's command as often as it says; figures add up, or are the highest."""
    each: list[dict[str, Any]] = []
    reports: list[dict[str, Any]] = []
    for number in range(row.invocations):
        running = _started(row, place, number)
        with MemoryWatch(running.pid) as watch:
            killed_at_s = row.killed_after_s if number == 0 else None
            if not running.wait(killed_at_s or row.seconds + _GRACE_S):
                running.kill()
        inside = place / f"inside-{number}.json"
        figures = json.loads(inside.read_text("utf-8")) if inside.exists() else {}
        figures["seconds"] = monotonic() - running.started_at
        figures["peak_mb"] = _peak_mb(watch)
        figures["exit_code"] = running.process.returncode
        each.append(figures)
        with suppress(ValueError):
            reports.append(json.loads(running.output.read_bytes()))
    summed = {key: sum(f.get(key, 0.0) for f in each) for key in ("cpu_s", "cpu_children_s")}
    worst = max(each, key=lambda f: f.get("stretch_ms", 0.0))
    highest = {key: max(f[key] for f in each) for key in ("seconds", "peak_mb")}
    rounded = {key: round(value, 1) for key, value in (summed | highest).items()}
    codes = [f["exit_code"] for f in each]
    return rounded | {
        "stretch_ms": round(worst.get("stretch_ms", 0.0)),
        "where": worst.get("where", []),
        "exit_code": next((code for code in codes if code not in row.exit_codes), codes[-1]),
    }, reports or [{}]


def _started(row: Row, place: Path, number: int) -> CrawlProcess:
    """Start the command in a process group of its own, watched from inside."""
    output, errors = place / f"output-{number}.json", place / f"errors-{number}.log"
    watch = Path(__file__).with_name("loop_watch.py")
    inside = place / f"inside-{number}.json"
    files = row.files or 0
    limited = partial(resource.setrlimit, resource.RLIMIT_NOFILE, (files, files))
    kept = {key: value for key, value in os.environ.items() if not key.startswith("FRESHET_")}
    # Compiling what is imported is no stretch of an installed program.
    kept.pop("PYTHONDONTWRITEBYTECODE", None)
    with output.open("wb") as stdout, errors.open("wb") as stderr:
        process = subprocess.Popen(
            [sys.executable, "-P", watch, inside, *row.command(place)],
            stdin=subprocess.DEVNULL, stdout=stdout, stderr=stderr, cwd=place,
            env=kept | {"XDG_CONFIG_HOME": str(place)}, start_new_session=True,
            preexec_fn=limited if row.files else None,  # noqa: PLW1509 - no thread runs yet
        )  # fmt: skip
    return CrawlProcess(process, output, errors)


def _peak_mb(watch: MemoryWatch) -> float:
    peaks = watch.peaks() if watch.samples else {}
    # A child that has just been forked shares its parent's pages: those count once.
    return max(peaks.get("proportional_sum", 0.0), peaks.get("process", 0.0))


def _outcome(
    row: Row, place: Path, figures: dict[str, Any], reports: list[dict[str, Any]]
) -> Outcome:
    log, calm = place / "log", place / "calm.log"
    lines = log.read_text("utf-8").splitlines() if log.exists() else []
    seen = [Seen(*json.loads(line)) for line in lines]
    own = set(row.addresses())
    neighbours: dict[str, list[float]] = {}
    for exchange in read_log(calm) if calm.exists() else []:
        neighbours.setdefault(exchange.host, []).append(exchange.start)
    said = "".join(file.read_text("utf-8", "replace") for file in place.glob("errors-*.log"))
    return Outcome(
        figures,
        reports,
        said,
        [each for each in seen if each.host in own],
        [each for each in seen if each.host not in own],
        neighbours,
        place / "store.db",
    )


def _counted(row: Row, outcome: Outcome) -> dict[str, Any]:
    starts = [start for host in outcome.neighbours.values() for start in host]
    return {
        "requests_hostile": len(outcome.hostile),
        "requests_strangers": len(outcome.strangers),
        "strangers": len({each.host for each in outcome.strangers}),
        "rows": _rows(outcome.store),
        "neighbours_requests": len(starts) if row.neighbours else None,
        "neighbours_per_s": round(len(starts) / (row.seconds * row.invocations), 2),
        "neighbours_rate": None,
    }


def _rows(store: Path) -> int:
    """The URLs that the store keeps."""
    if not store.exists():
        return 0
    with reading(store) as connection:
        (number,) = connection.execute("SELECT count(*) FROM page").fetchone()
    return int(number)


def _broken(row: Row, outcome: Outcome) -> Iterator[str]:
    """The bounds that were not kept."""
    figures = outcome.figures
    for figure, most in (MOST | dict(row.most)).items():
        if figures[figure] > most:
            yield f"{figure} {figures[figure]:,} > {most:,g}"
    if figures["exit_code"] not in row.exit_codes:
        yield f"exit {figures['exit_code']}"
    rate = figures["neighbours_rate"]
    if rate is not None and rate < row.least_rate:
        yield f"neighbours_rate {rate} < {row.least_rate}"
    yield from row.check(outcome)


def line(name: str, figures: dict[str, Any]) -> str:
    """One line of the table."""
    cells = [f"{_shown(figures[column]):>10}" for column in _COLUMNS]
    verdict = "holds" if figures["holds"] else f"does not hold: {'; '.join(figures['broken'])}"
    return f"{name:<22}{''.join(cells)}  {verdict}"


def _shown(value: object) -> str:
    return "–" if value is None else f"{value:,}"


def header() -> str:
    """The heads of the table's columns."""
    short = ("peak MB", "CPU s", "children", "stretch ms", "requests", "strangers", "rows",
             "neighb.", "rate", "exit")  # fmt: skip
    return f"{'row':<22}{''.join(f'{name:>10}' for name in short)}  "


def main() -> None:
    """The command ``scripts/bench hostile``."""
    parser = command.arguments(__doc__)
    parser.add_argument("--rows", help="only these, separated by commas", default=",".join(ROWS))
    names = parser.parse_args().rows.split(",")
    unknown = [name for name in names if name not in ROWS]
    if unknown:
        parser.error(f"no such row: {', '.join(unknown)}; there are {', '.join(ROWS)}")
    command.say(header())
    with command.workspace() as directory:
        command.finish(measure(names, directory), parser.parse_args().output)
