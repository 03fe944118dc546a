"""Requisites of a page by its HTML and CSS: style sheets, images, fonts and scripts.

Requisites that scripts load are not found; frames are pages, and films and sounds are left out.
Every pattern here takes time in proportion to any text.
"""

import re
from collections.abc import Iterable, Iterator
from itertools import chain, islice
from typing import Final

from freshet.crawler.fetch.bounds import URL_CHARS
from freshet.crawler.reduce.links import relations
from freshet.crawler.reduce.tree import Tree
from freshet.crawler.urls import resolve_all, without_credentials

#: References that are taken from one page or style sheet, and characters of CSS that are read.
MOST: Final = 1_000
_CSS_CHARS: Final = 1 << 20

# -- style sheets ------------------------------------------------------------
# CSS Syntax 3, section 4. Names that are written with escapes, as no tool does, are not found.
_DOUBLE: Final = r'"([^"\\\n\r\f]*(?:\\.[^"\\\n\r\f]*){0,256})"?'
_SINGLE: Final = r"'([^'\\\n\r\f]*(?:\\.[^'\\\n\r\f]*){0,256})'?"
_BARE: Final = r"""([^"'()\\\s]*(?:\\.[^"'()\\\s]*){0,256})\s*+(?:\)|\Z)"""
_TOKEN: Final = re.compile(
    rf"""/\*.*?(?:\*/|\Z)
    |[@][Ii][Mm][Pp][Oo][Rr][Tt]\s*+(?:{_DOUBLE}|{_SINGLE})
    |[Uu][Rr][Ll]\(\s*+(?:{_DOUBLE}|{_SINGLE}|{_BARE})
    |([Ii][Mm][Aa][Gg][Ee]-[Ss][Ee][Tt]\()
    |[Tt][Yy][Pp][Ee]\(\s*+(?:"[^"]*+"|'[^']*+')
    |{_DOUBLE}|{_SINGLE}""",
    re.VERBOSE | re.DOTALL,
)
_IMPORT, _URL, _SET, _STRING = (1, 2), (3, 4, 5), 6, (7, 8)
_NAME: Final = re.compile(r"[\w-]")
_END: Final = re.compile(r"[;{}]")
_ESCAPE: Final = re.compile(
    r"\\(?:([0-9A-Fa-f]{1,6})(?:\r\n|[ \t\r\n\f])?|(?:\r\n|[\n\r\f])|(.))", re.DOTALL
)
_LARGEST: Final = 0x10FFFF


def css_references(css: str) -> Iterator[str]:
    """Yield the references of a style sheet, unescaped, in order."""
    set_ends_at = 0
    for token in _TOKEN.finditer(css, 0, _CSS_CHARS):
        number = token.lastindex
        if number is None:
            continue
        start = token.start()
        if number == _SET:
            if start >= set_ends_at:
                end = _END.search(css, start)
                set_ends_at = len(css) if end is None else end.start()
        # The end of another name is none of ours: "curl(".
        elif number in _IMPORT or (
            start < set_ends_at
            if number in _STRING
            else not (start and _NAME.match(css, start - 1))
        ):
            yield unescaped(token[number])


def unescaped(text: str) -> str:
    """Return the text of a string or URL without escapes (CSS Syntax 3, section 4.3.7)."""
    return _ESCAPE.sub(_meant, text) if "\\" in text else text


def _meant(escape: re.Match[str]) -> str:
    if escape[1] is None:
        return escape[2] or ""
    code = int(escape[1], 16)
    is_character = 0 < code <= _LARGEST and not 0xD800 <= code < 0xE000
    return chr(code) if is_character else "\ufffd"


# -- pages -------------------------------------------------------------------
#: Relations of links to resources that are shown with the page, not instead of it.
_RELATIONS: Final = frozenset(
    "stylesheet icon apple-touch-icon apple-touch-icon-precomposed mask-icon preload "
    "modulepreload".split()
)
#: Attributes with a reference, by element; ``data-src`` is what scripts put in the place of that.
_REFERENCES: Final = {
    "link": ("href",), "script": ("src",), "img": ("src", "data-src"), "input": ("src",),
    "video": ("poster",), "object": ("data",), "embed": ("src",),
    **dict.fromkeys(("image", "use"), ("href", "xlink:href")),
    **dict.fromkeys(("body", "table", "tr", "td", "th"), ("background",)),
}  # fmt: skip
#: Attributes with several URLs, of which the browser chooses one.
_SETS: Final = {
    "link": ("imagesrcset",), **dict.fromkeys(("img", "source"), ("srcset", "data-srcset"))
}  # fmt: skip
_READ: Final = tuple(dict.fromkeys((*_REFERENCES, *_SETS)))
#: HTML, section 4.8.4.3.10: a URL, and its descriptor of a screen, up to a comma.
_CANDIDATE: Final = re.compile(r"([^\s,]\S*)(?:(?<=,)|\s[^,(]*+(?:\([^)]*+\)?[^,(]*+){0,64},?|\Z)")


def page_requisites(tree: Tree, base: str) -> tuple[str, ...]:
    """Return the URLs, without fragments, that a page needs, those of the whole page first.

    ``base`` is what references are relative to.
    """
    # Each once, in order.
    whole, images, choices = dict[str, None](), dict[str, None](), dict[str, None]()
    styles = "\n".join(map(tree.text_of, tree.named("style")))
    whole |= dict.fromkeys(islice(css_references(styles), MOST))
    for node in sorted(chain.from_iterable(map(tree.named, _READ))):
        name, given = tree.tag(node), tree.attributes(node)
        if name == "link" and _RELATIONS.isdisjoint(relations(given)):
            continue
        into = whole if name in {"link", "script"} else images
        into |= {given[key]: None for key in _REFERENCES.get(name, ()) if key in given}
        for key in _SETS.get(name, ()):
            choices |= dict.fromkeys(islice(candidates(given.get(key, "")), MOST))
        if len(whole) + len(images) + len(choices) >= MOST:
            break
    images |= dict.fromkeys(_in_own_styles(tree))
    return resolved([*whole, *images, *choices], base)


def _in_own_styles(tree: Tree) -> Iterator[str]:
    """Return the references in the attributes ``style`` of elements."""
    styled = (tree.attribute_of(node, "style") or "" for node in tree.saying("style"))
    telling = "\n".join(style for style in styled if "url(" in style)
    return islice(css_references(telling), MOST)


def candidates(srcset: str) -> Iterator[str]:
    """Yield the references of a set of images."""
    return (found[1].rstrip(",") for found in _CANDIDATE.finditer(srcset))


def resolved(references: Iterable[str], base: str) -> tuple[str, ...]:
    """Return the URLs of http and https that references lead to, each once, without fragments."""
    given = [each for each in islice(references, MOST) if each.strip() and each.strip()[0] != "#"]
    found = (without_credentials(url) for url in resolve_all(given, base) if url is not None)
    return tuple(dict.fromkeys(url for url in found if len(url) <= URL_CHARS))
