"""What starting costs: the CPU seconds of commands, and the megabytes that are installed.

Commands run once before they are measured, so that their bytecode is there; each figure is the
lowest of some runs, whole process, user and system time. The store is that of a crawl of a dozen
pages on loopback.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

from scripts.benchmarks import command

_ROOT = Path(__file__).parents[2]
_PAGES = 12
#: What is typed; ``{db}`` is the store, ``{site}`` the site that it was made of.
COMMANDS = {
    "python": (),
    "freshet --help": ("--help",),
    "crawl --help": ("crawl", "--help"),
    "check --help": ("check", "--help"),
    "replay --help": ("replay", "--help"),
    "simulate --help": ("simulate", "--help"),
    "status": ("status", "--db", "{db}"),
    "daemon for a second": (
        "daemon", "{site}", "--db", "{db}", "--budget", "9000/day", "--time-limit", "1",
        "--allow-private-addresses",
    ),
}  # fmt: skip


class _Silent(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """Say nothing."""


def main() -> None:
    """The command ``scripts/bench start``."""
    parser = command.arguments(__doc__)
    parser.add_argument("--runs", type=int, default=5, help="of each command; the lowest counts")
    parser.add_argument(
        "--install", action="store_true",
        help="also install into a new environment, and measure that",
    )  # fmt: skip
    options = parser.parse_args()
    found: dict[str, object] = {}
    with command.workspace() as directory:
        site = _written(directory / "site")
        server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Silent, directory=str(site)))
        Thread(target=server.serve_forever, daemon=True).start()
        given = {"db": directory / "crawl.db", "site": f"http://127.0.0.1:{server.server_port}/"}
        _run([*_FRESHET, "crawl", given["site"], "--db", given["db"], "--allow-private-addresses"])
        for name, words in COMMANDS.items():
            typed = [*_FRESHET, *(word.format(**given) for word in words)]
            line = typed if words else [sys.executable, "-c", "pass"]
            _run(line)
            found[name] = round(min(_run(line) for _ in range(options.runs)), 3)
            command.say(f"{name}: {found[name]} CPU-s")
        server.shutdown()
    result: dict[str, object] = {"cpu_s": found}
    if options.install:
        with tempfile.TemporaryDirectory() as environment:
            result["installed"] = _installed(Path(environment))
    command.finish(result, options.output)


_FRESHET = (str(Path(sys.executable).with_name("freshet")),)


def _written(site: Path) -> Path:
    site.mkdir()
    links = "".join(f'<a href="{k}.html">page {k}</a> ' for k in range(_PAGES))
    for k in range(_PAGES):
        text = f"<title>{k}</title><p>{' '.join(f'word{k * j}' for j in range(99))}</p>{links}"
        (site / f"{k}.html").write_text(text, "utf-8")
    (site / "index.html").write_text(links, "utf-8")
    return site


def _run(line: Sequence[object]) -> float:
    """Run a command that must succeed; return its CPU seconds."""
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    words = [str(word) for word in line]
    process = subprocess.Popen(
        words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=environment
    )
    told = process.stderr.read() if process.stderr is not None else b""
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit(f"{' '.join(words)} failed: {told.decode()}")
    return usage.ru_utime + usage.ru_stime


def _installed(environment: Path) -> dict[str, object]:
    """What an installation from this directory takes, in megabytes, the largest packages first."""
    subprocess.run([sys.executable, "-m", "venv", environment], check=True)
    python = str(environment / "bin" / "python")
    line = [python, "-m", "pip", "install", "--quiet", "--no-compile", str(_ROOT)]
    subprocess.run(line, check=True)
    packages = next((environment / "lib").glob("python*/site-packages"))
    sizes = {
        place.name: sum(file.lstat().st_size for file in place.rglob("*") if file.is_file()) / 1e6
        for place in packages.iterdir()
        if place.is_dir() and not place.name.startswith("pip")
    }
    largest = sorted(sizes, key=lambda name: -sizes[name])[:12]
    return {
        "megabytes": round(sum(sizes.values()), 1),
        "largest": {name: round(sizes[name], 1) for name in largest},
    }
