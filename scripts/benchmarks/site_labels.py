"""Changes of a recorded site's pages, by an extractor that is not the crawler's own.

The text of a version is that of its ``main`` element, else of the element with that role, of a
single ``article``, or of the body; without frames, forms and scripts, line by line. Lines that say
when a page was made do not count, nor do those that stand on three tenths of the pages, or that
came (went) on a fifth of them at one time: they are the site's, not the page's. What is left of two
versions is compared by its sequences of four words.
"""

from __future__ import annotations

import re
import sqlite3
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from selectolax.lexbor import LexborHTMLParser, LexborNode

if TYPE_CHECKING:
    from scripts.benchmarks.recorded_web import Recording

#: Versions that resemble each other by so much at most differ in what they say.
SIGNIFICANT: Final = 0.98
_SHARE_OF_FRAME: Final = 0.3
_SHARE_AT_ONCE: Final = 0.2
_LEAST_PAGES: Final = 4
_LEAST_WORDS: Final = 20
_SHINGLE: Final = 4
#: A large site takes minutes.
_PATIENCE_S: Final = 3_600.0
_NO_TEXT: Final = (
    "script", "style", "template", "noscript", "nav", "header", "footer", "aside", "form", "head",
    "svg", "iframe",
)  # fmt: skip
_STAMP: Final = re.compile(
    r"\$Date|\$Revision|last (updated|modified|published|changed)|copyright|©"
    r"|^(page )?(updated|modified|published|revised|generated|built)\b",
    re.IGNORECASE,
)
_WORD: Final = re.compile(r"\w+")
_CHARSET: Final = re.compile(rb"charset=[\"']?([\w-]+)", re.IGNORECASE)


def lines_of(body: bytes) -> Sequence[str]:
    """The lines of a page's main text."""
    root = _root(LexborHTMLParser(_decoded(body)))
    if root is None:
        return ()
    for name in _NO_TEXT:
        for node in root.css(name):
            if node.mem_id != root.mem_id:
                node.decompose()
    lines = (" ".join(line.split()) for line in root.text(separator="\n").split("\n"))
    return tuple(line for line in lines if _WORD.search(line) and not _STAMP.search(line))


def _decoded(body: bytes) -> str:
    named = _CHARSET.search(body[:2048])
    try:
        return body.decode(named[1].decode() if named else "utf-8", "replace")
    except LookupError:
        return body.decode("utf-8", "replace")


def _root(tree: LexborHTMLParser) -> LexborNode | None:
    articles: list[LexborNode] = tree.css("article")
    named: list[LexborNode] = [*tree.css("main")[:1], *tree.css("[role=main]")[:1]]
    some = [*named, *(articles if len(articles) == 1 else ())]
    told = (it for it in some if len(it.text(separator=" ").split()) > _LEAST_WORDS)
    found: LexborNode | None = next(told, tree.body)
    return found


def _shingles(lines: Iterable[str]) -> tuple[Sequence[str], set[tuple[str, ...]]]:
    words = _WORD.findall(" ".join(lines).lower())
    count = max(1, len(words) - _SHINGLE + 1) if words else 0
    return words, {tuple(words[k : k + _SHINGLE]) for k in range(count)}


def resemblance(old: Sequence[str], new: Sequence[str]) -> float:
    """How much two texts resemble each other; the same lines in another order do entirely."""
    (one, before), (other, after) = _shingles(old), _shingles(new)
    if one == other or set(old) == set(new):
        return 1.0
    return len(before & after) / max(1, len(before | after))


@dataclass(slots=True)
class _Site:
    """The pages of a site at one time: the lines of each, and on how many pages each line is."""

    pages: dict[int, Sequence[str]] = field(default_factory=dict)
    standing: Counter[str] = field(default_factory=Counter)

    def take(self, new: dict[int, Sequence[str] | None]) -> Iterator[tuple[int, float]]:
        """Take in a state of some pages, None: gone; yield how those changed resemble the old."""
        before = {page: self.pages[page] for page in new if page in self.pages}
        came, went = Counter[str](), Counter[str]()
        for page, lines in new.items():
            if page in before and lines is not None:
                came.update(set(lines) - set(before[page]))
                went.update(set(before[page]) - set(lines))
            self._put(page, lines)
        frame = max(_LEAST_PAGES, _SHARE_OF_FRAME * len(self.pages))
        at_once = max(_LEAST_PAGES, _SHARE_AT_ONCE * len(self.pages))

        def own(lines: Sequence[str], moved: Counter[str]) -> Sequence[str]:
            return [it for it in lines if self.standing[it] < frame and moved[it] < at_once]

        for page, old in before.items():
            lines = new[page]
            if lines is not None and lines != old:
                yield page, resemblance(own(old, went), own(lines, came))

    def _put(self, page: int, lines: Sequence[str] | None) -> None:
        self.standing.subtract(set(self.pages.pop(page, ())))
        if lines is not None:
            self.pages[page] = lines
            self.standing.update(set(lines))


def changes(site: Recording) -> dict[int, list[float]]:
    """The times of the changes of each page; they are kept in the recording's own file."""
    # Of two benchmarks that begin at once, one finds them, and the other waits.
    with sqlite3.connect(site.path, timeout=_PATIENCE_S) as connection:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("CREATE TABLE IF NOT EXISTS independent (page, time)")
        if connection.execute("SELECT 1 FROM independent").fetchone() is None:
            connection.executemany("INSERT INTO independent VALUES (?, ?)", _found(site))
        found = defaultdict[int, list[float]](list)
        for page, at in connection.execute("SELECT page, time FROM independent ORDER BY time"):
            found[page].append(at)
    connection.close()
    return found


def _found(site: Recording) -> Iterator[tuple[int, float]]:
    states = defaultdict[float, dict[int, int | None]](dict)
    for page in site.pages:
        for version in site.versions[page]:
            states[version.at][page] = version.blob
    now = _Site()
    for at, blobs in sorted(states.items()):
        new = {
            page: None if blob is None else lines_of(site.body(blob))
            for page, blob in sorted(blobs.items())
        }
        for page, alike in now.take(new):
            if alike <= SIGNIFICANT:
                yield page, at
