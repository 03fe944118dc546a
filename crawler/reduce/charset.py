"""Character encodings: decoding the bytes of a document to text.

Precedence as in browsers (WHATWG HTML, section 13.2.3, and the WHATWG Encoding standard):
a byte-order mark beats every declaration, the Content-Type header beats the document's own
words, and a guess is made only for a document without any usable label. Labels have the meaning
of the Encoding standard's table (``iso-8859-1`` is windows-1252, ``gb2312`` is gbk).
"""

import re
from collections.abc import Iterator
from typing import Final

import webencodings

#: The standard looks at 1,024 bytes; documents with long comments before their ``meta``
#: are common enough to look further.
_PRESCAN_BYTES: Final = 4096
_DETECTION_BYTES: Final = 32 * 1024

_BYTE_ORDER_MARKS: Final = (
    (b"\xef\xbb\xbf", "utf-8"),
    (b"\xfe\xff", "utf-16be"),
    (b"\xff\xfe", "utf-16le"),
)
#: The first characters of an XML declaration in UTF-16 without a mark.
_UTF16_PROLOGUES: Final = ((b"<\0?\0x\0", "utf-16le"), (b"\0<\0?\0x", "utf-16be"))

_CONTENT_TYPE_CHARSET: Final = re.compile(r""";\s*charset\s*=\s*["']?([^\s"';]+)""", re.IGNORECASE)
_COMMENT: Final = re.compile(rb"<!--.*?(?:-->|\Z)", re.DOTALL)
_META: Final = re.compile(rb"<meta[\s/]([^>]*)", re.IGNORECASE)
_ATTRIBUTE: Final = re.compile(rb"""([^\s=/>"']+)\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'>]+))""")
_CHARSET_IN_CONTENT: Final = re.compile(rb"""charset\s*=\s*["']?\s*([^\s"';]+)""", re.IGNORECASE)
_XML_ENCODING: Final = re.compile(rb"""<\?xml\s[^>]*?encoding\s*=\s*["']\s*([^\s"'>]+)""")

#: The legacy encodings worth guessing, by the name of Python's codec. All others are so
#: rare on the web that admitting them costs more pages than it wins.
_GUESSED: Final = {
    "cp1252": "windows-1252",
    "cp1250": "windows-1250",
    "cp1251": "windows-1251",
    "cp1253": "windows-1253",
    "cp1254": "windows-1254",
    "cp1255": "windows-1255",
    "cp1256": "windows-1256",
    "cp1257": "windows-1257",
    "cp1258": "windows-1258",
    "cp874": "windows-874",
    "cp932": "shift_jis",
    "cp949": "euc-kr",
    "big5": "big5",
    "euc_jp": "euc-jp",
    "gb18030": "gb18030",
    "iso8859_2": "iso-8859-2",
    "koi8_r": "koi8-r",
}
_DEFAULT: Final = "windows-1252"


def decode(body: bytes, content_type: str | None) -> tuple[str, str]:
    """Return the text of ``body`` and the WHATWG name of the encoding it was read in.

    ``content_type`` is the whole header value. Never raises: an unknown label gives way to
    the next source, and bytes that are invalid in the encoding become U+FFFD.
    """
    for mark, name in _BYTE_ORDER_MARKS:
        if body.startswith(mark):
            return _decoded(body[len(mark) :], name), name
    name = next(_declared(body, content_type), None) or _detected(body)
    return _decoded(body, name), name


def _decoded(body: bytes, name: str) -> str:
    text, _ = webencodings.lookup(name).codec_info.decode(body, "replace")
    return str(text)


def _declared(body: bytes, content_type: str | None) -> Iterator[str]:
    """Return the encodings that usable labels name, the most trusted first."""
    header = _CONTENT_TYPE_CHARSET.search(content_type or "")
    if header and (name := _encoding_name(header[1])):
        yield name
    for prologue, name in _UTF16_PROLOGUES:
        if body.startswith(prologue):
            yield name
    start = _COMMENT.sub(b"", body[:_PRESCAN_BYTES])
    declaration = _XML_ENCODING.match(start.lstrip())
    for label in (*_meta_labels(start), *(declaration.groups() if declaration else ())):
        name = _encoding_name(label.decode("latin-1"))
        # The declaration was readable as ASCII (HTML, section 13.2.3.2).
        if name and name.startswith("utf-16"):
            yield "utf-8"
        elif name:
            yield _DEFAULT if name == "x-user-defined" else name


def _encoding_name(label: str) -> str | None:
    """Return the encoding of a label, or None if it is unknown.

    None, too, for labels that the standard maps to ``replacement``: a browser shows nothing
    there for safety, a crawler that only reads may guess.
    """
    encoding = webencodings.lookup(label)
    return None if encoding is None or encoding.name == "replacement" else str(encoding.name)


def _meta_labels(start: bytes) -> Iterator[bytes]:
    """Return the labels in ``<meta charset>`` and ``<meta http-equiv=content-type>``, in order."""
    for meta in _META.finditer(start):
        attributes = {
            name.lower(): double or single or bare
            for name, double, single, bare in _ATTRIBUTE.findall(meta[1])
        }
        if b"charset" in attributes:
            yield attributes[b"charset"]
        elif attributes.get(b"http-equiv", b"").lower() == b"content-type":
            yield from _CHARSET_IN_CONTENT.findall(attributes.get(b"content", b""))[:1]


def _detected(body: bytes) -> str:
    """Guess the encoding of a document without a label; default ``windows-1252``."""
    if _is_utf8(body):
        return "utf-8"
    import charset_normalizer  # noqa: PLC0415  # slow to load, and most pages have a label

    found = charset_normalizer.from_bytes(_sample(body), cp_isolation=list(_GUESSED))
    # Encodings that decode these bytes alike share one match.
    names = [_GUESSED[c] for match in found for c in match.could_be_from_charset if c in _GUESSED]
    # A short Western text fits Central European code pages as well; the web's default wins
    # wherever it is plausible at all.
    return _DEFAULT if not names or _DEFAULT in names else names[0]


def _is_utf8(body: bytes) -> bool:
    """Return whether the bytes are UTF-8, but for a few strays such as a foreign comment."""
    if body.isascii():
        return True
    text = body.decode("utf-8", "replace")
    strays = text.count("\ufffd")
    return strays == 0 or strays * 20 < len(body) - len(text)


def _sample(body: bytes) -> bytes:
    """Return the beginning, from the first informative byte, cut between characters."""
    first = next(re.finditer(rb"[\x80-\xff]", body)).start()
    sample = body[max(0, first - 64) :][:_DETECTION_BYTES]
    if len(sample) < _DETECTION_BYTES:
        return sample
    cut = max(sample.rfind(b"<"), sample.rfind(b" "), sample.rfind(b"\n"))
    return sample[:cut] if cut > 0 else sample
