"""Hostile inputs: a grammar of good ones, and mutations of bytes; a seed always gives the same."""

from __future__ import annotations

import bz2
import gzip
import io
import re
import tomllib
import zipfile
import zlib
from pathlib import Path
from random import Random

import brotli
import zstandard

_DEPTH = 9
_RULE = re.compile(r"«(\w+)»|«([^»]+):(\d+)»")
#: Rules by name: alternatives, of which the first is the one that ends a deep expansion.
GRAMMAR: dict[str, list[str]] = tomllib.loads(
    Path(__file__).with_name("fuzz_grammar.toml").read_text("utf-8")
)
_CODECS = (
    "utf-8 utf-16 utf-16-be cp1251 latin-1 shift_jis gb18030 utf-8-sig utf-32 koi8-r iso2022_jp"
).split()
_TOKENS = (
    *b"\x00 \xff\xfe \xef\xbb\xbf < > \" ' & <!-- ]]> <script> %00 \xed\xa0\x80".split(b" "),
    *b"{ -1 \xc3 : 99999999999999999999 \x1b$B +AAAA- // \x80 \x1f\x8b \xf4\x90\x80\x80".split(
        b" "
    ),
    b"\r\n\r\n",
    b"\n",
)


def expanded(rng: Random, rule: str, **names: str) -> str:
    """Text of a rule of the grammar; ``~name~`` in it becomes the value of that name."""

    def expand(name: str, depth: int) -> str:
        chosen = GRAMMAR[name][0] if depth > _DEPTH else rng.choice(GRAMMAR[name])

        def text_of(found: re.Match[str]) -> str:
            return expand(found[1], depth + 1) if found[1] else found[2] * int(found[3])

        return _RULE.sub(text_of, chosen)

    text = expand(rule, 0)
    for name, value in names.items():
        text = text.replace(f"~{name}~", value)
    return text


def mutated(rng: Random, data: bytes, share: float = 0.5) -> bytes:
    """The bytes, in so large a share of cases with one to eight mutations."""
    if rng.random() >= share:
        return data
    changed = bytearray(data)
    for _ in range(rng.randint(1, 8)):
        at = rng.randrange(len(changed) + 1)
        end = min(len(changed), at + int(rng.expovariate(0.1)))
        match rng.randrange(7):
            case 0 if at < len(changed):
                changed[at] ^= 1 << rng.randrange(8)
            case 1:
                del changed[at:end]
            case 2:
                changed[at:at] = changed[at:end] * rng.choice((1, 2, 50, 1_000))
            case 3:
                changed[at:at] = rng.choice(_TOKENS)
            case 4:
                changed[at:end] = rng.randbytes(end - at)
            case 5 if rng.random() < 0.3:
                del changed[at:]
            case _:
                other = rng.randrange(len(changed) + 1)
                changed[at:at] = changed[other : other + end - at]
    return bytes(changed)


def document(rng: Random, rule: str, **names: str) -> bytes:
    """Bytes of a rule, at times in an odd encoding, at times mutated."""
    codec = rng.choice(_CODECS) if rng.random() < 0.25 else "utf-8"
    data = expanded(rng, rule, **names).encode(codec, "replace")
    return mutated(rng, data * rng.choice((1, 1, 1, 1, 1, 20)), 0.4)


def coded(rng: Random, body: bytes) -> tuple[str, bytes]:
    """A content coding, often none, and the body in it, which may be damaged or mislabelled."""
    match rng.randrange(12):
        case 0:
            label, body = "gzip", gzip.compress(body)
        case 1:
            label, body = "br", brotli.compress(body, quality=1)
        case 2:
            label, body = "zstd", zstandard.ZstdCompressor().compress(body)
        case 3:
            label, body = "deflate", zlib.compress(body)
        case 4:
            label, body = "deflate", zlib.compress(body, wbits=-15)
        case 5:
            label, body = "gzip, br", brotli.compress(gzip.compress(body), quality=1)
        case 6:
            label = rng.choice("gzip br zstd deflate compress x-gzip gzip,gzip,gzip ,".split())
        case _:
            return "", body
    return label, mutated(rng, body, 0.3)


def body_of(rng: Random, rule: str, host: str) -> bytes:
    """A body; one of a sitemap or a feed may be a gzip file."""
    body = document(rng, rule, host=host)
    is_file = rule in {"sitemap", "feed"} and rng.random() < 0.15
    return mutated(rng, gzip.compress(body), 0.4) if is_file else body


