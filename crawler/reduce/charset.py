"""Character encodings: decoding the bytes of a document to text.

Precedence as in browsers (WHATWG HTML, section 13.2.3, and the WHATWG Encoding standard):
a byte-order mark beats every declaration, the Content-Type header beats the document's own
words, and a guess is made only for a document without any usable label. Labels have the meaning
of the Encoding standard's table (``iso-8859-1`` is windows-1252, ``gb2312`` is gbk).
"""

import codecs
import re
from collections.abc import Iterator
from functools import lru_cache
from operator import itemgetter
from typing import Final

import webencodings

#: The standard looks at 1,024 bytes; documents with long comments before their ``meta``
#: are common enough to look further.
_PRESCAN_BYTES: Final = 4096
_DETECTION_BYTES: Final = 64 * 1024

_BYTE_ORDER_MARKS: Final = (
    (b"\xef\xbb\xbf", "utf-8"),
    (b"\xfe\xff", "utf-16be"),
    (b"\xff\xfe", "utf-16le"),
)
_MARKS: Final = tuple(mark for mark, _ in _BYTE_ORDER_MARKS)
#: The first characters of an XML declaration in UTF-16 without a mark.
_UTF16_PROLOGUES: Final = {b"<\0?\0x\0": "utf-16le", b"\0<\0?\0x": "utf-16be"}

_CONTENT_TYPE_CHARSET: Final = re.compile(r""";\s*charset\s*=\s*["']?([^\s"';]+)""", re.IGNORECASE)
_COMMENT: Final = rb"<!(?=--).*?(?:-->|\Z)"
_TAG_REST: Final = rb"""
    (?>(?:[\s/]++ | [^\s/>][^\s/>=]*+
        (?>(?:\s*+=\s*+ (?:"[^"]*+"?+ | '[^']*+'?+ | [^\s>]*+))?))*)"""
#: Markup (HTML, section 13.2.3.2, "prescan a byte stream"), with the attributes of ``meta``.
_MARKUP: Final = re.compile(
    rb"%b | <(?:meta(?=[\s/])(%b) | /?[a-z][^\s>]*+%b | [!/?][^>]*+)"
    % (_COMMENT, _TAG_REST, _TAG_REST),
    re.IGNORECASE | re.DOTALL | re.VERBOSE,
)
_PLAIN_META: Final = re.compile(rb"<meta\s+charset=([\"']?)utf-8\1\s*/?>", re.IGNORECASE)
_ATTRIBUTE: Final = re.compile(rb"""([^\s=/>"']+)\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'>]+))""")
_CHARSET_IN_CONTENT: Final = re.compile(rb"""charset\s*=\s*["']?\s*([^\s"';]+)""", re.IGNORECASE)
_XML_ENCODING: Final = re.compile(
    rb"""(?>(?:\s|%b)*)<\?xml\s[^>]*?encoding\s*=\s*["']\s*([^\s"'>]+)""" % _COMMENT, re.DOTALL
)

#: Python's codecs of these names lack characters that the standard's encodings have.
_CODECS: Final = {"shift_jis": "cp932", "euc-kr": "cp949", "big5": "big5hkscs", "gbk": "gb18030"}
#: Encodings for which the detector has names that are not labels of the standard.
_DETECTED: Final = {
    "cp932": "shift_jis",
    "cp949": "euc-kr",
    "cp874": "windows-874",
    "macroman": "macintosh",
    "maccyrillic": "x-mac-cyrillic",
    "iso8859-16": "iso-8859-16",
    "utf-16-le": "utf-16le",
    "utf-16-be": "utf-16be",
}
#: Below it the text has no evidence of an encoding: a few quotation marks in an English page.
_LEAST_CONFIDENCE: Final = 0.03
_DEFAULT: Final = "windows-1252"
#: What a declaration in the document means by these: it was readable as ASCII (HTML, section
#: 13.2.3.2).
_MEANT: Final = {"utf-16be": "utf-8", "utf-16le": "utf-8", "x-user-defined": _DEFAULT}


def decode(body: bytes, content_type: str | None) -> tuple[str, str]:
    """Return the text of ``body`` and the WHATWG name of the encoding it was read in.

    A guessed encoding that the standard does not have gets the name of Python's codec. Never
    raises: an unknown label gives way to the next source, and invalid bytes become U+FFFD.
    """
    text, name = _unmarked(body, content_type)
    return _decoded(text, name), name


def utf8_of(body: bytes, content_type: str | None) -> tuple[bytes, str]:
    """Return what :func:`decode` returns, the text in UTF-8.

    It is the body itself where that is UTF-8, as most pages are.
    """
    text, name = _unmarked(body, content_type)
    if name == "utf-8":
        try:
            text.decode()
        except UnicodeDecodeError:
            pass
        else:
            return text, name
    return _decoded(text, name).encode("utf-8", "ignore"), name


