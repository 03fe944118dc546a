"""Hostile input for every way in: sites over HTTP and TLS, names, archives, settings and lists.

Each case is made of its seed alone, goes through the outermost function that a user or a site
reaches, and must end as an outcome: no exception, no failure of ours, a sound store, no error in
the log, and for a command the exit code 0, 1 or 2 with its reason in one line. Exits with 1 if
anything was wrong; the inputs of such a case are kept.
"""

from __future__ import annotations

import argparse
import gc
import json
import logging
import resource
import signal
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from itertools import count
from pathlib import Path
from random import Random
from time import monotonic
from types import FrameType
from typing import Any

from scripts.benchmarks import command
from scripts.benchmarks.fuzz_commands import Case, archives, lists, settings
from scripts.benchmarks.fuzz_core import core, guided
from scripts.benchmarks.fuzz_sites import names, sites, tls

TARGETS: dict[str, Callable[[Case], None]] = {
    "answers": sites, "pages": sites, "robots": sites, "sitemaps": sites, "feeds": sites,
    "archives": archives, "settings": settings, "lists": lists, "tls": tls, "names": names,
    "core": core,
}  # fmt: skip
#: CPU and wall seconds of a case, and memory that it may add.
_CPU_S, _WALL_S, _GROWTH_MB = 40.0, 180, 400.0


@dataclass(slots=True)
class Outcome:
    """What the cases of a target took, and what they found."""

    cases: int = 0
    inputs: int = 0
    input_bytes: int = 0
    seconds: float = 0.0
    cpu_s: float = 0.0
    longest_case_cpu_s: float = 0.0
    longest_case_seed: int = 0
    peak_growth_mb: float = 0.0
    findings: list[dict[str, object]] = field(default_factory=list)


class _Listener(logging.Handler):
    """What the log said that no site may cause."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.heard: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keep errors, and whatever has a traceback."""
        if record.levelno >= logging.ERROR or record.exc_info:
            info = record.exc_info
            trace = "".join(traceback.format_exception(*info)) if isinstance(info, tuple) else ""
            self.heard.append(f"log: {record.getMessage()} {trace}")


def main() -> None:
    """The command ``scripts/fuzz``."""
    parser = command.arguments(__doc__)
    parser.add_argument("--seconds", type=float, default=60.0, help="for all targets together")
    parser.add_argument("--seed", type=int, default=1, help="of the run")
    parser.add_argument("--target", nargs="+", choices=TARGETS, default=list(TARGETS))
    parser.add_argument("--case", type=int, help="only the case of this seed, of each target")
    parser.add_argument("--keep", type=Path, default=Path("fuzz-findings"), help="for inputs")
    parser.add_argument("--guided", action="store_true", help="only the core, by coverage")
    chosen = parser.parse_args()
    if chosen.guided:
        sys.exit(guided(chosen.seconds, chosen.seed, chosen.keep))
    found = run(chosen)
    wrong = sum(len(each.findings) for each in found.values())
    cases = sum(each.cases for each in found.values())
    totals: dict[str, object] = {"seed": chosen.seed, "cases": cases, "findings": wrong}
    command.finish(totals | {name: asdict(o) for name, o in found.items()}, chosen.output)
    sys.exit(bool(wrong))


def run(chosen: argparse.Namespace) -> dict[str, Outcome]:
    """Run cases until the time is over; the target that had the least time comes next."""
    found = {name: Outcome() for name in chosen.target}
    seeds = {name: _seeds(chosen.seed, name) for name in chosen.target}
    ends_at = monotonic() + chosen.seconds
    with _listening() as listener:
        if chosen.case is not None:
            for name, outcome in found.items():
                one(name, chosen.case, outcome, listener, chosen.keep)
        while chosen.case is None and monotonic() < ends_at:
            name = min(found, key=lambda each: found[each].seconds)
            one(name, next(seeds[name]), found[name], listener, chosen.keep)
    return found


