"""The calls of functions that a page of a first crawl costs, all threads together (ADR 0028)."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from random import Random
from threading import Thread

#: Calls of a page, of functions of Python and of C as Python's profiler sees them.
MOST = 3_000

#: Pages of the two sites: what they differ by is what pages cost, without start and end.
_FEW, _MANY = 40, 120
_LINKS = 12
_WORDS = [f"{a}{e}{b}{o}" for a in "bdgklmnprst" for e in "aeiou" for b in "lmnrst" for o in "aeo"]

_CRAWL = """
import sys, threading
from freshet.crawler.cli import run

counts = {}

def counted():
    calls = 0
    def note(_frame, event, _of):
        nonlocal calls
        if event == "call" or event == "c_call":
            calls += 1
            counts[threading.get_ident()] = calls
    sys.setprofile(note)

threading.setprofile(lambda *_: counted())
counted()
try:
    run()
except SystemExit as ended:
    if ended.code:
        raise
sys.setprofile(None)
with open(sys.argv[-1] + ".calls", "w") as file:
    print(sum(counts.values()), file=file)
"""


def _page(number: int, count: int) -> bytes:
    """Return a page such as manuals have: headings, paragraphs, a list, a table, code and links."""
    chance = Random(number)

    def text(least: int, most: int) -> str:
        return " ".join(chance.choices(_WORDS, k=chance.randint(least, most))).capitalize() + "."

    near = sorted({*range(1, _LINKS), *(min(number + n, count - 1) for n in range(_LINKS))})
    links = [f'<a href="{n}.html">Page {n % count}</a>' for n in near if n < count]
    parts = [f"<nav><ul>{''.join(f'<li>{link}</li>' for link in links)}</ul></nav>"]
    for section in range(1 + number % 6):
        parts += [
            f'<h2 id="s{section}">{text(2, 5)}</h2>',
            *(f"<p>{text(20, 60)}</p>" for _ in "ab"),
        ]
        parts.append(f"<ul>{''.join(f'<li>{text(3, 12)}</li>' for _ in range(5))}</ul>")
        cells = (f"<tr><td>{text(1, 3)}</td><td>{text(3, 9)}</td></tr>" for _ in range(4))
        parts.append(f"<table>{''.join(cells)}</table><pre>{text(4, 20)}\n{text(4, 20)}</pre>")
    head = f"<title>{text(2, 4)}</title><meta charset=utf-8><link rel=stylesheet href=s.css>"
    body = f"<main><h1>{text(2, 4)}</h1>{''.join(parts)}</main>"
    return f"<!DOCTYPE html><html lang=en><head>{head}</head><body>{body}</body></html>".encode()


class _Site(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    count = 0

    def do_GET(self) -> None:
        name = self.path.strip("/").removesuffix(".html") or "0"
        is_there = name.isdigit() and int(name) < self.count
        body = _page(int(name), self.count) if is_there else b"not here"
        self.send_response(200 if is_there else 404)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.send_header("ETag", f'"{name}"')
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextmanager
def _serving(count: int) -> Iterator[str]:
    handler = type("Site", (_Site,), {"count": count})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        server.daemon_threads = True
        Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}/"
        finally:
            server.shutdown()


def _calls(count: int, folder: Path) -> int:
    folder.mkdir()
    settings, store = folder / "freshet.toml", folder / "store.db"
    settings.write_text("[politeness]\ndelay_s = 0\nslow_factor = 0\n", "utf-8")
    with _serving(count) as url:
        (folder / "sites.txt").write_text(f"{url}0.html\n", "utf-8")
        options = ["--json", "--allow-private-addresses", "--delay", "0", "--config", settings]
        options += ["--sites", folder / "sites.txt", "--db", store]
        done = subprocess.run(
            [sys.executable, "-c", _CRAWL, "crawl", *map(str, options)],
            env=os.environ | {"XDG_CONFIG_HOME": str(folder)},
            capture_output=True,
            text=True,
            check=True,
        )
    assert json.loads(done.stdout)["new"] == count, done.stdout
    return int(Path(f"{store}.calls").read_text("utf-8"))


def test_a_page_of_a_first_crawl_takes_no_more_calls_than_the_limit(tmp_path: Path) -> None:
    few, many = _calls(_FEW, tmp_path / "few"), _calls(_MANY, tmp_path / "many")
    assert (many - few) / (_MANY - _FEW) <= MOST