def http_answer(rng: Random, rule: str, host: str, oddness: float) -> bytes:
    """One answer; the head and the framing are odd in so large a share of cases."""
    body = body_of(rng, rule, host)
    coding, body = coded(rng, body) if rng.random() < 0.5 else ("", body)
    is_odd = rng.random() < oddness
    status = expanded(rng, "status") if is_odd else "200 OK"
    version = expanded(rng, "version") if is_odd else "HTTP/1.1"
    lines = [f"{version} {status}"]
    if rng.random() < 0.5:
        lines.append(f"Content-Type: {expanded(rng, 'type')}")
    if coding:
        lines.append(f"Content-Encoding: {coding}")
    if status.startswith("30"):
        lines.append(f"Location: {expanded(rng, 'url')}")
    more = expanded(rng, "headers") if rng.random() < 0.6 else ""
    framing, body = framed(rng, body, odd=is_odd)
    head = "\r\n".join((*lines, more)).replace("~host~", host).encode("utf-8", "replace")
    return mutated(rng, head + framing + b"\r\n" + body, 0.3 if is_odd else 0.0)


def framed(rng: Random, body: bytes, *, odd: bool) -> tuple[bytes, bytes]:
    """The header lines that say where a body ends, and the body between its marks."""

    def happens(share: float) -> bool:
        return odd and rng.random() < share

    def text(rule: str) -> bytes:
        return expanded(rng, rule).encode("utf-8", "replace")

    if rng.random() < 0.5:
        length = text("n") if happens(0.4) else b"%d" % len(body)
        again = b"Content-Length: 3\r\n" if happens(0.1) else b""
        return b"Content-Length: " + length + b"\r\n" + again, body
    pieces, at = [], 0
    while at < len(body):
        size = min(rng.randint(1, 1 + len(body) // 2), len(body) - at)
        said = text("n") if happens(0.1) else b"%x" % size
        extension = b";" + text("word") if happens(0.1) else b""
        pieces.append(said + extension + b"\r\n" + body[at : at + size] + b"\r\n")
        at += size
    trailer = text("headers") if odd else b""
    return b"Transfer-Encoding: chunked\r\n", b"".join(pieces) + b"0\r\n" + trailer + b"\r\n"


def warc(rng: Random) -> bytes:
    """A WARC file, plain or compressed record by record or as a whole."""
    records = [_record(rng) for _ in range(rng.randint(1, 12))]
    match rng.randrange(5):
        case 0:
            data = b"".join(records)
        case 1:
            data = gzip.compress(b"".join(records))
        case 2:
            data = b"".join(map(zstandard.ZstdCompressor().compress, records))
        case _:
            data = b"".join(map(gzip.compress, records))
    return mutated(rng, data, 0.2)


def _record(rng: Random) -> bytes:
    rule = rng.choice(("html", "feed", "sitemap", "robots", "text"))
    block = http_answer(rng, rule, "a.test", 0.2)
    is_odd = rng.random() < 0.06
    lines = [
        f"WARC/1.{rng.choice('019') if is_odd else 1}",
        f"WARC-Type: {expanded(rng, 'warctype') if rng.random() < 0.4 else 'response'}",
        f"WARC-Target-URI: http://a.test/p{rng.randrange(5)}",
        f"WARC-Date: {expanded(rng, 'warcdate')}",
        f"Content-Length: {expanded(rng, 'n') if is_odd and rng.random() < 0.3 else len(block)}",
        expanded(rng, "warcfields", host="a.test") if is_odd else "",
    ]
    head = "\r\n".join(lines).encode("utf-8", "replace")
    return mutated(rng, head + b"\r\n" + block + b"\r\n\r\n", 0.3 if is_odd else 0.0)


def wacz(rng: Random) -> bytes:
    """A WACZ package."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(
        buffer, "w", rng.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED))
    ) as package:
        members = {
            f"archive/{expanded(rng, 'word')[:50]}.warc.gz": warc(rng), "archive/a.warc": warc(rng),
            "indexes/index.cdxj": document(rng, "cdxj"), "datapackage.json": document(rng, "json"),
            "archive/b.warc.bz2": bz2.compress(b"x"),
        }  # fmt: skip
        for name, data in members.items():
            if rng.random() < 0.8:
                package.writestr(
                    name.replace("\x00", "_").encode("utf-8", "replace").decode(), data
                )
    return mutated(rng, buffer.getvalue(), 0.2)
