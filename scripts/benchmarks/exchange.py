"""Which odd responses Freshet, curl, wget and Scrapy read, and what a request costs.

All of it over raw sockets on loopback, in one run:

- responses that are wrong in one way (``odd_responses``), by who reads the page in them,
- hosts all of whose responses have the same odd header: pages that a crawl reads,
- with ``--curl-tests``, the responses in the test data of curl's repository,
- CPU time of a GET of 31 kB with gzip, in units of a plain session of aiohttp; and what
  it costs to sign it (Web Bot Auth), by a signature of ten seconds and by one for each request.
"""

from __future__ import annotations

import asyncio
import gzip
import json
import multiprocessing
import random
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import process_time, time
from types import SimpleNamespace
from typing import cast

import aiohttp

from freshet.config.loading import load
from freshet.crawler.extensions.identity.agent import IdentityFetcher
from freshet.crawler.extensions.identity.keys import new_key, write_new
from freshet.crawler.fetch.addresses import AddressGuard, CachingResolver
from freshet.crawler.fetch.client import Fetcher, FetchLimits, NetworkFetcher, Request
from freshet.crawler.run.network import LoadRules
from scripts.benchmarks import command, curl_responses, odd_hosts
from scripts.benchmarks.crawl_competitors import scrapy_python
from scripts.benchmarks.odd_responses import CODINGS, HEADS, LENGTHS, TEXT, UNSURE, Odd

_ROOT = Path(__file__).parents[2]
_SCRAPY = _ROOT / "scripts" / "competitors" / "read_urls.py"
#: For each response; those that never end run into it.
_LIMIT_S = 3
_AT_ONCE = 4
_LIMITS = FetchLimits(headers_timeout_s=_LIMIT_S, body_timeout_s=_LIMIT_S, rate_window_s=_LIMIT_S)
CLIENTS = ("freshet", "curl", "wget", "scrapy")
_GROUPS: Mapping[str, Sequence[Odd]] = {
    "heads": HEADS, "unsure": UNSURE, "codings": CODINGS, "lengths": LENGTHS,
}  # fmt: skip


def main() -> None:
    """The command ``scripts/bench exchange``."""
    parser = command.arguments(__doc__)
    parser.add_argument("--rounds", type=int, default=15, help="of the CPU figures")
    parser.add_argument("--requests", type=int, default=200, help="in a round")
    parser.add_argument("--curl-tests", type=Path, metavar="DIR", help="tests/data of curl")
    parser.add_argument("--scrapy-python", type=Path, help="a Python that has Scrapy")
    options = parser.parse_args()
    result: dict[str, object] = {"cpu": _cpu(options.rounds, options.requests)}
    if options.curl_tests is not None:
        result["curl_tests"] = asyncio.run(curl_responses.read(options.curl_tests, _fetcher))
    result |= asyncio.run(_odd(scrapy_python(options.scrapy_python)))
    result["hosts"] = asyncio.run(odd_hosts.crawled())
    command.finish(result, options.output)


@asynccontextmanager
async def _fetcher(limits: FetchLimits = _LIMITS) -> AsyncIterator[NetworkFetcher]:
    resolver = CachingResolver()
    guard = AddressGuard(allow_private=True, loopback_only=True)
    fetcher = NetworkFetcher("Freshet", limits, guard, resolver)
    try:
        yield fetcher
    finally:
        await fetcher.close()
        await resolver.close()


# -- odd responses ---------------------------------------------------------------


async def _odd(python: Path) -> dict[str, object]:
    """Who reads the page in each response."""
    cases = [odd for group in _GROUPS.values() for odd in group]
    async with odd_hosts.serving(lambda path: cases[int(path[1:])]) as origin:
        urls = [f"{origin}/{n}" for n in range(len(cases))]
        read = {
            "freshet": await _by_freshet(urls),
            "curl": await _each(urls, _by_curl),
            "wget": await _each(urls, _by_wget),
            "scrapy": await _by_scrapy(python, urls),
        }
    found: dict[str, object] = {}
    for name, group in _GROUPS.items():
        numbers = [n for n, odd in enumerate(cases) if odd in group]
        rows = {cases[n].name: [who for who in CLIENTS if read[who][n]] for n in numbers}
        others = [set(rows[odd.name]) - {"freshet"} for odd in group]
        due = [odd.name for odd, by in zip(group, others, strict=True) if len(by) > 1]
        found[name] = {
            "of": len(group),
            **{who: sum(read[who][n] for n in numbers) for who in CLIENTS},
            "read by two of the others": len(due),
            "of these by freshet": sum("freshet" in rows[name] for name in due),
            "by freshet alone": [n for n, by in rows.items() if by == ["freshet"]],
            "not as two of the others": [n for n in due if "freshet" not in rows[n]],
            "rows": rows,
        }
    return found


async def _by_freshet(urls: Sequence[str]) -> list[bool]:
    async with _fetcher() as fetcher:

        async def reads(url: str) -> bool:
            result = await fetcher.fetch(Request(url))
            return result.outcome == "fetched" and result.body == TEXT

        return await _each(urls, reads)


async def _by_curl(url: str) -> bool:
    return await _prints("curl", "--silent", "--compressed", "--max-time", str(_LIMIT_S), url)


async def _by_wget(url: str) -> bool:
    return await _prints(
        "wget", "--quiet", "--tries=1", f"--timeout={_LIMIT_S}", "--compression=auto",
        "--output-document=-", url,
    )  # fmt: skip


