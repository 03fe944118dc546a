"""What a response is shows in its bytes: its label, or the status 200, may be wrong."""

import bz2
import gzip
import io
import lzma
import struct
import tarfile
import zipfile
import zlib
from collections.abc import AsyncIterator
from dataclasses import replace
from random import Random

import brotli
import pytest
import zstandard

from freshet.crawler.reduce.blocks import TEXT_VERSION
from freshet.crawler.reduce.sketch import body_digest, sketch
from freshet.storage.entries import NO_CONTENT, Role
from freshet.storage.records import Digests, DueUrl, FetchResult, Visit
from tests.crawler.stages import DUE, PAGE, PROSE, Stages, answer
from tests.variants import first

NOISE = Random(7).randbytes(5_000)
#: The page had a text at its last visit.
KNOWN = replace(DUE, digests=Digests(body_digest(b"old"), b"text of old bytes"))
EMPTY_BEFORE = replace(
    DUE, digests=Digests(body_digest(b"old"), sketch(()).text_digest, TEXT_VERSION)
)


@pytest.fixture
async def stages() -> AsyncIterator[Stages]:
    made = Stages()
    yield made
    # PDFs and large pages are read in a process.
    await made.pipeline.reducer.parser.close()


def zipped() -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("page.html", PAGE)
    return file.getvalue()


def tarred() -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as archive:
        member = tarfile.TarInfo("page.html")
        member.size = len(PAGE)
        archive.addfile(member, io.BytesIO(PAGE))
    return file.getvalue()


def png() -> bytes:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return (
            struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        )

    head = struct.pack(">IIBBBBB", 8, 8, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(bytes(200)))


BINARY = {
    "png": png(),
    "jpeg": b"\xff\xd8\xff\xe0\x00\x10JFIF\x00\x01\x01\x00\x00\x01\x00\x01\x00\x00" + NOISE,
    "jpeg with exif": b"\xff\xd8\xff\xe1\x12\x34Exif\x00\x00MM\x00*" + NOISE,
    "gif": b"GIF89a\x10\x00\x10\x00\x80\x00\x00\x00\x00\x00\xff\xff\xff!\xf9\x04" + NOISE[:90],
    "webp": b"RIFF" + struct.pack("<I", 900) + b"WEBPVP8 " + NOISE[:900],
    "ico": b"\x00\x00\x01\x00\x01\x00\x10\x10\x00\x00\x01\x00\x20\x00\x68\x04" + NOISE[:900],
    "bmp": b"BM\x36\x03\x00\x00\x00\x00\x00\x00\x36\x00\x00\x00\x28\x00\x00\x00" + bytes(700),
    "tiff": b"II*\x00\x08\x00\x00\x00" + NOISE,
    "mp4": b"\x00\x00\x00\x20ftypisom\x00\x00\x02\x00isomiso2avc1mp41" + NOISE,
    "mp3": b"ID3\x03\x00\x00\x00\x00\x00\x23TSSE" + NOISE,
    "ogg": b"OggS\x00\x02" + bytes(8) + NOISE[:500],
    "webm": b"\x1a\x45\xdf\xa3\x01\x00\x00\x00\x00\x00\x00\x1f\x42\x86\x81\x01" + NOISE[:500],
    "wav": b"RIFF\x24\x08\x00\x00WAVEfmt \x10\x00\x00\x00\x01\x00\x02\x00" + NOISE[:500],
    "zip": zipped(),
    "tar": tarred(),
    "7z": b"7z\xbc\xaf\x27\x1c\x00\x04" + NOISE[:500],
    "rar": b"Rar!\x1a\x07\x01\x00" + NOISE[:500],
    "bzip2": bz2.compress(PAGE),
    "xz": lzma.compress(PAGE),
    "gzip of a picture": gzip.compress(png()),
    "gzip that is cut": gzip.compress(PAGE)[:-9],
    "gzip that is damaged": gzip.compress(PAGE)[:40] + NOISE[:300],
    "zstd that is cut": zstandard.compress(PAGE)[:-9],
    "brotli without its header": brotli.compress((PAGE + NOISE) * 2, quality=4),
    "deflate without its header": zlib.compress(PAGE + NOISE),
    "encrypted": NOISE,
    "executable": b"\x7fELF\x02\x01\x01" + bytes(9) + b"\x03\x00\x3e\x00" + NOISE,
    "windows executable": b"MZ\x90\x00\x03\x00\x00\x00\x04\x00\x00\x00\xff\xff" + bytes(60) + NOISE,
    "font": b"wOF2\x00\x01\x00\x00\x00\x00" + NOISE[:500],
    "truetype": b"\x00\x01\x00\x00\x00\x0f\x00\x80\x00\x03\x00\x70DSIG" + NOISE[:500],
    "sqlite": b"SQLite format 3\x00\x10\x00\x01\x01\x00\x40\x20\x20" + bytes(900),
    "office": b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(16) + NOISE[:500],
    "wasm": b"\x00asm\x01\x00\x00\x00" + NOISE[:300],
    "java": b"\xca\xfe\xba\xbe\x00\x00\x00\x34" + NOISE[:300],
}  # fmt: skip
LABELS = ["text/html; charset=utf-8", "text/plain"]


