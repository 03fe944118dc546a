"""Responses that are wrong in one way each, as servers send them: heads, codings, lengths, chunks.

Each stands for a kind of fault that users of crawlers and clients have reported in public.
"""

from __future__ import annotations

import gzip
import zlib
from typing import NamedTuple

import brotli
import zstandard

#: The page that each of them is about.
TEXT = b"<!doctype html><title>Odd</title><p>Hello, this is the page.</p>" + b"<p>More.</p>\n" * 30
_OK = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n"
_LENGTH = b"Content-Length: %d\r\n" % len(TEXT)


class Odd(NamedTuple):
    """A response. ``ends``: the server closes the connection after it; a part may come later.

    ``is_sure`` says whether the end of the page is known for sure, so that it is to be read.
    """

    name: str
    data: bytes
    ends: bool = False
    later: bytes = b""
    is_sure: bool = True


def _head(*lines: bytes, first: bytes = b"HTTP/1.1 200 OK") -> bytes:
    return b"".join(line + b"\r\n" for line in (first, b"Content-Type: text/html", *lines, b""))


def _with(*lines: bytes, first: bytes = b"HTTP/1.1 200 OK") -> bytes:
    return _head(*lines, b"Content-Length: %d" % len(TEXT), first=first) + TEXT


def _chunked(*pieces: bytes) -> bytes:
    return b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n\r\n"


_TE = b"Transfer-Encoding: chunked"
_PARTS = (TEXT[:20], TEXT[20:])
_GZIP, _BR = gzip.compress(TEXT), bytes(brotli.compress(TEXT))
_ZSTD, _ZLIB = zstandard.compress(TEXT), zlib.compress(TEXT)


def _coded(coding: bytes, body: bytes, length: int | None = None, *more: bytes) -> bytes:
    said = len(body) if length is None else length
    return _head(b"Content-Encoding: " + coding, b"Content-Length: %d" % said, *more) + body