async def _prints(*line: str) -> bool:
    process = await asyncio.create_subprocess_exec(
        *line, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL
    )
    printed, _ = await process.communicate()
    return process.returncode == 0 and printed == TEXT


async def _by_scrapy(python: Path, urls: Sequence[str]) -> list[bool]:
    process = await asyncio.create_subprocess_exec(
        str(python), str(_SCRAPY), str(_LIMIT_S),
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )  # fmt: skip
    printed, _ = await process.communicate("\n".join(urls).encode())
    if process.returncode:
        raise SystemExit(f"Scrapy ended with {process.returncode}")
    bodies = json.loads(printed)
    return [bodies.get(url) == TEXT.decode() for url in urls]


async def _each(urls: Sequence[str], reads: Callable[[str], Awaitable[bool]]) -> list[bool]:
    turn = asyncio.Semaphore(_AT_ONCE)

    async def one(url: str) -> bool:
        async with turn:
            return await reads(url)

    return await asyncio.gather(*map(one, urls))


# -- CPU ---------------------------------------------------------------------------


def _page() -> bytes:
    """A page of 31 kB that packs as pages of manuals do: to a sixth."""
    words = [f"{a}{b}{c}" for a in ("con", "re", "in") for b in ("fi", "so", "ma") for c in "nert"]
    chosen = random.Random(56)
    text = "<!doctype html><html><head><title>A page of a manual</title></head><body>\n"
    while len(text) < 31_000:
        name = "-".join(chosen.choices(words, k=2))
        said = " ".join(chosen.choices(words, k=18))
        text += (
            f'<tr class="row"><td class="name"><a href="manual-{name}.html#{name}" '
            f'title="{name}"><code class="literal">{name}</code></a></td>'
            f'<td><p class="simpara">{said}.</p></td></tr>\n'
        )
    return text[:31_000].encode()


def _serve(port: multiprocessing.connection.Connection) -> None:
    packed = gzip.compress(_page())
    head = (
        b"HTTP/1.1 200 OK\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\nServer: bench\r\n"
        b"Content-Type: text/html; charset=utf-8\r\nContent-Encoding: gzip\r\n"
        b"ETag: \"abc-1\"\r\nLast-Modified: Sun, 06 Nov 1994 08:49:37 GMT\r\n"
        b"Vary: Accept-Encoding\r\nCache-Control: max-age=60\r\nContent-Length: %d\r\n\r\n"
    )  # fmt: skip
    answer = head % len(packed) + packed

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                await reader.readuntil(b"\r\n\r\n")
                writer.write(answer)
        writer.close()

    async def serve() -> None:
        server = await asyncio.start_server(connected, "127.0.0.1", 0)
        port.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    asyncio.run(serve())


def _cpu(rounds: int, requests: int) -> dict[str, object]:
    """Microseconds of CPU time of a GET, medians of rounds that take turns."""
    ours, theirs = multiprocessing.Pipe()
    server = multiprocessing.get_context("spawn").Process(
        target=_serve, args=(theirs,), daemon=True
    )
    server.start()
    try:
        port = ours.recv()
        times = asyncio.run(_timed(f"http://127.0.0.1:{port}/page", rounds, requests))
    finally:
        server.terminate()
        server.join()
    us = {name: round(median(found) * 1e6, 1) for name, found in times.items()}
    rows = list(zip(times["aiohttp"], times["freshet"], strict=True))
    units = {"freshet": median(ours / theirs for theirs, ours in rows)}
    for name in ("signed", "signed each"):
        # What signing costs beside the GET.
        more = (it - ours for it, (_, ours) in zip(times[name], rows, strict=True))
        units[name] = median(it / theirs for it, (theirs, _) in zip(more, rows, strict=True))
    shown = {name: round(it, 3) for name, it in units.items()}
    command.say(f"CPU of a GET: {us}; in units of aiohttp's, of signing alone: {shown}")
    return {"us_a_get": us, "units_of_aiohttp": shown}


async def _timed(url: str, rounds: int, requests: int) -> dict[str, list[float]]:
    expected = _page()
    async with _fetcher(FetchLimits()) as fetcher, aiohttp.ClientSession() as session:
        sharing, each = _signing(fetcher, nonce=False), _signing(fetcher, nonce=True)

        async def plain() -> bytes:
            async with session.get(url) as response:
                return await response.read()

        async def ours() -> bytes:
            return (await fetcher.fetch(Request(url))).body

        async def signed() -> bytes:
            return (await sharing.fetch(Request(url))).body

        async def signed_each() -> bytes:
            return (await each.fetch(Request(url))).body

        clients = {"aiohttp": plain, "freshet": ours, "signed": signed, "signed each": signed_each}
        times: dict[str, list[float]] = {name: [] for name in clients}
        for turn in range(rounds + 1):
            for name, get in clients.items():
                began = process_time()
                for _ in range(requests):
                    if await get() != expected:
                        sys.exit(f"{name} did not read the page")
                # The first round warms up.
                if turn:
                    times[name].append((process_time() - began) / requests)
    return times


def _signing(fetcher: Fetcher, *, nonce: bool) -> Fetcher:
    """The fetcher with signatures, by a key that is made for it."""
    with TemporaryDirectory() as folder:
        key = Path(folder) / "key.json"
        write_new(key, [new_key(time())])
        said = {
            "sign": True,
            "key": str(key),
            "directory": "https://bot.example.org/keys",
            "nonce": nonce,
        }
        settings, _ = load(None, {f"identity.{name}": value for name, value in said.items()})
        return IdentityFetcher(fetcher, settings, cast("LoadRules", SimpleNamespace(now=time)))