def _unmarked(body: bytes, content_type: str | None) -> tuple[bytes, str]:
    """Return the body without a byte-order mark, and the name of its encoding."""
    if body.startswith(_MARKS):
        mark, name = next(each for each in _BYTE_ORDER_MARKS if body.startswith(each[0]))
        return body[len(mark) :], name
    return body, next(_declared(body, content_type), None) or _detected(body)


def xml_decoder(head: bytes) -> codecs.IncrementalDecoder:
    """Return a decoder for XML or lines that begin so; what names no encoding is UTF-8.

    A byte-order mark is decoded as the character that it is. Invalid bytes become U+FFFD.
    """
    marks = [*_BYTE_ORDER_MARKS, (b"<\0", "utf-16le"), (b"\0<", "utf-16be")]
    marked = (name for mark, name in marks if head.startswith(mark))
    name = next(marked, None) or next(_declared(head, None), "utf-8")
    return _codec(name).incrementaldecoder("replace")


def _decoded(body: bytes, name: str) -> str:
    text, _ = _codec(name).decode(body, "replace")
    return str(text)


def _codec(name: str) -> codecs.CodecInfo:
    if name in _CODECS or _encoding_name(name) is None:
        return codecs.lookup(_CODECS.get(name, name))
    found: codecs.CodecInfo = webencodings.lookup(name).codec_info
    return found


def _declared(body: bytes, content_type: str | None) -> Iterator[str]:
    """Return the encodings that usable labels name, the most trusted first."""
    header = _CONTENT_TYPE_CHARSET.search(content_type or "")
    if header and (name := _encoding_name(header[1])):
        yield name
    if name := _UTF16_PROLOGUES.get(body[:6]):
        yield name
    start = body[:_PRESCAN_BYTES]
    if _says_utf8(start):
        yield "utf-8"
    for label in _labels(start):
        name = _encoding_name(label.decode("latin-1"))
        if name:
            yield _MEANT.get(name, name)


def _says_utf8(start: bytes) -> bool:
    """Return whether a document begins as most do: its first word of an encoding is UTF-8."""
    found = _PLAIN_META.search(start)
    if found is None:
        return False
    before = start[: found.start()].lower()
    # Neither in a comment nor in another tag, which may have a ">" in its values.
    last = before[before.rfind(b"<") :] if b"<" in before else b">"
    is_apart = b">" in last and last.count(b'"') % 2 == 0 == last.count(b"'") % 2
    return is_apart and b"charset" not in before and b"<!--" not in before


def _labels(start: bytes) -> Iterator[bytes]:
    yield from _meta_labels(start)
    declaration = _XML_ENCODING.match(start)
    yield from declaration.groups() if declaration else ()


@lru_cache(maxsize=256)
def _encoding_name(label: str) -> str | None:
    encoding = webencodings.lookup(label)
    # For "replacement" a browser shows no text for safety; a crawler only reads, so it guesses.
    return None if encoding is None or encoding.name == "replacement" else str(encoding.name)


def _meta_labels(start: bytes) -> Iterator[bytes]:
    for meta in filter(None, map(itemgetter(1), _MARKUP.finditer(start))):
        attributes = {
            name.lower(): double or single or bare
            for name, double, single, bare in _ATTRIBUTE.findall(meta)
        }
        if b"charset" in attributes:
            yield attributes[b"charset"]
        elif attributes.get(b"http-equiv", b"").lower() == b"content-type":
            yield from _CHARSET_IN_CONTENT.findall(attributes.get(b"content", b""))[:1]


def _detected(body: bytes) -> str:
    """Guess the encoding of a document without a label; default ``windows-1252``."""
    if _is_utf8(body):
        return "utf-8"
    import chardet  # noqa: PLC0415  # slow to load, and most pages have a label

    found = chardet.detect(_sample(body), max_bytes=_DETECTION_BYTES)
    name = (found["encoding"] or _DEFAULT).lower()
    if found["confidence"] < _LEAST_CONFIDENCE:
        return _DEFAULT
    return _DETECTED.get(name) or _encoding_name(name) or name


def _is_utf8(body: bytes) -> bool:
    """Return whether the bytes are UTF-8, but for a few strays such as a foreign comment."""
    if body.isascii():
        # Escapes and zeros show ISO 2022 and UTF-16.
        return b"\x1b" not in body and b"\0" not in body
    text = body.decode("utf-8", "replace")
    strays = text.count("\ufffd")
    return strays == 0 or strays * 20 < len(body) - len(text)


def _sample(body: bytes) -> bytes:
    """Return the beginning, from the first informative byte, cut between characters."""
    first = next(re.finditer(rb"[\0\x1b\x80-\xff]", body)).start()
    # A multiple of four: in UTF-16 and UTF-32 characters begin there.
    start = max(0, first - 64) & ~3
    sample = body[start : start + _DETECTION_BYTES]
    if len(sample) < _DETECTION_BYTES:
        return sample
    cut = max(sample.rfind(b"<"), sample.rfind(b" "), sample.rfind(b"\n"))
    return sample[:cut] if cut > 0 else sample