@pytest.mark.parametrize("due", [DUE, KNOWN], ids=["never seen", "known"])
@pytest.mark.parametrize("body", BINARY.values(), ids=BINARY)
async def test_binary_data_that_is_labelled_as_a_page_is_a_failure(
    stages: Stages, body: bytes, due: DueUrl
) -> None:
    for label in LABELS:
        visit = await stages.take(answer(body, Content_Type=label, ETag='"new"'), due)
        seen = visit.observation
        assert (seen.kind, seen.reason) == ("failed", "binary")
        assert label in (seen.detail or "")
        # The last version and its validators stay; only what had content is worth another try.
        assert (visit.capture, visit.validators) == (None, None)
        assert (visit.retry_at is not None) == (due is KNOWN)


async def test_a_body_of_binary_data_is_no_failure_where_that_was_the_last_version(
    stages: Stages,
) -> None:
    due = replace(DUE, digests=Digests(body_digest(NOISE), None))
    assert (await stages.take(answer(NOISE), due)).observation.kind == "unchanged"


PACKED = {
    "gzip": gzip.compress(PAGE),
    "gzip, fast": gzip.compress(PAGE, 1),
    "gzip, stored": gzip.compress(PAGE, 0),
    "gzip with a name": b"\x1f\x8b\x08\x08\x00\x00\x00\x00\x00\x03a.html\x00"
    + gzip.compress(PAGE, mtime=0)[10:],
    "gzip with another time": gzip.compress(PAGE, mtime=1_234_567_890),
    "gzip of gzip": gzip.compress(gzip.compress(PAGE)),
    "gzip in two members": gzip.compress(PAGE[:500]) + gzip.compress(PAGE[500:]),
    "gzip with zeros behind it": gzip.compress(PAGE) + bytes(512),
    "zstd": zstandard.compress(PAGE),
    "zstd of gzip": zstandard.compress(gzip.compress(PAGE)),
}  # fmt: skip


@pytest.mark.parametrize("body", PACKED.values(), ids=PACKED)
async def test_a_page_whose_coding_is_not_named_is_unpacked(stages: Stages, body: bytes) -> None:
    plain = await stages.take(answer(PAGE))
    packed = await stages.take(answer(body))
    assert packed.capture is not None
    assert plain.capture is not None
    assert packed.capture.digests == plain.capture.digests
    again = replace(DUE, digests=plain.capture.digests)
    assert (await stages.take(answer(body), again)).observation.rung == "body"


async def test_a_packed_body_that_holds_too_much_is_a_failure(stages: Stages) -> None:
    stages.pipeline = replace(stages.pipeline, max_body_bytes=1_000)
    seen = (await stages.take(answer(gzip.compress(PAGE * 9)))).observation
    assert (seen.kind, seen.reason) == ("failed", "binary")


PDF = b"%PDF-1.4\n1 0 obj<</Type/Catalog>>endobj\ntrailer<</Root 1 0 R>>\n%%EOF\n"


@pytest.mark.parametrize(
    "label",
    first(4, [
        "text/html", "application/pdf", "application/json", "unknown/unknown", "text/plain", "*/*",
        "text/html; charset=utf-8", "application/xhtml+xml", "text/xml", "application/unknown",
    ]),
)  # fmt: skip
@pytest.mark.parametrize("body", [PDF, gzip.compress(PDF)], ids=["plain", "packed"])
async def test_a_pdf_is_read_as_one_whatever_its_label_says(
    stages: Stages, label: str, body: bytes
) -> None:
    capture = (await stages.take(answer(body, Content_Type=label))).capture
    assert capture is not None
    assert capture.content_type == "application/pdf"


FEED = (
    b"<?xml version='1.0'?><rss version='2.0'><channel><title>F</title>"
    b"<item><title>One</title><link>http://h1/one</link></item></channel></rss>"
)


