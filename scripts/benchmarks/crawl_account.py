"""Where the CPU time of Freshet's own crawls goes: by module, thread and process.

The crawl is the benchmark's, whole and against nginx. Each two milliseconds of the process's CPU
time a signal looks which module is at work; what the main thread's own clock counted since the
last one is that module's: the innermost one of Freshet, so that libraries count for who calls them.
"""

from __future__ import annotations

import json
import resource
import signal
import sys
import threading
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import FrameType
from typing import Any

from scripts.benchmarks import command
from scripts.benchmarks.crawl_competitors import Concurrency, freshet, prepared, run
from scripts.benchmarks.crawl_figures import Run, table
from scripts.benchmarks.crawl_nginx import Served
from scripts.benchmarks.crawl_tree import Tree, edit

_INTERVAL_S = 0.002
_NO_MODULE = "event loop"
_IMPORTS = "imports"
_PROGRAM = "from scripts.benchmarks.crawl_account import accounted; accounted({path!r})"


@dataclass(slots=True)
class _Account:
    """CPU seconds of this process: of the main thread by module, of the others by name."""

    root: str
    spent: dict[str, float] = field(default_factory=dict)
    threads: dict[str, float] = field(default_factory=dict)
    last: float = 0.0
    signals: int = 0
    modules: dict[str, str | None] = field(default_factory=dict)

    def note(self, _number: int, frame: FrameType | None) -> None:
        """Give the main thread's time since the last signal to the module that is at work."""
        now = time.thread_time()
        module = self._module(frame)
        self.spent[module] = self.spent.get(module, 0.0) + now - self.last
        self.last = now
        self.signals += 1
        if self.signals % 50 == 0:
            self._look_at_threads()

    def _module(self, frame: FrameType | None) -> str:
        found = None
        while frame is not None:
            file = frame.f_code.co_filename
            if "importlib" in file:
                return _IMPORTS
            found = found or self._named(file)
            frame = frame.f_back
        return found or _NO_MODULE

    def _named(self, file: str) -> str | None:
        if file not in self.modules:
            inside = file.removeprefix(f"{self.root}/").removeprefix("freshet/")
            is_ours = file.startswith(self.root) and "site-packages" not in file
            is_program = inside == "crawler/run/terminal.py" or inside.startswith("crawler/cli/")
            is_ours = is_ours and not inside.startswith("scripts/") and not is_program
            self.modules[file] = inside.removesuffix(".py") if is_ours else None
        return self.modules[file]

    def _look_at_threads(self) -> None:
        for thread in threading.enumerate():
            if thread is not threading.main_thread() and thread.ident is not None:
                clock = time.pthread_getcpuclockid(thread.ident)
                self.threads[thread.name] = time.clock_gettime(clock)


def accounted(path: str) -> None:
    """Run the command with this process's arguments, and write the account of it to a file."""
    from freshet.crawler.cli import run as freshet_command

    account = _Account(str(Path(__file__).parents[2]))
    signal.signal(signal.SIGPROF, account.note)
    signal.setitimer(signal.ITIMER_PROF, _INTERVAL_S, _INTERVAL_S)
    try:
        freshet_command()
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        children = resource.getrusage(resource.RUSAGE_CHILDREN)
        told = {
            "main thread": account.spent,
            "main": time.thread_time(),
            "process": time.process_time(),
            "threads": account.threads,
            "parser's process": children.ru_utime + children.ru_stime,
        }
        Path(path).write_text(json.dumps(told), "utf-8")


def measure(
    tree: Tree, served: Served, concurrency: Concurrency, share: float, directory: Path
) -> dict[str, object]:
    """Crawl, edit that share of the pages, and crawl again; tables go to standard error."""
    place = directory / "account"
    crawler = freshet(place, prepared(place, served), concurrency)
    file = place / "account.json"
    crawler = replace(
        crawler,
        command=(sys.executable, "-c", _PROGRAM.format(path=str(file)), *crawler.command[3:]),
    )
    told: dict[str, object] = {}
    for name in ("first_crawl", "recrawl"):
        measured = run(crawler, served, directory / "account.log")
        figures = _figures(json.loads(file.read_bytes()), measured)
        command.say(f"{name}, {len(measured.pages)} pages, {measured.cpu_s:.1f} CPU-s")
        command.say(table(figures))
        told[name] = {
            "pages": len(measured.pages),
            "cpu_s": round(measured.cpu_s, 2),
            "microseconds_a_page": {each: round(us, 1) for each, us in figures.items()},
        }
        edit(tree, share, 1)
    return told


def _figures(told: dict[str, Any], measured: Run) -> dict[str, float]:
    """Return microseconds a page by thread, folder and module, the dearest first."""
    main, process, parser = told["main"], told["process"], told["parser's process"]
    spent = dict(sorted(told["main thread"].items(), key=lambda each: -each[1]))
    folders: dict[str, float] = {}
    for module, seconds in spent.items():
        folders[_folder(module)] = folders.get(_folder(module), 0.0) + seconds
    found = {"main thread": main}
    for folder, seconds in sorted(folders.items(), key=lambda each: -each[1]):
        found[f"main thread/{folder}"] = seconds
        for module, own in spent.items():
            if module != folder and _folder(module) == folder:
                found[f"main thread/{folder}/{module.rpartition('/')[2]}"] = own
    found |= told["threads"] | {"all threads": process, "parser's process": parser}
    scale = 1e6 / len(measured.pages)
    return {name: scale * seconds for name, seconds in found.items()}


def _folder(module: str) -> str:
    return module.rpartition("/")[0] or module
