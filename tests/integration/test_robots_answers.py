"""What hosts are asked for after each kind of robots.txt, and by redirects, over raw sockets."""

import asyncio
import gzip
from pathlib import Path

import pytest
import zstandard

from freshet.crawler.admission.site_lists import seeds_from_arguments
from freshet.crawler.cli.check import check
from freshet.crawler.run.crawl import CrawlOrder, crawl
from tests.crawler.fetch.hostile_server import Answer, HostileServer, closes, hostile, page, sends
from tests.integration.quick import quick, unwatched

RULES = b"User-agent: *\nDisallow: /secret\n"
LENGTH, PACKED = len(RULES), gzip.compress(RULES)
HOME = b"<title>Home</title><a href=/open>open</a><a href=/secret>secret</a>"


def part(body: bytes, *headers: str) -> bytes:
    return page(body, "Content-Type: text/plain", *headers, status="206 Partial Content")


async def asked(tmp_path: Path, robots: Answer) -> set[str]:
    """Return the paths of the pages that a crawl requests."""
    server: HostileServer
    tmp_path.mkdir(exist_ok=True)

    async def answer(writer: asyncio.StreamWriter) -> None:
        path = server.requests[-1].split()[1]
        await (robots if path == b"/robots.txt" else sends(page(HOME)))(writer)

    async with hostile(answer) as server:
        order = CrawlOrder(tmp_path / "c.db", seeds_from_arguments([server.url()]).seeds)
        settings = quick(crawl__patience_s=0.2)
        await crawl(settings, order, watch=unwatched)
    paths = {head.split()[1].decode() for head in server.requests}
    return paths & {"/", "/open", "/secret"}


