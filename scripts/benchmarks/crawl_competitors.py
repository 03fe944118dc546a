"""The crawlers of the crawl benchmark, each a command, and how a run of one is measured."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import venv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from time import monotonic

from scripts.benchmarks import command as command_benchmarks
from scripts.benchmarks.crawl_figures import Run
from scripts.benchmarks.crawl_nginx import Served
from scripts.benchmarks.memory_watch import MemoryWatch

FRESHET = "freshet"

_ROOT = Path(__file__).parents[2]
_PROJECT = _ROOT / "scripts" / "competitors"
_REQUIREMENTS = _PROJECT / "requirements.txt"
_LIMIT_S = 1_800.0
_PROGRAM = "from freshet.crawler.cli import run; run()"
_IMPORTS = "import freshet.crawler.cli.progress, freshet.crawler.run.crawl"
#: Of Freshet's report, what tells whether a crawl went as it should.
_TOLD = ("pages", "new", "changed", "unchanged", "gone", "refused", "skipped", "errors", "ending")


@dataclass(frozen=True, slots=True)
class Concurrency:
    """Exchanges at once, the same for every crawler."""

    requests: int = 100
    requests_per_host: int = 16

    def settings(self) -> str:
        """As a file of Freshet's settings, without any politeness."""
        return (
            f"[crawl]\nconcurrent_requests = {self.requests}\n"
            "[politeness]\ndelay_s = 0\nslow_factor = 0\n"
            f"connections_per_host = {self.requests_per_host}\n"
        )


@dataclass(frozen=True, slots=True)
class Crawler:
    """A command that crawls the seeds and ends. ``reports`` says that it prints JSON."""

    name: str
    command: tuple[str, ...]
    directory: Path
    environment: Mapping[str, str]
    reports: bool = False


def freshet(directory: Path, seeds: Path, concurrency: Concurrency) -> Crawler:
    """Freshet of this tree, with a store in the directory; a second run is a recrawl."""
    environment = _environment()
    # All modules have their bytecode, as Scrapy's.
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    subprocess.run([sys.executable, "-c", _IMPORTS], check=True, cwd=_ROOT, env=environment)
    settings = directory / "freshet.toml"
    settings.write_text(concurrency.settings(), "utf-8")
    options = ["--json", "--allow-private-addresses", "--delay", "0"]
    files = ["--config", settings, "--db", directory / "store.db", "--sites", seeds]
    return Crawler(
        FRESHET,
        (sys.executable, "-c", _PROGRAM, "crawl", *options, *map(str, files)),
        directory,
        environment | {"PYTHONPATH": str(_ROOT), "XDG_CONFIG_HOME": str(directory)},
        reports=True,
    )


def prepared(directory: Path, served: Served) -> Path:
    """Make a crawler's directory; return the file with its seeds."""
    directory.mkdir()
    seeds = directory / "seeds.txt"
    seeds.write_text("\n".join(served.seeds()) + "\n", "utf-8")
    return seeds


def scrapy(
    python: Path, spider: str, seeds: Path, concurrency: Concurrency, **settings: str
) -> Crawler:
    """A spider of the project in scripts/competitors."""
    settings |= {
        "CONCURRENT_REQUESTS": str(concurrency.requests),
        "CONCURRENT_REQUESTS_PER_DOMAIN": str(concurrency.requests_per_host),
    }
    chosen = [part for key, value in settings.items() for part in ("-s", f"{key}={value}")]
    return Crawler(
        f"scrapy_{spider}",
        (str(python), "-m", "scrapy", "crawl", spider, "-a", f"seeds={seeds}", *chosen),
        _PROJECT,
        _environment() | {"PYTHONDONTWRITEBYTECODE": "1"},
    )


def _environment() -> dict[str, str]:
    """This environment without anybody's own settings of the crawlers."""
    foreign = ("FRESHET_", "SCRAPY_")
    return {key: value for key, value in os.environ.items() if not key.startswith(foreign)}


def run(crawler: Crawler, served: Served, log: Path) -> Run:
    """Crawl, and measure the process with all its children.

    Raises:
        RuntimeError: the crawler failed, with what it said.
    """
    position = served.position()
    cpu_before, started_at = _children_cpu_s(), monotonic()
    with log.open("wb") as errors:
        process = subprocess.Popen(
            crawler.command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors,
            cwd=crawler.directory, env=crawler.environment,
        )  # fmt: skip
        with MemoryWatch(process.pid) as watch:
            try:
                output, _ = process.communicate(timeout=_LIMIT_S)
            finally:
                process.kill()
                process.wait()
    wall_s, cpu_s = monotonic() - started_at, _children_cpu_s() - cpu_before
    if process.returncode != 0:
        said = log.read_text("utf-8", "replace").strip()
        raise RuntimeError(f"{crawler.name} ended with {process.returncode}: {said[-2000:]}")
    requests = served.requests_since(position)
    return Run(
        crawler.name,
        requests.pages,
        requests.count,
        requests.not_modified,
        requests.other_answers,
        cpu_s,
        wall_s,
        watch.peaks()["process_and_children"],
        _told(output) if crawler.reports else {},
    )


def _children_cpu_s() -> float:
    """User and system time of the children that have ended, and of theirs."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def _told(output: bytes) -> dict[str, object]:
    report = json.loads(output)
    return {key: report[key] for key in _TOLD}


def scrapy_python(chosen: Path | None) -> Path:
    """A Python that has Scrapy: the one chosen, or that of an environment made for it once."""
    if chosen is not None:
        return chosen
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    version = blake2b(_REQUIREMENTS.read_bytes(), digest_size=4).hexdigest()
    environment = cache / "freshet-bench" / f"scrapy-{version}"
    python, stamp = environment / "bin" / "python", environment / ".complete"
    if not stamp.exists():
        command_benchmarks.say(f"installing Scrapy into {environment}")
        venv.create(environment, clear=True, with_pip=True)
        install = ["-m", "pip", "install", "--quiet", "--quiet", "--disable-pip-version-check"]
        subprocess.run([python, *install, "--requirement", _REQUIREMENTS], check=True)
        stamp.touch()
    return python


def versions(python: Path) -> dict[str, str]:
    """What the competitors run on."""
    names = ("Scrapy", "Twisted", "lxml", "selectolax")
    program = f"from importlib.metadata import version; print(*map(version, {names!r}))"
    said = subprocess.run(
        [python, "-c", program], capture_output=True, text=True, check=True, env=_environment()
    ).stdout
    return dict(zip(map(str.lower, names), said.split(), strict=True))


def crawlers(
    directory: Path, served: Served, python: Path, concurrency: Concurrency
) -> Sequence[Crawler]:
    """All of them; Freshet's store is in the directory, which is new in every round."""
    seeds = prepared(directory, served)
    return (
        freshet(directory, seeds, concurrency),
        scrapy(python, "optimised", seeds, concurrency, ASYNCIO_EVENT_LOOP="uvloop.Loop"),
        scrapy(python, "ordinary", seeds, concurrency),
    )