@pytest.mark.parametrize(
    "label", ["text/html", "text/plain", "application/xml", "unknown/unknown", "application/json"]
)
@pytest.mark.parametrize("body", [FEED, gzip.compress(FEED)], ids=["plain", "packed"])
async def test_a_feed_is_read_as_one_whatever_its_label_says(
    stages: Stages, label: str, body: bytes
) -> None:
    assert (await stages.take(answer(body, Content_Type=label))).role == "feed"


TEXTS = {
    "one word": b"ok",
    "one letter": b"a",
    "a number": b"7",
    "utf-16 with a mark": "\ufeff<p>Wörter und Wörter".encode("utf-16-le"),
    "utf-16 without a mark": "<p>words and more words".encode("utf-16-le"),
    "iso-2022-jp": "<p>日本語のページ".encode("iso2022_jp"),
    "iso-2022-kr": "<p>한국어 페이지입니다 한국어 페이지입니다".encode("iso2022_kr"),
    "shift_jis": "<p>日本語のページ".encode("shift_jis"),
    "gb18030": "<p>中文网页中文网页".encode("gb18030"),
    "koi8-r": "<p>Русская страница".encode("koi8-r"),
    "a stray control character": b"<p>some words\x00 and others",
    "form feeds": b"one\x0c\n" * 90,
    "vertical tabs": b"<html><p>a page\x0bof\x0bsome\x0bslides " * 40,
    "a log with escapes": b"\x1b[31mred\x1b[0m line of a log\n" * 50,
    "the name of a picture format": b"GIF89a is a format of pictures",
    "the name of a program": b"MZ is the mark of an executable",
    "the name of an archive": b"PK is a key for some",
    "json": b'{"a": [1, 2]}',
    "utf-8 with errors": "<p>Käse".encode()[:-1] + b"\xff\xfe\xfd words",
    "zeros in a page": b"<!doctype html><title>T</title><body>" + bytes(400) + b"words</body>",
}  # fmt: skip


@pytest.mark.parametrize("body", TEXTS.values(), ids=TEXTS)
async def test_short_and_odd_texts_are_pages(stages: Stages, body: bytes) -> None:
    seen = (await stages.take(answer(body, Content_Type="text/html"), KNOWN)).observation
    assert seen.reason not in {"binary", "empty", "stub"}


EMPTY = {
    "no bytes": b"",
    "a line feed": b"\n",
    "blanks": b"   \r\n\t ",
    "a mark": b"\xef\xbb\xbf",
    "a mark and a blank": b"\xef\xbb\xbf\r\n",
    "zeros": bytes(512),
    "many line feeds": b"\n" * 100_000,
}
STUBS = {
    "elements": b"<html><head></head><body></body></html>",
    "a doctype": b"<!doctype html>",
    "a doctype and elements": b"<!DOCTYPE html>\n<html lang=en>\n<head>\n</head>\n<body>\n</body>",
    "a title": b"<!doctype html><html><head><title>My site</title></head><body></body></html>",
    "a title without words": b"<title></title>",
    "metas and styles": b'<html><head><meta charset="utf-8"><link rel=stylesheet href=/a.css>'
    b"<style>p { color: red }</style></head><body class=home></body></html>",
    "a wrapper": b'<body><div id="page"><div class="main"></div></div></body>',
    "an empty paragraph": b"<p></p>",
    "a no-break space": b"<body>&nbsp;</body>",
    "breaks": b"<body><br><br/><hr></body>",
    "a comment": b"<!-- generated in 0.01 s --><html><body></body></html>",
    "a comment only": b"<!-- cache miss -->",
    "an empty table": b"<table><tr><td></td></tr></table>",
    "xhtml": b'<?xml version="1.0"?><!DOCTYPE html><html xmlns="http://www.w3.org/1999/xhtml">'
    b"<head><title/></head><body/></html>",
    "the head alone": b"<html><head><title>Shop</title></head>",
}
NOTHING = {**EMPTY, **STUBS}


@pytest.mark.parametrize("body", NOTHING.values(), ids=NOTHING)
async def test_a_page_of_which_nothing_is_left_is_a_failure(stages: Stages, body: bytes) -> None:
    visit = await stages.take(answer(body, ETag='"new"'), KNOWN)
    seen = visit.observation
    assert (seen.kind, seen.reason) == ("failed", "empty" if body in EMPTY.values() else "stub")
    assert (visit.capture, visit.validators, visit.links) == (None, None, None)
    assert visit.retry_at is not None


