"""Responses in the test data of curl's repository (tests/data), by its FILEFORMAT.

Those of tests that need an HTTP server and no other: a response that curl reads and that has a
text, and one that curl refuses. What options of curl alone bring about is left out.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import NamedTuple

from freshet.crawler.fetch.client import Fetcher, Request
from scripts.benchmarks.odd_hosts import serving
from scripts.benchmarks.odd_responses import Odd

_PART = r"<{0}((?:\s+[\w-]+=\"[^\"]*\")*)\s*>\n(.*?)</{0}>"
_ATTRIBUTE = re.compile(rb'([\w-]+)="([^"]*)"')
#: Options without which curl would read the response otherwise, and other servers.
_OTHER_OPTIONS = re.compile(
    rb"(?:^|\s)(?:-[A-Za-z]*[ITxprCm]\b|--(?:head|raw|ignore-content-length|proxy|preproxy|socks"
    rb"|http2|http3|http0|max-filesize|max-time|range|continue-at|haproxy|connect-to|upload|config"
    rb"|ftp|doh|hsts|alt-svc|unix-socket|next|parallel|limit-rate))"
)
#: Tests of more than one response, and of the harness.
_OTHER_TESTS = (
    b"<servercmd>", b"<tool>", b"swsbounce", b"--next", b"--retry", b"<data1>", b"<data1 ",
    b"<data10",
)  # fmt: skip
_STATUS = re.compile(rb"HTTP/1\.[01] +2\d\d")
#: Errors of curl about the response itself: damaged, cut, not decodable, no HTTP.
_REFUSALS: Mapping[int, str] = {
    1: "another protocol", 8: "a strange reply", 18: "a part of a body",
    56: "a damaged body", 61: "a bad coding",
}  # fmt: skip
_TEXTUAL = re.compile(rb"[\0-\x08\x0b\x0e-\x1a\x1c-\x1f]")


class _Test(NamedTuple):
    """A response, and the body that curl reads in it; None: curl refuses it, with an error."""

    number: int
    response: bytes
    body: bytes | None
    ends: bool


async def read(
    directory: Path, fetcher: Callable[[], AbstractAsyncContextManager[Fetcher]]
) -> dict[str, object]:
    """What Freshet reads of them."""
    files = sorted(directory.glob("test[0-9]*"))
    tests = {each.number: each for each in map(_parsed, files) if each is not None}
    if not tests:
        raise SystemExit(f"{directory}: no tests of curl")
    good, missed, accepted, refused = 0, list[str](), list[int](), 0

    def response(path: str) -> Odd:
        test = tests[int(path[1:])]
        return Odd(str(test.number), test.response, test.ends)

    async with serving(response) as origin, fetcher() as fetches:
        for test in tests.values():
            request = Request(f"{origin}/{test.number}", "sitemap")
            while (result := await fetches.fetch(request)).reason == "stale":
                pass
            is_read = result.outcome == "fetched"
            if test.body is None:
                refused += 1
                accepted += [test.number] if is_read else []
            elif is_read and _is_same(result.body, test.body):
                good += 1
            else:
                missed.append(f"{test.number}: {result.reason or 'another body'}: {result.detail}")
    return {
        "correct responses": good + len(missed), "read": good, "not read": missed,
        "refused by curl": refused, "accepted": accepted,
    }  # fmt: skip


def _is_same(body: bytes, printed: bytes) -> bool:
    """Whether that is the body in what curl prints, with trailers behind it."""
    found, expected = _plain(body), _plain(printed)
    rest = expected.removeprefix(found).strip(b"\n")
    return expected.startswith(found) and all(b": " in line for line in rest.splitlines())


def _plain(body: bytes) -> bytes:
    """The body as the test harness compares it, whatever ends its lines."""
    return body.replace(b"\r", b"").rstrip(b"\n")


def _parsed(file: Path) -> _Test | None:
    """The response of a test, None if it is about something else."""
    number, text = int(file.name.removeprefix("test")), file.read_bytes()
    server, option = _part(text, "server"), _part(text, "command")
    if server is None or server[1].strip() != b"http" or option is None:
        return None
    command = re.sub(rb'"[^"]*"', b"", option[1])
    if _OTHER_OPTIONS.search(command):
        return None
    found, error = _part(text, "data"), _part(text, "errorcode")
    if found is None or any(word in text for word in _OTHER_TESTS):
        return None
    if option[1].count(b"http://") > 1:
        return None
    response = _filled(*found, file)
    if not _STATUS.match(response.lstrip(b"\r\n")) and error is None:
        return None
    ends = b"swsclose" in response
    if error is not None and error[1].strip() not in (b"", b"0"):
        code = int(error[1].split(b",")[0])
        return _Test(number, response, None, ends) if code in _REFUSALS else None
    checked, is_chunked = _part(text, "datacheck"), b"Transfer-Encoding: chunked" in response
    if checked is None and is_chunked:
        return None
    printed = response if checked is None else _filled(*checked, file)
    body = re.split(rb"\r?\n\r?\n", printed, maxsplit=1)[-1]
    is_text = body.strip() and not _TEXTUAL.search(body)
    return _Test(number, response, body, ends) if is_text else None


def _part(text: bytes, name: str) -> tuple[bytes, bytes] | None:
    found = re.search(_PART.format(name).encode(), text, re.DOTALL)
    return (found[1], found[2]) if found is not None else None


def _filled(attributes: bytes, text: bytes, file: Path) -> bytes:
    """A part as the server sends it: conditions, macros and variables are replaced."""
    said, number = dict(_ATTRIBUTE.findall(attributes)), int(file.name.removeprefix("test"))
    text = re.sub(
        rb"%include(?:text)? %SRCDIR/data/([^%]*)%\n?",
        lambda found: file.with_name(found[1].decode()).read_bytes(), _conditions(text),
    )  # fmt: skip
    text = text.replace(b"%HOSTIP", b"127.0.0.1").replace(b"%TESTNUMBER", b"%d" % number)
    text = re.sub(rb"%HTTPPORT|%HTTPSPORT", b"80", text)
    text = re.sub(rb"%CR|%SP|%TAB", lambda found: _BLANKS[found[0]], text)
    text = re.sub(rb"%AMP|%LT|%GT", lambda found: _SIGNS[found[0]], text)
    text = re.sub(
        rb"%repeat\[(\d+) x (.*?)\]%", lambda found: _octets(found[2]) * int(found[1]), text,
        flags=re.DOTALL,
    )  # fmt: skip
    text = re.sub(rb"%hex\[(.*?)\]hex%", lambda found: _octets(found[1]), text, flags=re.DOTALL)
    text = re.sub(
        rb"%b64\[(.*?)\]b64%", lambda found: base64.b64encode(_octets(found[1])), text,
        flags=re.DOTALL,
    )  # fmt: skip
    if said.get(b"base64") == b"yes":
        text = base64.b64decode(text)
    if said.get(b"hex") == b"yes":
        text = bytes.fromhex(text.decode("ascii"))
    if said.get(b"nonewline") == b"yes":
        text = text.removesuffix(b"\n").removesuffix(b"\r")
    if said.get(b"crlf") == b"yes":
        text = re.sub(rb"(?<!\r)\n", b"\r\n", text)
    elif said.get(b"crlf") == b"headers":
        head, end, body = text.partition(b"\n\n")
        text = re.sub(rb"(?<!\r)\n", b"\r\n", head + end) + body
    return text


_BLANKS = {b"%CR": b"\r", b"%SP": b" ", b"%TAB": b"\t"}
_SIGNS = {b"%AMP": b"&", b"%LT": b"<", b"%GT": b">"}


def _octets(text: bytes) -> bytes:
    return re.sub(rb"%([0-9A-Fa-f]{2})", lambda found: bytes([int(found[1], 16)]), text)


def _conditions(text: bytes) -> bytes:
    """Take every feature for present."""
    kept, shown = list[bytes](), [True]
    for line in text.splitlines(keepends=True):
        word = line.split()[:1]
        if word == [b"%if"]:
            shown.append(not line.split()[1].startswith(b"!"))
        elif word == [b"%else"]:
            shown[-1] = not shown[-1]
        elif word == [b"%endif"]:
            shown.pop()
        elif all(shown):
            kept.append(line)
    return b"".join(kept)
