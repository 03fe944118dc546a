"""The synthetic web in a process of its own, in fast time, and its log."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

from freshet.crawler.urls import canonical
from scripts.benchmarks.crawling import CrawlProcess, freshet

_ROOT = Path(__file__).parents[2]
#: Of a daemon that asks the web as often as its budget lets it.
REQUESTS_PER_S = 30.0
_OPTIONS = ("--budget", f"{3_600 * REQUESTS_PER_S:g}/hour", "--delay", "0")
UNSLOWED = "[politeness]\nslow_factor = 0.0\ncrawl_delay_cap_s = 0.0\nconnections_per_host = 4\n"


@dataclass(frozen=True, slots=True)
class Load:
    """A web of so many hosts and pages, of which ``days_per_s`` pass in a second."""

    hosts: int = 4
    pages_per_host: int = 60
    days_per_s: float = 0.25
    span_days: float = 400.0
    latency_s: float = 0.005
    seed: int = 1


@dataclass(frozen=True, slots=True)
class Asked:
    """An exchange as the server saw it, in seconds of the machine's monotonic clock."""

    url: str
    started_at: float
    ended_at: float


@dataclass(frozen=True, slots=True)
class LivingWeb:
    """A web that is being served; ``roots`` by the names of its sites."""

    roots: dict[str, str]
    log: Path

    def seeds(self) -> Sequence[str]:
        """The front page of every site."""
        return list(self.roots.values())

    def daemon(
        self, store: Path, *options: str, program: Sequence[str] = ()
    ) -> AbstractContextManager[CrawlProcess]:
        """Start a daemon that keeps the web fresh; ``freshet.toml`` stands beside the store."""
        options += (*_OPTIONS, "--config", str(store.with_name("freshet.toml")))
        return freshet("daemon", store, self.seeds(), *options, program=program)

    def asked(self) -> list[Asked]:
        """All exchanges so far, in the order of their ends, by canonical URL."""
        text = self.log.read_text("utf-8")
        lines = map(json.loads, text[: text.rfind("\n") + 1].splitlines())
        return [
            Asked(canonical(root[:-1] + e["target"]), e["started_at"], e["ended_at"])
            for e in lines
            if (root := self.roots.get(e["host"])) is not None
        ]


def new_store(directory: Path, settings: str) -> Path:
    """Make a folder for one more store, with settings; return where the store is to be."""
    folder = directory / f"store-{len(list(directory.glob('store-*')))}"
    folder.mkdir()
    (folder / "freshet.toml").write_text(settings, "utf-8")
    return folder / "store.db"


@contextmanager
def living(load: Load, log: Path) -> Iterator[LivingWeb]:
    """Serve until the block ends."""
    options = {
        "preset": "mixed", "hosts": load.hosts, "pages": load.pages_per_host, "seed": load.seed,
        "span-days": load.span_days, "speed": load.days_per_s * 86_400, "latency": load.latency_s,
        "log": log,
    }  # fmt: skip
    arguments = [f"--{name}={value}" for name, value in options.items()]
    log.touch()
    process = subprocess.Popen(
        [sys.executable, "-m", "scripts.synthetic_server", *arguments],
        cwd=_ROOT, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    with process:
        assert process.stdout is not None
        try:
            yield LivingWeb(json.loads(process.stdout.readline())["sites"], log)
        finally:
            process.terminate()