NO_CONTENT = {
    "204": sends(b"HTTP/1.1 204 No Content\r\n\r\n"),
    "204 with a type": sends(b"HTTP/1.1 204 No Content\r\nContent-Type: text/plain\r\n\r\n"),
    "204 with a type of pages": sends(b"HTTP/1.1 204 OK\r\nContent-Type: text/html\r\n\r\n"),
    "204 with a length": sends(b"HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n"),
    "204 with a hang-up": closes(b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n"),
    "204 of HTTP/1.0": closes(b"HTTP/1.0 204 No Content\r\n\r\n"),
    "204 with a tag": sends(b'HTTP/1.1 204 No Content\r\nETag: "x"\r\n\r\n'),
    "204 with a code": sends(b"HTTP/1.1 204 No Content\r\nContent-Encoding: gzip\r\n\r\n"),
    "205": sends(b"HTTP/1.1 205 Reset Content\r\nContent-Length: 0\r\n\r\n"),
    "205 in chunks": sends(
        b"HTTP/1.1 205 Reset Content\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
    ),
    "205 with a hang-up": closes(b"HTTP/1.1 205 Reset Content\r\n\r\n"),
    "205 with a body": sends(page(b"ignored", status="205 Reset Content")),
    "200 and empty": sends(page(b"", "Content-Type: text/plain")),
}


@pytest.mark.parametrize("robots", NO_CONTENT.values(), ids=NO_CONTENT)
async def test_a_success_without_content_has_no_rules(tmp_path: Path, robots: Answer) -> None:
    assert await asked(tmp_path, robots) == {"/", "/open", "/secret"}


WHOLE = {
    "206 of all": part(RULES, f"Content-Range: bytes 0-{LENGTH - 1}/{LENGTH}"),
    "in capitals": part(RULES, f"CONTENT-RANGE: Bytes 0-{LENGTH - 1}/{LENGTH}"),
    "with blanks": part(RULES, f"Content-Range:   bytes  0-{LENGTH - 1}/{LENGTH}  "),
    "twice the same": part(RULES, *[f"Content-Range: bytes 0-{LENGTH - 1}/{LENGTH}"] * 2),
    "with zeros": part(RULES, f"Content-Range: bytes 0-0{LENGTH - 1}/0{LENGTH}"),
    "with a tag": part(RULES, 'ETag: "x"', f"Content-Range: bytes 0-{LENGTH - 1}/{LENGTH}"),
    "packed": part(PACKED, "Content-Encoding: gzip",
                   f"Content-Range: bytes 0-{len(PACKED) - 1}/{len(PACKED)}"),
    "in chunks": (
        f"HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 0-{LENGTH - 1}/{LENGTH}\r\n"
        f"Transfer-Encoding: chunked\r\n\r\n{LENGTH:x}\r\n"
    ).encode() + RULES + b"\r\n0\r\n\r\n",
    "without a type": (
        f"HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 0-{LENGTH - 1}/{LENGTH}\r\n"
        f"Content-Length: {LENGTH}\r\n\r\n"
    ).encode() + RULES,
    "that allows ranges": part(
        RULES, "Accept-Ranges: bytes", f"Content-Range: bytes 0-{LENGTH - 1}/{LENGTH}"
    ),
}  # fmt: skip


@pytest.mark.parametrize("robots", WHOLE.values(), ids=WHOLE)
async def test_a_part_that_is_the_whole_file_is_read(tmp_path: Path, robots: bytes) -> None:
    assert await asked(tmp_path, sends(robots)) == {"/", "/open"}


async def test_a_whole_file_may_end_with_its_connection(tmp_path: Path) -> None:
    head = f"HTTP/1.1 206 OK\r\nContent-Range: bytes 0-{LENGTH - 1}/{LENGTH}\r\n\r\n".encode()
    assert await asked(tmp_path, closes(head + RULES)) == {"/", "/open"}


PARTS = {
    "the beginning": part(RULES[:9], f"Content-Range: bytes 0-8/{LENGTH}"),
    "the end": part(RULES[9:], f"Content-Range: bytes 9-{LENGTH - 1}/{LENGTH}"),
    "of a length that is not known": part(RULES, f"Content-Range: bytes 0-{LENGTH - 1}/*"),
    "without a range": part(RULES),
    "in another unit": part(RULES, f"Content-Range: lines 0-{LENGTH - 1}/{LENGTH}"),
    "longer than it says": part(RULES, "Content-Range: bytes 0-8/9"),
    "shorter than it says": part(RULES[:9], f"Content-Range: bytes 0-{LENGTH - 1}/{LENGTH}"),
    "the packed length of what is not": part(RULES, f"Content-Range: bytes 0-8/{LENGTH - 1}"),
    "with two ranges": part(RULES, f"Content-Range: bytes 0-{LENGTH - 1}/{LENGTH}",
                            "Content-Range: bytes 0-1/2"),
    "of many parts": page(
        b"--x\r\nContent-Range: bytes 0-8/9\r\n\r\nAllow: /a\r\n--x--\r\n",
        "Content-Type: multipart/byteranges; boundary=x", status="206 Partial Content"),
    "with a range that cannot be read": part(RULES, f"Content-Range: bytes=0-{LENGTH - 1}"),
    "with a negative range": part(RULES, f"Content-Range: bytes 0--1/{LENGTH}"),
}  # fmt: skip


@pytest.mark.parametrize("robots", PARTS.values(), ids=PARTS)
async def test_a_part_closes_its_host_as_a_server_error_does(tmp_path: Path, robots: bytes) -> None:
    """RFC 9309 has no rule for it: what it says of the rest is not known (section 2.3.1.4)."""
    assert await asked(tmp_path, sends(robots)) == set()


FILLED = RULES + b"".join(b"# comment %d\n" % n for n in range(9_000))
ZSTD = zstandard.compress(RULES)
GZIP_PAGE = page(PACKED, "Content-Type: text/plain")
UNLABELLED = {
    "as text": sends(GZIP_PAGE),
    "as gzip": sends(page(PACKED, "Content-Type: application/gzip")),
    "as x-gzip": sends(page(PACKED, "Content-Type: application/x-gzip")),
    "as bytes": sends(page(PACKED, "Content-Type: application/octet-stream")),
    "without a type": sends(
        b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(PACKED) + PACKED
    ),
    "with a word that is no coding": sends(page(PACKED, "Content-Encoding: utf-8")),
    "as identity": sends(page(PACKED, "Content-Encoding: identity")),
    "packed twice": sends(page(gzip.compress(PACKED))),
    "packed twice, in two ways": sends(page(gzip.compress(ZSTD))),
    "packed twice, and long": sends(page(gzip.compress(gzip.compress(FILLED)))),
    "packed twice, said once": sends(page(gzip.compress(PACKED), "Content-Encoding: gzip")),
    "in chunks of a byte": sends(
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
        + b"".join(b"1\r\n%c\r\n" % byte for byte in PACKED) + b"0\r\n\r\n"
    ),
    "to the end of the connection": closes(b"HTTP/1.0 200 OK\r\n\r\n" + PACKED),
    "in two members": sends(page(gzip.compress(RULES[:9]) + gzip.compress(RULES[9:]))),
    "with a name in it": sends(
        page(PACKED[:3] + b"\x08" + PACKED[4:10] + b"robots.txt\0" + PACKED[10:])
    ),
    "with garbage behind it": sends(page(PACKED + b"\0" * 9)),
    "with a wrong checksum": sends(page(PACKED[:-8] + b"\1\2\3\4" + PACKED[-4:])),
    "not compressed": sends(page(gzip.compress(RULES, 0))),
    "a long file": sends(page(gzip.compress(FILLED))),
    "more than is read": sends(page(gzip.compress(RULES + b"# and so on\n" * 500_000))),
    "as 206 of all": sends(
        part(PACKED, f"Content-Range: bytes 0-{len(PACKED) - 1}/{len(PACKED)}")
    ),
    "as zstd": sends(page(ZSTD, "Content-Type: text/plain")),
    "as 200 of a server that hangs up": closes(GZIP_PAGE),
}  # fmt: skip


@pytest.mark.parametrize("robots", UNLABELLED.values(), ids=UNLABELLED)
async def test_a_packed_file_is_unpacked_without_a_label(tmp_path: Path, robots: Answer) -> None:
    assert await asked(tmp_path, robots) == {"/", "/open"}


DAMAGED = {
    "without its end": page(PACKED[:-12]),
    "without its middle": page(gzip.compress(FILLED)[:5_000] + gzip.compress(FILLED)[6_000:]),
    "a header only": page(PACKED[:10]),
}


@pytest.mark.parametrize("robots", DAMAGED.values(), ids=DAMAGED)
async def test_what_is_damaged_is_as_if_it_had_a_label(tmp_path: Path, robots: bytes) -> None:
    """What the rest forbids is not known."""
    labelled = robots.replace(b"\r\n", b"\r\nContent-Encoding: gzip\r\n", 1)
    assert await asked(tmp_path / "1", sends(labelled)) == set()
    assert await asked(tmp_path / "2", sends(robots)) == set()


CHECKED = {
    "a part": (part(RULES[:9], f"Content-Range: bytes 0-8/{LENGTH}"), "unreachable"),
    "cut short": (page(RULES + b"# more")[:-6], "unreachable"),
    "packed": (GZIP_PAGE, "forbids"),
    "packed and damaged": (page(PACKED[:-12]), "unreachable"),
    "no content": (b"HTTP/1.1 204 No Content\r\n\r\n", "allows"),
}


@pytest.mark.parametrize(("robots", "answer"), CHECKED.values(), ids=CHECKED)
async def test_check_tells_what_a_crawl_makes_of_it(
    tmp_path: Path, robots: bytes, answer: str
) -> None:
    async with hostile(closes(robots)) as server:
        found = await check(quick(), tmp_path / "no.db", [server.url("/secret")], 0.0)
    (told,) = [step.answer for step in found.steps if step.answer in {answer, "forbids", "allows"}]
    assert told == answer


LOCATIONS = [
    (b"/caf\xe9", "/caf%E9"), (b"caf\xe9", "/caf%E9"), (b"/caf\xc3\xa9", "/caf%C3%A9"),
    (b"/\xe9\xc3\xa9", "/%E9%C3%A9"), (b"/a?q=\xe9", "/a?q=%E9"), (b"?q=\xfc", "/?q=%FC"),
    (b"/\x93\xfa\x96{", "/%93%FA%96%7B"), (b"/\xcf\xf0\xe8", "/%CF%F0%E8"),
    (b"/\xb0\xa1/\xb3\xaa.htm", "/%B0%A1/%B3%AA.htm"), (b"/%e9/\xe9", "/%e9/%E9"),
    (b"/\x80\x81\xfe\xff", "/%80%81%FE%FF"), (b"/a b\xe9", "/a%20b%E9"),
]  # fmt: skip


@pytest.mark.parametrize("is_absolute", [False, True])
@pytest.mark.parametrize(("location", "path"), LOCATIONS)
async def test_a_redirect_is_followed_with_the_bytes_of_its_location(
    tmp_path: Path, location: bytes, path: str, is_absolute: bool
) -> None:
    server: HostileServer

    async def answer(writer: asyncio.StreamWriter) -> None:
        asked = server.requests[-1].split()[1]
        if asked == b"/":
            to = server.url("/").encode() + location.lstrip(b"/") if is_absolute else location
            writer.write(page(b"", status="302 Found").replace(
                b"\r\n\r\n", b"\r\nLocation: " + to + b"\r\n\r\n"))  # fmt: skip
        else:
            found = asked == path.encode()
            writer.write(page(b"<p>Found", status="200 OK" if found else "404 Not Found"))

    async with hostile(answer) as server:
        order = CrawlOrder(tmp_path / "c.db", seeds_from_arguments([server.url()]).seeds)
        settings = quick(crawl__patience_s=0.2)
        report = await crawl(settings, order, watch=unwatched)
    assert [head.split()[1].decode() for head in server.requests][-1] == path
    assert report.pages == 1
