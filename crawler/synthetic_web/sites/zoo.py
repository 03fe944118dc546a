"""A zoo of charsets, awkward links, and bodies of strange size and type."""

from __future__ import annotations

from collections.abc import Iterator

from freshet.crawler.synthetic_web.content import Link
from freshet.crawler.synthetic_web.languages import ENGLISH, GERMAN, JAPANESE, RUSSIAN, Language
from freshet.crawler.synthetic_web.resources import UTF_8, Document, Encoding, File, Head, Resource
from freshet.crawler.synthetic_web.site import Site
from freshet.crawler.synthetic_web.sites.plot import Plot

_CHARSETS: dict[str, tuple[Encoding, Language]] = {
    "/charset/windows-1252": (Encoding("cp1252", "windows-1252"), GERMAN),
    "/charset/shift-jis": (
        Encoding("shift_jis", "Shift_JIS", in_header=False, in_meta=True),
        JAPANESE,
    ),
    "/charset/utf-8-bom": (Encoding(in_header=False, mark=b"\xef\xbb\xbf"), JAPANESE),
    "/charset/utf-16": (
        Encoding("utf-16-le", "utf-16", in_header=False, mark=b"\xff\xfe"),
        GERMAN,
    ),
    "/charset/koi8-r": (Encoding("koi8_r", "koi8-r", in_header=False), RUSSIAN),
}
#: Spellings that lead to a page, and its target in the spelling of the URL standard.
_SPELLINGS = {
    "relative": "/links/relative",
    "./dotted": "/links/dotted",
    "../above": "/above",
    "/x/./y/../z": "/x/z",
    "//{authority}/no-scheme": "/no-scheme",
    "HTTP://{AUTHORITY}/Loud": "/Loud",
    "?only=query": "/links/?only=query",
    "/with-fragment#part": "/with-fragment",
    "  /surrounded-by-space\n": "/surrounded-by-space",
    "/with space/inside": "/with%20space/inside",
    "/tab\tand\nbreak": "/tabandbreak",
    "\\back\\slash": "/back/slash",
    "/entities?a=1&b=2": "/entities?a=1&b=2",
    "/%7Euser/percent%2Dencoded": "/%7Euser/percent%2Dencoded",
    "/straße/日本": "/stra%C3%9Fe/%E6%97%A5%E6%9C%AC",
    "/query?q=ü ä": "/query?q=%C3%BC%20%C3%A4",
    "/double//slash/": "/double//slash/",
    "/" + "long-" * 300 + "path": "/" + "long-" * 300 + "path",
}
#: References that lead to no page.
_DEAD_ENDS = (
    "javascript:void(0)",
    "mailto:zoo@example.org",
    "tel:+4912345",
    "data:text/html,hello",
    "JavaScript:alert(1)",
    "http://",
    "http://[broken/",
)
_PIXEL = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010802000000907753de0000000c4944415408d763f8"
    "cfc0000003010100c9fe92ef0000000049454e44ae426082"
)
_FILES = {
    "/files/pixel.png": File("image/png", _PIXEL),
    "/files/paper.pdf": File("application/pdf", b"%PDF-1.4\n%%EOF\n"),
    "/files/readme.txt": File("text/plain; charset=utf-8", b"Nothing but text.\n"),
    "/files/empty": File("text/html; charset=utf-8", b""),
}


def zoo(plot: Plot) -> Site:
    """robots.txt is a 404. The large page has some 400 kB."""
    resources: dict[str, Resource] = {
        **{
            target: _zoo_page(plot, target, language, encoding=encoding, edits_per_day=0.3)
            for target, (encoding, language) in _CHARSETS.items()
        },
        **{target: _zoo_page(plot, target) for target in _SPELLINGS.values()},
        **_FILES,
        "/large": _zoo_page(plot, "/large", paragraphs=1600),
        "/untitled": _zoo_page(plot, "/untitled", titled=False),
        "/links/": Document(
            history=plot.story("links", title="Awkward links", links=tuple(_awkward(plot))),
            born_at=plot.earlier("links"),
        ),
    }
    listed = [*_CHARSETS, *_FILES, "/large", "/untitled", "/links/"]
    home = plot.story("home", title="Zoo", links=[plot.link(target, target) for target in listed])
    resources["/"] = Document(history=home, born_at=plot.earlier("home"))
    return Site(
        name=plot.name,
        title="Zoo",
        resources=resources,
        frame=plot.frame(0.1, plot.link("Home", "/")),
    )


def _awkward(plot: Plot) -> Iterator[Link]:
    for n, (href, target) in enumerate(_SPELLINGS.items()):
        yield Link(f"Animal {n}", plot.place(target), href=href)
    yield Link("Top of this page", plot.place("/links/"), href="#top")
    yield Link("This page", plot.place("/links/"), href="")
    for href in _DEAD_ENDS:
        yield Link("No animal", None, href=href)


def _zoo_page(
    plot: Plot,
    target: str,
    language: Language = ENGLISH,
    *,
    edits_per_day: float = 0.0,
    paragraphs: int = 5,
    encoding: Encoding = UTF_8,
    titled: bool = True,
) -> Document:
    edits = plot.edits(target, edits_per_day)
    story = plot.story(target, language=language, paragraphs=paragraphs, edits=edits)
    return Document(
        history=story, born_at=plot.earlier(target), encoding=encoding, head=Head(titled=titled)
    )