HEADS = (
    Odd("well-formed", _with()),
    Odd("a blank before a colon", _with(b"X-Powered-By : PHP")),
    Odd("a tab before a colon", _with(b"X-Powered-By\t: PHP")),
    Odd("a blank before the colon of Content-Length",
        _head(b"Content-Length : %d" % len(TEXT)) + TEXT),
    Odd("a blank before the colon of Transfer-Encoding",
        _head(b"Transfer-Encoding : chunked") + _chunked(*_PARTS)),
    Odd("a line without a colon", _with(b"Notice Undefined index")),
    Odd("a PHP notice", _with(b"<br />", b"<b>Notice</b>: Undefined index in x.php on line 3")),
    Odd("a line of blanks", _with(b"  ")),
    Odd("a word alone", _with(b"Connection")),
    Odd("a colon alone", _with(b":")),
    Odd("a value without a name", _with(b": nothing")),
    Odd("a second status line", _with(b"HTTP/1.1 200 OK")),
    Odd("a second status line with a colon", _with(b"HTTP/1.1 200 OK: fine")),
    Odd("a blank in a name", _with(b"X Header: a")),
    Odd("brackets in a name", _with(b"X[Header]: a")),
    Odd("bytes above ASCII in a name", _with(b"X-\xc3\x89t\xc3\xa9: a")),
    Odd("a quote in a name", _with(b'"X-Header": a')),
    Odd("bytes above ASCII in a value", _with(b"X-Town: K\xf6ln")),
    Odd("control characters in a value", _with(b"X-Odd: a\x01\x02b")),
    Odd("a value in two lines", _with(b"X-Long: a", b"  b")),
    Odd("a first line that goes on", _with(b" folded")),
    Odd("an empty value", _with(b"X-Empty:")),
    Odd("no blank after the colon", _with(b"X-Tight:a")),
    Odd("line feeds only", _with().replace(b"\r\n", b"\n")),
    Odd("line feeds in the head, both at its end", (_OK + _LENGTH).replace(b"\r\n", b"\n")
        + b"\r\n" + TEXT),
    Odd("one line feed among others", _with(b"X-A: b\nX-C: d")),
    Odd("two carriage returns at the end of a line", _with(b"X-A: b\r")),
    Odd("an empty line before the status line", b"\r\n" + _with()),
    Odd("the same length twice", _with(_LENGTH[:-2])),
    Odd("the same length three times", _with(_LENGTH[:-2], _LENGTH[:-2])),
    Odd("a list of one length", _head(b"Content-Length: %d, %d" % ((len(TEXT),) * 2)) + TEXT),
    Odd("a list without blanks", _head(b"Content-Length: %d,%d" % ((len(TEXT),) * 2)) + TEXT),
    Odd("a length with blanks around", _head(b"Content-Length:   %d  " % len(TEXT)) + TEXT),
    Odd("a length with zeros before", _head(b"Content-Length: 00%d" % len(TEXT)) + TEXT),
    Odd("chunks with a length of the page", _with(_TE)[: -len(TEXT)] + _chunked(*_PARTS)),
    Odd("chunks with a length of nothing", _head(_TE, b"Content-Length: 0") + _chunked(*_PARTS)),
    Odd("chunks with a length that is too large",
        _head(b"Content-Length: 99999", _TE) + _chunked(*_PARTS)),
    Odd("chunks twice said", _head(_TE, _TE) + _chunked(*_PARTS)),
    Odd("chunks twice said in one line",
        _head(b"Transfer-Encoding: chunked, chunked") + _chunked(*_PARTS)),
    Odd("chunks in capitals", _head(b"transfer-encoding: CHUNKED") + _chunked(*_PARTS)),
    Odd("identity and chunks", _head(b"Transfer-Encoding: identity, chunked") + _chunked(*_PARTS)),
    Odd("identity with a length", _with(b"Transfer-Encoding: identity")),
    Odd("a length beyond 64 bits",
        _head(b"Content-Length: 36893488147419103232") + TEXT, ends=True),
    Odd("an empty transfer coding", _with(b"Transfer-Encoding:")),
    Odd("gzip under the chunks",
        _head(b"Transfer-Encoding: gzip, chunked") + _chunked(_GZIP[:9], _GZIP[9:])),
    Odd("chunks of HTTP/1.0", _head(_TE, first=b"HTTP/1.0 200 OK") + _chunked(*_PARTS), ends=True),
    Odd("a header of 20 kB", _with(b"X-Long: " + b"a" * 20_000)),
    Odd("a header of 50 kB", _with(b"Set-Cookie: " + b"b" * 50_000)),
    Odd("150 headers", _with(*(b"X-%d: a" % n for n in range(150)))),
    Odd("a status line without a reason", _with(first=b"HTTP/1.1 200")),
    Odd("a status line with a blank and no reason", _with(first=b"HTTP/1.1 200 ")),
    Odd("two blanks in the status line", _with(first=b"HTTP/1.1  200 OK")),
    Odd("a reason above ASCII", _with(first=b"HTTP/1.1 200 D\xe9j\xe0")),
    Odd("HTTP/1.0 with a length", _with(first=b"HTTP/1.0 200 OK"), ends=True),
    Odd("HTTP/1.0 without a length", _head(first=b"HTTP/1.0 200 OK") + TEXT, ends=True),
    Odd("no length and no chunks", _head() + TEXT, ends=True),
    Odd("an interim response before", b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" + _with()),
    Odd("nothing but a status line", b"HTTP/1.1 200 OK\r\n\r\n" + TEXT, ends=True),
    Odd("more than the length", _with() + b"\r\n\r\n"),
    Odd("Upgrade offered", _with(b"Upgrade: h2,h2c", b"Connection: Upgrade, Keep-Alive")),
    Odd("a proxy's connection header", _with(b"Proxy-Connection: keep-alive")),
    Odd("Connection twice", _with(b"Connection: keep-alive", b"Connection: close"), ends=True),
    Odd("Content-Type twice", _with(b"Content-Type: text/html; charset=utf-8")),
    Odd("Trailer without trailers", _head(_TE, b"Trailer: X-Sum") + _chunked(*_PARTS)),
    Odd("trailers", _head(_TE) + _chunked(*_PARTS)[:-2] + b"X-Sum: 1\r\n\r\n"),
    Odd("a chunk extension", _head(_TE)
        + b"%x;name=value\r\n%s\r\n0\r\n\r\n" % (len(TEXT), TEXT)),
    Odd("a blank after a chunk's size", _head(_TE) + b"%x \r\n%s\r\n0\r\n\r\n" % (len(TEXT), TEXT)),
    Odd("zeros before a chunk's size", _head(_TE) + b"000%x\r\n%s\r\n0\r\n\r\n"
        % (len(TEXT), TEXT)),
    Odd("line feeds around the chunks", _head(_TE) + b"%x\n%s\n0\n\n" % (len(TEXT), TEXT)),
    Odd("a last chunk of many zeros", _head(_TE) + b"%x\r\n%s\r\n0000\r\n\r\n"
        % (len(TEXT), TEXT)),
    Odd("a head in two packets", _with()[:30], later=_with()[30:]),
    *(Odd(f"the status line {line.decode()!r}", _with(first=line))
      for line in (b"http/1.1 200 OK", b"Http/1.0 200 ok", b"HTTP/1.2 200 OK", b"HTTP/1 200 OK",
                   b"HTTP/2 200", b"HTTP/2.0 200 OK", b"HTTP/3 200", b"HTTP/1.1 200OK",
                   b"HTTP/1.1 200, OK", b"HTTP/1.1 200;", b"HTTP/1.1 200: fine")),
    Odd("a carriage return in a value", _with(b"X-A: b\rc")),
    Odd("a carriage return in the value of a cookie", _with(b"Set-Cookie: a=b\rc=d; path=/")),
    Odd("a comma behind a length", _head(b"Content-Length: %d," % len(TEXT)) + TEXT),
    Odd("no transfer coding, in a word", _with(b"Transfer-Encoding: none")),
    Odd("600 cookies", _with(*(b"Set-Cookie: c%d=1" % n for n in range(600)))),
    Odd("twenty zeros before a chunk's size", _head(_TE) + b"%020x\r\n%s\r\n0\r\n\r\n"
        % (len(TEXT), TEXT)),
    Odd("two carriage returns at the end of each line", _with().replace(b"\r\n", b"\r\r\n")),
    Odd("chunks with two lengths", _head(_TE, b"Content-Length: 3", b"Content-Length: 5")
        + _chunked(*_PARTS)),
    Odd("chunks with a negative length", _head(b"Content-Length: -1", _TE) + _chunked(*_PARTS)),
    Odd("chunks with rubbish for a length", _head(_TE, b"Content-Length: abc")
        + _chunked(*_PARTS)),
    Odd("a length of 64 bits", _head(b"Content-Length: 9223372036854775808") + TEXT, ends=True),
    Odd("two carriage returns behind a chunk's size", _head(_TE) + b"%x\r\r\n%s\r\n0\r\n\r\n"
        % (len(TEXT), TEXT)),
    *(Odd(f"the status line {line.decode()!r}", _with(first=line))
      for line in (b"HTTP/1.01 200 OK", b"HTTP/01.1 200 OK", b"HTTP/1.10 200 OK",
                   b"HTTP/0.9 200 OK", b"HTTP/1.1 200.1 OK", b"HTTP/1.3 200 OK",
                   b"HTTP/1.1\t200\tOK", b"HTTP/1.1 200/OK", b"HTTP/1.1 200 200 OK")),
    Odd("a folded length", _head(b"Content-Length:\r\n %d" % len(TEXT)) + TEXT),
    Odd("a folded transfer coding", _head(b"Transfer-Encoding:\r\n chunked") + _chunked(*_PARTS)),
    Odd("a mark of UTF-8 before a name", _with(b"\xef\xbb\xbfX-Odd: a")),
    Odd("a blank of Latin-1 behind a name", _with(b"X-Odd\xa0: a")),
    Odd("an interim response with a length",
        b"HTTP/1.1 100 Continue\r\nContent-Length: 5\r\n\r\n" + _with()),
    Odd("an interim response with an odd line",
        b"HTTP/1.1 100 Continue\r\nnothing\r\n\r\n" + _with()),
    Odd("a trailer without a colon", _head(_TE) + _chunked(*_PARTS)[:-2] + b"nothing\r\n\r\n"),
    Odd("ten empty lines before the status line", b"\r\n" * 10 + _with()),
    *(Odd(f"Content-Type: {kind.decode()}",
          b"HTTP/1.1 200 OK\r\nContent-Type: %b\r\n%b\r\n%b" % (kind, _LENGTH, TEXT))
      for kind in (b'"text/html"', b"text / html", b": text/html", b"Content-Type: text/html",
                   b"httpd/unix-directory", b"text/html, text/html", b"text/ html", b"text\\html",
                   b"text/html/utf-8", b"'text/html' charset=utf-8")),
)  # fmt: skip

#: Wrong in a way that leaves the end of the head or of the body unsure: to be refused.
UNSURE = tuple(
    case._replace(is_sure=False)
    for case in (
        Odd("two lengths", _with(b"Content-Length: 5")),
        Odd("a list of two lengths", _head(b"Content-Length: 5, %d" % len(TEXT)) + TEXT),
        Odd("a negative length", _head(b"Content-Length: -5") + TEXT, ends=True),
        Odd("rubbish for a length", _head(b"Content-Length: many") + TEXT, ends=True),
        Odd("a length and more", _head(b"Content-Length: %da" % len(TEXT)) + TEXT, ends=True),
        Odd("a length with a sign", _head(b"Content-Length: +%d" % len(TEXT)) + TEXT, ends=True),
        Odd("a length in hexadecimal", _head(b"Content-Length: 0x40") + TEXT, ends=True),
        Odd("NUL in a name", _with(b"X-\0Odd: a")),
        Odd("NUL in a value", _with(b"X-Odd: a\0b")),
        Odd("chunks that are not the last coding",
            _head(b"Transfer-Encoding: chunked, gzip") + _chunked(_GZIP), ends=True),
        Odd("chunks said, and none sent", _head(_TE) + TEXT, ends=True),
        Odd("a damaged chunk", _head(_TE) + b"14\r\n" + TEXT[:20] + b"\r\nxyz\r\n" + TEXT[20:]),
        Odd("a damaged chunk in a later packet", _head(_TE) + b"14\r\n" + TEXT[:20] + b"\r\n",
            later=b"<!--\r\n" + TEXT[20:]),
        Odd("a chunk that is longer than said", _head(_TE) + b"5\r\n" + TEXT + b"\r\n0\r\n\r\n"),
        Odd("a chunk's size of many digits", _head(_TE) + b"1" * 20 + b"\r\n" + TEXT, ends=True),
        Odd("a negative chunk", _head(_TE) + b"-5\r\n" + TEXT, ends=True),
        Odd("chunks before a word that is no coding",
            _head(b"Transfer-Encoding: chunked, another") + _chunked(*_PARTS)),
        Odd("a transfer coding that is none, with a length", _with(b"Transfer-Encoding: utf-8")),
        Odd("a transfer coding that is none, to the end",
            _head(b"Transfer-Encoding: binary") + TEXT, ends=True),
        Odd("NUL in a trailer", _head(_TE) + _chunked(*_PARTS)[:-2] + b"X: a\0b\r\n\r\n"),
        Odd("two Locations of a page", _with(b"Location: /a", b"Location: /b")),
        Odd("two Locations of a redirect",
            _with(b"Location: /a", b"Location: /b", first=b"HTTP/1.1 302 Found")),
        Odd("a carriage return in the status line", _with(first=b"http/1.1 200 OK\rX: y")),
        Odd("a length behind a comma", _head(b"Content-Length: ,%d" % len(TEXT)) + TEXT),
        Odd("no status", _with(first=b"HTTP/1.1 OK")),
        Odd("a status of two digits", _with(first=b"HTTP/1.1 20 OK")),
        Odd("words behind a chunk's size", _head(_TE) + b"%x abc\r\n%s\r\n0\r\n\r\n"
            % (len(TEXT), TEXT)),
        Odd("a status of four digits", _with(first=b"HTTP/1.1 2000 OK")),
        Odd("a transfer coding with a parameter",
            _head(b"Transfer-Encoding: chunked;q=1") + _chunked(*_PARTS)),
        Odd("a version of the future", _with(first=b"HTTP/9.1 200 OK")),
        Odd("no HTTP", TEXT, ends=True),
    )
)  # fmt: skip

CODINGS = (
    *(Odd(f"Content-Encoding: {word.decode()}", _with(b"Content-Encoding: " + word))
      for word in (b"UTF-8", b"utf8", b"none", b"identity", b"text/html", b"iso-8859-1", b"binary",
                   b"8bit", b"ISO-8859-1, identity", b"chunked", b"default", b"null")),
    Odd("gzip, UTF-8", _coded(b"gzip, UTF-8", _GZIP)),
    Odd("a coding said twice, used once", _coded(b"gzip", _GZIP, None, b"Content-Encoding: gzip")),
    *(Odd(f"{coding.decode()} said, text sent", _coded(coding, TEXT))
      for coding in (b"gzip", b"deflate", b"br", b"zstd", b"x-gzip")),
    Odd("a wrong checksum", _coded(b"gzip", _GZIP[:-8] + b"\1\2\3\4" + _GZIP[-4:])),
    Odd("a wrong size behind the checksum", _coded(b"gzip", _GZIP[:-4] + b"\0\0\0\1")),
    Odd("gzip without its checksum", _coded(b"gzip", _GZIP[:-8])),
    Odd("gzip with half of its checksum", _coded(b"gzip", _GZIP[:-6])),
    Odd("gzip without its size, in chunks",
        _head(b"Content-Encoding: gzip", _TE) + _chunked(_GZIP[:-4])),
    Odd("deflate without its checksum", _coded(b"deflate", _ZLIB[:-4])),
    Odd("deflate with half of its checksum", _coded(b"deflate", _ZLIB[:-2])),
    Odd("deflate with a wrong checksum", _coded(b"deflate", _ZLIB[:-4] + b"\1\2\3\4")),
    *(Odd(f"{said} said, {sent} sent", _coded(said.encode(), body))
      for said in ("gzip", "deflate", "br", "zstd")
      for sent, body in (("gzip", _GZIP), ("zlib", _ZLIB), ("br", _BR), ("zstd", _ZSTD))
      if said != sent and (said, sent) != ("deflate", "zlib")),
    Odd("x-gzip said, bare deflate sent", _coded(b"x-gzip", zlib.compress(TEXT, wbits=-15))),
    Odd("gzip with rubbish behind it", _coded(b"gzip", _GZIP + b"rubbish")),
    Odd("bare deflate", _coded(b"deflate", zlib.compress(TEXT, wbits=-15))),
)  # fmt: skip

LENGTHS = (
    Odd("gzip with the length of the page, kept open", _coded(b"gzip", _GZIP, len(TEXT))),
    Odd("gzip with the length of the page, closed", _coded(b"gzip", _GZIP, 999), ends=True),
    Odd("br with the length of the page, closed", _coded(b"br", _BR, len(TEXT) + 5), ends=True),
    Odd("zstd with the length of the page, closed", _coded(b"zstd", _ZSTD, 999), ends=True),
    Odd("gzip without the last chunk", _head(b"Content-Encoding: gzip", _TE)
        + _chunked(_GZIP)[:-5], ends=True),
    Odd("br without the last chunk", _head(b"Content-Encoding: br", _TE)
        + _chunked(_BR)[:-5], ends=True),
    Odd("gzip, the last chunk without its end", _head(b"Content-Encoding: gzip", _TE)
        + _chunked(_GZIP)[:-2], ends=True),
)  # fmt: skip

ALL = (*HEADS, *UNSURE, *CODINGS, *LENGTHS)