@pytest.mark.parametrize("due", [DUE, EMPTY_BEFORE], ids=["never seen", "empty before"])
@pytest.mark.parametrize("body", NOTHING.values(), ids=NOTHING)
async def test_a_page_that_never_had_content_may_be_empty(
    stages: Stages, body: bytes, due: DueUrl
) -> None:
    seen = (await stages.take(answer(body), due)).observation
    if due is DUE:
        assert (seen.kind, seen.detail) == ("new", "the page shows no text")
    else:
        assert seen.kind == "unchanged"


SAY_SO = {
    "a picture": answer(png(), Content_Type="image/png"),
    "an archive": answer(zipped(), Content_Type="application/zip"),
    "a page to be saved": answer(PAGE, Content_Type="application/octet-stream"),
    "a style sheet": answer(b"a {}", Content_Type="text/css"),
    "204": replace(answer(b""), outcome="skipped", status=204, reason="http_204"),
    "205": replace(answer(b""), outcome="skipped", status=205, reason="http_205"),
    "unread": replace(answer(b""), outcome="skipped", reason="content_type"),
}  # fmt: skip


@pytest.mark.parametrize("result", SAY_SO.values(), ids=SAY_SO)
async def test_a_response_that_says_that_it_is_no_page_is_a_failure_where_a_text_was(
    stages: Stages, result: FetchResult
) -> None:
    visit = await stages.take(result, KNOWN)
    seen = visit.observation
    assert (seen.kind, visit.capture, visit.validators) == ("failed", None, None)
    assert seen.reason in NO_CONTENT
    assert "had a text before" in (seen.detail or "")
    # It is said for good, and the page is not requested again in this run.
    assert visit.retry_at is None
    for due in (DUE, EMPTY_BEFORE):
        visit = await stages.take(result, due)
        assert visit.observation.kind == "skipped"


@pytest.mark.parametrize("role", ["feed", "sitemap"])
async def test_an_empty_list_is_a_failure_where_it_had_entries(stages: Stages, role: Role) -> None:
    due = replace(KNOWN, role=role)
    seen = (await stages.take(answer(b""), due)).observation
    assert (seen.kind, seen.reason) == ("failed", "empty")


SHORT = {
    "a word": b"<p>Closed",
    "a word without markup": b"closed",
    "a picture": b"<body><img src=/a.png></body>",
    "a drawing": b"<svg viewBox='0 0 1 1'><path d='M0 0'/></svg>",
    "a background": b"<body background=/a.jpg></body>",
    "a background of style": b"<body style='background: url(/a.jpg)'></body>",
    "frames": b"<frameset cols=*,*><frame src=/a><frame src=/b></frameset>",
    "an inner frame": b"<body><iframe src=/a></iframe></body>",
    "a film": b"<video src=/a.mp4></video>",
    "a canvas": b"<canvas></canvas>",
    "a form": b"<form action=/s><input name=q></form>",
    "a link": b"<a href=/there></a>",
    "an object": b"<object data=/a.swf></object>",
    "scripts": b"<!doctype html><title>App</title><div id=app></div><script src=/app.js></script>",
    "an inline script": b"<script>document.write('Hello')</script>",
    "an entity": b"<p>&copy;",
    "a sign": "<p>…".encode(),
    "an ideograph": "<p>閉".encode(),
    "json": b"{}",
    "an own element": b"<my-app></my-app>",
    "a template": b"<template>later</template>",
}  # fmt: skip
#: Judged by the check for block pages, as before.
SHELLS = {"scripts"}


@pytest.mark.parametrize("body", SHORT.values(), ids=SHORT)
async def test_a_short_page_is_kept_whatever_was_there_before(stages: Stages, body: bytes) -> None:
    visit = await stages.take(answer(body), KNOWN)
    assert visit.observation.reason not in {"empty", "stub", "binary"}
    if body not in {SHORT[each] for each in SHELLS}:
        assert visit.capture is not None


async def test_a_page_that_is_back_as_it_was_is_unchanged(stages: Stages) -> None:
    first = await stages.take(answer(PAGE))
    assert first.capture is not None
    due = replace(DUE, digests=first.capture.digests)
    for body in (b"", NOISE, STUBS["elements"]):
        assert (await stages.take(answer(body), due)).observation.kind == "failed"
    back: Visit = await stages.take(answer(PAGE), due)
    assert (back.observation.kind, back.observation.rung) == ("unchanged", "body")


async def test_a_text_among_control_characters_is_kept(stages: Stages) -> None:
    """A page of a system that leaves one odd character on each line."""
    body = PROSE.replace("</p>", "\x1a</p>").encode()
    assert (await stages.take(answer(body), KNOWN)).capture is not None