def one(name: str, seed: int, outcome: Outcome, listener: _Listener, keep: Path) -> None:
    """Run a case and measure it."""
    with tempfile.TemporaryDirectory(prefix="freshet-fuzz-") as directory:
        case = Case(name, seed, Path(directory))
        began_at, cpu_s, memory_mb = monotonic(), _cpu_s(), _from_here_mb()
        listener.heard.clear()
        try:
            with _ending_in_time():
                TARGETS[name](case)
        except Exception:  # noqa: BLE001 - any is a finding
            case.wrong.append(traceback.format_exc())
        growth_mb, cpu_s = _peak_mb() - memory_mb, _cpu_s() - cpu_s
        gc.collect()
        case.wrong += listener.heard
    if cpu_s > _CPU_S:
        case.wrong.append(f"{cpu_s:.0f} s of CPU time")
    if growth_mb > _GROWTH_MB:
        case.wrong.append(f"{growth_mb:.0f} MB more memory")
    outcome.cases += 1
    outcome.inputs += len(case.inputs)
    outcome.input_bytes += sum(len(data) for _, data in case.inputs)
    outcome.seconds = round(outcome.seconds + monotonic() - began_at, 3)
    outcome.cpu_s = round(outcome.cpu_s + cpu_s, 3)
    if cpu_s > outcome.longest_case_cpu_s:
        outcome.longest_case_cpu_s, outcome.longest_case_seed = round(cpu_s, 3), seed
    outcome.peak_growth_mb = round(max(outcome.peak_growth_mb, growth_mb), 1)
    for wrong in dict.fromkeys(case.wrong):
        command.say(f"{name} {seed}: {wrong}")
        saved = str(_saved(case, keep))
        outcome.findings.append({"target": name, "case": seed, "wrong": wrong, "input": saved})


def _seeds(seed: int, target: str) -> Iterator[int]:
    rng = Random(f"{seed} {target}")
    return (rng.getrandbits(48) for _ in count())


def _saved(case: Case, keep: Path) -> Path:
    """Keep the inputs of a case: a line of JSON each, its bytes as Latin-1."""
    keep.mkdir(parents=True, exist_ok=True)
    path = keep / f"{case.target}-{case.seed}.jsonl"
    lines = (json.dumps([name, data.decode("latin-1")]) for name, data in case.inputs)
    path.write_text("\n".join([*lines, *(json.dumps({"wrong": w}) for w in case.wrong)]) + "\n")
    return path


@contextmanager
def _listening() -> Iterator[_Listener]:
    """Hear the log, and what is raised where nobody can catch it."""
    listener, root, hook = _Listener(), logging.getLogger(), sys.unraisablehook
    root.addHandler(listener)

    def unraisable(what: Any) -> None:
        trace = traceback.format_exception(what.exc_type, what.exc_value, what.exc_traceback)
        listener.heard.append(f"unraisable: {what.object!r} {''.join(trace)}")

    sys.unraisablehook = unraisable
    try:
        yield listener
    finally:
        sys.unraisablehook = hook
        root.removeHandler(listener)


@contextmanager
def _ending_in_time() -> Iterator[None]:
    def late(_signal: int, _frame: FrameType | None) -> None:
        raise TimeoutError(f"the case did not end within {_WALL_S} s")

    signal.signal(signal.SIGALRM, late)
    signal.alarm(_WALL_S)
    try:
        yield
    finally:
        signal.alarm(0)


def _cpu_s() -> float:
    ours, children = (
        resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    )
    return ours.ru_utime + ours.ru_stime + children.ru_utime + children.ru_stime


def _from_here_mb() -> float:
    """Memory now, from which on the peak counts."""
    Path("/proc/self/clear_refs").write_text("5", "ascii")
    return _status_mb("VmRSS")


def _peak_mb() -> float:
    return _status_mb("VmHWM")


def _status_mb(name: str) -> float:
    text = Path("/proc/self/status").read_text("ascii", "replace")
    return int(text.partition(f"{name}:")[2].split()[0]) / 1_024


if __name__ == "__main__":
    main()
