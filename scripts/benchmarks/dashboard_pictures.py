"""A daemon that watches an evolving web on loopback, and pictures of its dashboard.

A day of that web takes some seconds, so that a week goes by while one waits.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from time import monotonic, sleep
from urllib.error import URLError
from urllib.request import urlopen

from scripts.benchmarks import command

_ROOT = Path(__file__).parents[2]
_SITES = ("news", "docs", "shop", "wiki")
#: By the name of the picture: path, what is clicked there, width in pixels, and light or dark.
_PICTURES = {
    "dashboard_overview": ("/", "", 1100, "light"),
    "dashboard_page": ("/changes?kind=changed", ".changes a.url", 1100, "light"),
    "dashboard_sites": ("/sites", "", 1100, "light"),
    "dashboard_telephone": ("/changes", "", 400, "dark"),
}
_HEIGHT = 900


@contextmanager
def watched(directory: Path, *, speed: float, web_port: int, port: int) -> Iterator[str]:
    """Yield the address of the dashboard of a daemon that watches a web of so much speed."""
    program = Path(sys.executable)
    web = [str(program), str(_ROOT / "scripts/synthetic_server.py"), "--speed", str(speed),
           "--port", str(web_port), "--advance-days", "5"]  # fmt: skip
    urls = [f"http://{name}.localhost:{web_port}/" for name in _SITES]
    daemon = [str(program.with_name("freshet")), "daemon", "--db", str(directory / "watched.db"),
              "--budget", "7200/hour", "--delay", "0.1", "--allow-private-addresses", "--json",
              "--listen", f"127.0.0.1:{port}", *urls]  # fmt: skip
    with ExitStack() as stack:
        for order in (web, daemon):
            log = stack.enter_context((directory / f"{len(order)}.log").open("wb"))
            stack.enter_context(_running(order, log.fileno()))
            sleep(0.5)
        address = f"http://127.0.0.1:{port}"
        _wait_for(f"{address}/healthz")
        yield address


@contextmanager
def _running(order: list[str], log: int) -> Iterator[None]:
    process = subprocess.Popen(order, stdout=log, stderr=log, cwd=_ROOT)
    try:
        yield
    finally:
        process.terminate()
        process.wait(60)


def _wait_for(url: str) -> None:
    end = monotonic() + 60
    while True:
        try:
            with urlopen(url, timeout=5):
                return
        except (URLError, OSError):
            if monotonic() > end:
                raise
            sleep(0.2)


def picture(address: str, folder: Path) -> list[str]:
    """Take all pictures; return the names of their files."""
    from playwright.sync_api import sync_playwright

    chromium = shutil.which("chromium")
    if chromium is None:
        sys.exit("Chromium is not installed; `apt-get install chromium` brings it")
    flags = ["--no-sandbox"] if os.getuid() == 0 else []
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium, args=flags)
        for name, (path, clicked, width, scheme) in _PICTURES.items():
            page = browser.new_page(
                viewport={"width": width, "height": _HEIGHT},
                color_scheme="dark" if scheme == "dark" else "light",
            )
            page.goto(address + path)
            if clicked:
                page.locator(clicked).first.click()
            page.wait_for_load_state("load")
            page.wait_for_timeout(500)
            page.screenshot(path=folder / f"{name}.png")
            page.close()
        browser.close()
    return [f"{name}.png" for name in _PICTURES]


def main() -> None:
    """Watch for a while, and take the pictures."""
    parser = command.arguments(__doc__)
    parser.add_argument("--seconds", type=float, default=240.0, help="watch for so long")
    parser.add_argument("--day", type=float, default=30.0, metavar="SECONDS",
                        help="a day of the web takes so long")  # fmt: skip
    parser.add_argument(
        "--port", type=int, default=8097, help="of the dashboard; the next is the web's"
    )
    parser.add_argument("--folder", type=Path, default=_ROOT / "docs/figures")
    given = parser.parse_args()
    with (
        command.workspace() as directory,
        watched(
            directory, speed=86_400 / given.day, web_port=given.port + 1, port=given.port
        ) as address,
    ):
        command.say(f"{address} shows it")
        sleep(given.seconds)
        command.finish({"pictures": picture(address, given.folder)}, given.output)
