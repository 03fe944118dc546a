"""Kinds of change: in what two versions of a page differ, as its documents show it.

Each channel of a version (its words, links, images, states, and the delivered document as a whole)
is a few digests. They are stored with the version. The digests of two versions give the kinds of
change between them: any difference of two documents that is not noise is in at least one kind.
Times at which the page was shown, default-ignorable characters, and session ids in URLs are noise.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass, fields, replace
from functools import lru_cache
from hashlib import blake2b
from html import unescape
from itertools import chain, zip_longest
from operator import attrgetter
from struct import Struct
from types import MappingProxyType
from typing import Final, NamedTuple
from unicodedata import normalize

import numpy as np

from freshet.crawler.reduce.blocks import compared
from freshet.crawler.reduce.boilerplate import Verdicts, are_stamps
from freshet.crawler.reduce.document import DOCUMENT_VERSION, Document, MadeDocument, content_of
from freshet.crawler.reduce.formats import format_of
from freshet.crawler.reduce.pieces import HEADINGS, Piece
from freshet.crawler.reduce.tree import NO_HINTS, PLACES, SelectorHints, Tree
from freshet.crawler.urls import canonical, is_session
from freshet.storage.entries import Channel

#: Raise it with every change that gives other digests of some document.
_VERSION: Final = 1


@dataclass(frozen=True, slots=True)
class Channels:
    """Digests of the channels of one version, 64 bits each.

    ``made`` names the method that made them: digests of different methods are not compared.
    ``texts`` is of the texts of paragraphs, items and cells in any order, ``words`` of all words in
    their order; so are ``targets`` and ``links``, ``pictures`` and ``images``, and, of controls and
    numbers of items, ``settings`` and ``states``. ``shape`` is of all that is delivered without
    noise; ``html`` and ``markdown`` are of both forms with it.
    """

    made: int
    texts: int
    words: int
    targets: int
    links: int
    pictures: int
    images: int
    settings: int
    states: int
    shape: int
    html: int
    markdown: int

    def to_bytes(self) -> bytes:
        """Return the digests one after another."""
        return _ALL.pack(*astuple(self))

    @classmethod
    def from_bytes(cls, data: bytes | None) -> "Channels | None":
        """Return what :meth:`to_bytes` wrote; None of bytes of another length."""
        return cls(*_ALL.unpack(data)) if data is not None and len(data) == _ALL.size else None


_ALL: Final = Struct("<12Q")
_NAMES: Final = tuple(each.name for each in fields(Channels))
_DIGESTS: Final = attrgetter(*_NAMES)
#: Channels that differ along with another one, and then add no information: if texts change places,
#: so do the links, images and controls in them.
_CARRIED: Final = (
    ("words", frozenset({"links", "images", "states"})),
    ("pictures", frozenset({"images"})),
    ("html", frozenset({"markdown"})),
)
#: Channels, and their kinds of change; texts and words give theirs together.
_KINDS: Final[Sequence[tuple[str, Channel]]] = (
    ("targets", "links"),
    ("links", "links"),
    ("pictures", "images"),
    ("images", "order"),
    ("settings", "state"),
    ("states", "state"),
)
#: Channels that show a change of no other kind.
_OF_LAYOUT: Final = frozenset({"shape", "markdown"})


def kinds_of(old: Channels, new: Channels) -> frozenset[Channel]:
    """Return the kinds of change between two versions of a page; the digests were made alike."""
    pairs = zip(_NAMES, _DIGESTS(old), _DIGESTS(new), strict=True)
    differing = {name for name, before, now in pairs if before != now}
    for name, others in _CARRIED:
        if name in differing:
            differing -= others
    found: set[Channel] = {kind for name, kind in _KINDS if name in differing}
    if "words" in differing:
        found |= {"words" if "texts" in differing else "order"}
    return frozenset(found or ({"layout"} if differing & _OF_LAYOUT else ()))


def channels(
    body: bytes,
    url: str,
    content_type: str | None,
    *,
    hints: SelectorHints = NO_HINTS,
    deepest: int | None = None,
    other: bytes | None = None,
) -> Channels:
    """Return the channels of a page; arguments and errors are those of :func:`.document`.

    ``other`` has the bytes of another version's channels: an equal document is not read.
    """
    content = content_of(body, url, content_type, hints=hints, deepest=deepest)
    return channels_of(content, made_by(hints), Channels.from_bytes(other))


def made_by(hints: SelectorHints) -> int:
    """Name the way in which channels are made of a site's pages with these selectors."""
    return _digest([str(_VERSION), DOCUMENT_VERSION, repr((hints.include, hints.ignore))])


def channels_of(content: MadeDocument, made: int, other: Channels | None = None) -> Channels:
    """Return the channels of a document, with the tree and the pieces that it was made of.

    ``other`` are another version's.
    """
    document, tree, pieces = content
    moments = {} if tree is None else _moments(tree)
    said, states = _said(document), [] if tree is None else _states(tree, pieces)
    html = _digest([*said, document.html])
    if other is not None and (other.made, other.html) == (made, html) and not moments:
        return replace(
            other,
            settings=_digest(sorted(state for _, state in states)),
            states=_digest(f"{choice} {state}" for choice, state in states),
            markdown=_digest(document.blocks),
        )
    read = _Reading(document.html, moments)
    return Channels(
        made=made,
        texts=_digest(sorted(read.texts)),
        # A word is the text between spaces.
        words=_digest(["\0".join(read.texts).replace(" ", "\0")]),
        targets=_digest(sorted(read.targets)),
        links=_digest(read.targets),
        pictures=_digest(sorted(read.pictures)),
        images=_digest(read.pictures),
        settings=_digest(sorted(state for _, state in states)),
        states=_digest(f"{choice} {state}" for choice, state in states),
        shape=_digest([*said, *read.shape]),
        html=html,
        markdown=_digest(document.blocks),
    )


def _said(document: Document) -> list[str]:
    """Return the metadata of a document's page."""
    about = (document.title, document.description, document.language, document.author)
    return [each or "" for each in (*about, document.published_at, document.canonical_url)]


def _digest(parts: Iterable[str]) -> int:
    """Return a 64-bit digest of texts without NUL."""
    octets = "\0".join(parts).encode("utf-8", "surrogatepass")
    return int.from_bytes(blake2b(octets, digest_size=8).digest())


# -- from the bytes --------------------------------------------------------------

_TAG: Final = re.compile(rb"</?([a-zA-Z][\w-]*)([^<>]*)>")
#: Elements that, without attributes, only contain words: the words show whether one is there.
_OF_WORDS: Final = frozenset(
    b"p br li ul div span section article table tbody thead tfoot tr td th caption dl dt dd "
    b"b strong i em u s small mark big font sup sub abbr cite q dfn code kbd samp tt var pre "
    b"blockquote h1 h2 h3 h4 h5 h6 hr center wbr".split()
)
#: Elements with a state as the text between their tags.
_OF_STATES: Final = frozenset({b"option", b"textarea", b"title"})
#: Where more differs, both documents are made.
_MOST_DIFFERING: Final = 65_536


def have_same_tags(old: tuple[bytes, str | None], new: tuple[bytes, str | None]) -> bool:
    """Return whether two versions, with their types, differ in words alone.

    All links, images and controls between the first and the last difference are then the same, in
    the same order. A paragraph may have been added or removed. The check takes a hundredth of the
    time of making the documents; False means that they have to be made.
    """
    (before, kind), (after, label) = old, new
    if kind != label or format_of(kind).is_binary:
        return False
    start = _equal(before, after, 1)
    start = max(0, before.rfind(b"<", 0, start))
    end = min(_equal(before, after, -1), len(before) - start, len(after) - start)
    # What remains ends behind a tag, which is the same one in both.
    behind = before.find(b">", len(before) - end)
    end = 0 if behind < 0 else len(before) - behind - 1
    middles = before[start : len(before) - end], after[start : len(after) - end]
    if max(map(len, middles)) > _MOST_DIFFERING or any(b"\0" in each for each in middles):
        return False
    gone, come = map(_telling, middles)
    return gone == come and _OF_STATES.isdisjoint(name.lower() for name, _ in come)


def _telling(markup: bytes) -> list[tuple[bytes, bytes]]:
    """Return the names and attributes of the tags that have more than words."""
    tags = _TAG.findall(markup)
    return [tag for tag in tags if tag[1] or tag[0].lower() not in _OF_WORDS]


def _equal(before: bytes, after: bytes, step: int) -> int:
    """Count the equal bytes from the beginning (step 1) or from the end (step -1)."""
    shorter = min(len(before), len(after))
    left, right = (np.frombuffer(each, np.uint8)[::step][:shorter] for each in (before, after))
    differ = left != right
    first = int(differ.argmax()) if shorter else 0
    return first if shorter and differ[first] else shorter


# -- words, links and images, from the document's HTML ---------------------------

#: Tags that end a text; all others are inside of texts.
_ENDING: Final = (
    *HEADINGS, *"p ul ol dl li dt dd table tr td th caption pre blockquote figcaption hr".split()
)  # fmt: skip
_ENDS: Final = re.compile(f"(</?(?:{'|'.join(_ENDING)})(?: [^>]*)?>)")
_PARTS: Final = re.compile(r"<(/?)([a-z0-9]+)([^>]*)>|([^<]+)")
_VALUES: Final = re.compile(r'([a-z]+)="([^"]*)"')
#: Characters in the place of boxes that are ticked or not: states, no words.
_BOXES: Final = str.maketrans("", "", "☐☑")


class _Run(NamedTuple):
    """A run between two tags that end texts: its text, targets, images, and shape.

    A stamp has no text and no shape.
    """

    text: str
    targets: Sequence[str]
    pictures: Sequence[str]
    shape: Sequence[str]


class _Reading:
    """The texts of a document, the targets of its links, its images, and its shape.

    ``moments`` has texts that only give the time at which the page was shown, with their values.
    """

    def __init__(self, html: str, moments: Mapping[str, str]) -> None:
        parts = _ENDS.split(html)
        runs = _runs(parts[::2], moments) if moments else _RUNS.of(parts[::2])
        self.texts = [run.text for run in runs if run.text]
        self.targets = [target for run in runs for target in run.targets]
        self.pictures = [picture for run in runs for picture in run.pictures]
        shapes = zip_longest([run.shape for run in runs], zip(parts[1::2]), fillvalue=())
        self.shape = [*chain.from_iterable(chain.from_iterable(shapes))]


def _runs(contents: Sequence[str], moments: Mapping[str, str] = MappingProxyType({})) -> list[_Run]:
    """Read the markup between tags that end texts."""
    said = _Words(moments)
    runs = [said.run(each) if each else _EMPTY for each in contents]
    stamps = are_stamps([run.text for run in runs])
    return [
        run._replace(text="", shape=()) if is_stamp and run.text else run
        for run, is_stamp in zip(runs, stamps, strict=True)
    ]


_EMPTY: Final = _Run("", (), (), ())
#: Cached, because both versions of a page have nearly all of them.
_RUNS: Final = Verdicts(_runs, each=600)


def _without_boxes(text: str) -> str:
    return " ".join((text if text.isascii() else text.translate(_BOXES)).split())


class _Words:
    """Reader of the markup in a text; ``moments`` as in :class:`_Reading`."""

    def __init__(self, moments: Mapping[str, str]) -> None:
        self._moments = moments
        shown = sorted(map(re.escape, moments), key=len, reverse=True)
        self._shown = re.compile("|".join(shown)) if moments else None

    def run(self, html: str) -> _Run:
        """Read a text with its inline markup."""
        if "<" not in html:
            shown = self._words(unescape(html))
            return _Run(_without_boxes(shown), (), (), (shown,))
        words, targets, pictures, shape = list[str](), list[str](), list[str](), list[str]()
        for ends, name, values, text in _PARTS.findall(html):
            if text:
                shown = self._words(unescape(text))
                words.append(shown)
                shape.append(shown)
                continue
            if name == "br":
                words.append(" ")
            said = "" if ends else self._values(name, values, targets, pictures)
            shape.append(f"<{ends}{name}{said}>")
        return _Run(_without_boxes("".join(words)), targets, pictures, shape)

    def _words(self, text: str) -> str:
        if self._shown is not None:
            text = self._shown.sub(lambda found: self._moments[found[0]], text)
        return text if text.isascii() else normalize("NFC", compared(text))

    def _values(self, name: str, values: str, targets: list[str], pictures: list[str]) -> str:
        """Return the attributes of an element for its shape; add its references."""
        if not values:
            return ""
        said = {key: unescape(value) for key, value in _VALUES.findall(values)}
        if name == "a":
            targets.append(target := target_of(said["href"]))
            return f" {target}"
        if name == "img":
            pictures.append(image := f"{target_of(said['src'])} {self._words(said['alt'])}")
            return f" {image}"
        return values


@lru_cache(maxsize=4096)
def target_of(url: str) -> str:
    """Return the target of a link or an image: a canonical URL, and the place in the page.

    Left out are parameters that are others for each visitor or at each visit: sessions, signatures,
    and what keeps a cache from answering.
    """
    address, mark, place = url.partition("#")
    try:
        address = canonical(address)
    except ValueError:
        return url
    head, _, query = address.partition("?")
    kept = [each for each in query.split("&") if each and not _is_passing(each)]
    return head + "?" * bool(kept) + "&".join(kept) + mark + place


def _is_passing(parameter: str) -> bool:
    name, _, value = parameter.partition("=")
    if _PASSING.fullmatch(name) or is_session(name, value):
        return True
    return bool(_BUSTER.fullmatch(name) and (not value or _MOMENT_OR_DIGEST.fullmatch(value)))


#: Names of signed URLs (Amazon, Google, Azure, Akamai, Meta) and of tokens of forms.
_PASSING: Final = re.compile(
    r"x-(?:amz|goog)-\w[\w-]*|awsaccesskeyid|googleaccessid|key-pair-id|signature|hdn[a-z]+|"
    r"expires?|sig|se|_nc_\w+|oh|oe|nonce|_wpnonce|csrf(?:[-_]?token)?|_token",
    re.IGNORECASE,
)
#: Names that keep a cache from answering where their value is a moment, a digest or a number.
_BUSTER: Final = re.compile(
    r"_|v|ver|version|t|ts|time|timestamp|cb|cache|cache-?bust(?:er)?|nocache|r|rnd|rand|random",
    re.IGNORECASE,
)
_MOMENT_OR_DIGEST: Final = re.compile(r"\d{9,}|0?\.\d{6,}|(?=.*\d)[0-9a-fA-F]{8,}")


_MOMENT: Final = re.compile(r"\s*\d{4}-\d\d.*", re.DOTALL)


def _moments(tree: Tree) -> dict[str, str]:
    """Return the texts of ``time`` elements with their moments."""
    found = dict[str, str]()
    for node in tree.named("time"):
        value = tree.attribute_of(node, "datetime") or ""
        text = " ".join(tree.text_of(node).split())
        if text and _MOMENT.fullmatch(value):
            found.setdefault(text, value.strip())
    return found


# -- states, from the tree -------------------------------------------------------

_STATEFUL: Final = frozenset("input option progress meter ol li".split())
#: What a reader chooses among.
_CHOICES: Final = ("input", "option")
#: Attributes with a state; any element may have those of ARIA.
_STATES: Final = (
    *("checked", "selected", "disabled", "value", "start", "reversed"),
    *("aria-checked", "aria-selected", "aria-pressed", "aria-valuenow", "aria-disabled"),
)
#: Inputs with a value that is not a state: tokens, secrets, and the words on buttons.
_MUTE: Final = frozenset("hidden password submit button reset image file".split())
_FRAME: Final = PLACES["frame"] | PLACES["nav"] | PLACES["footer"]


def _states(tree: Tree, pieces: Sequence[Piece]) -> list[tuple[int, str]]:
    """Return the states of controls and the numbers of items, from the first piece to the last.

    Each follows the number of choices up to it, chosen or not.
    """
    if not pieces:
        return []
    begin, end = _span(tree, pieces[0], pieces[-1])
    told = chain(map(tree.saying, _STATES), map(tree.named, _CHOICES))
    nodes = {node for some in told for node in some if begin <= node < end}
    found, choices = list[tuple[int, str]](), 0
    for node in sorted(nodes):
        if tree.place[node] & _FRAME:
            continue
        kind = (tree.attribute_of(node, "type") or "").lower()
        choices += tree.tag(node) == "option" or kind in {"checkbox", "radio"}
        if state := _state(tree, node):
            found.append((choices, state))
    return found


def _span(tree: Tree, first: Piece, last: Piece) -> tuple[int, int]:
    """Return where the content begins and ends in a tree, with the blocks of runs of text."""
    begin = first.holder if first.kind == "p" else first.nodes[0]
    return begin, tree.end[last.holder if last.kind == "p" else last.nodes[-1]]


def _state(tree: Tree, node: int) -> str:
    """Return the attributes with the state of an element, and the text of an option."""
    tag, said = tree.tag(node), tree.attributes(node)
    told: dict[str, str] = {name: said[name] for name in _STATES if name in said}
    if tag not in _STATEFUL:
        told = {name: value for name, value in told.items() if name.startswith("aria-")}
    elif tag == "option":
        told = {name: "" for name in ("selected", "disabled") if name in told}
        told |= {"text": " ".join(tree.text_of(node).split())} if told else {}
    elif tag == "input":
        if said.get("type", "text").lower() in _MUTE:
            return ""
        told |= {name: "" for name in ("checked", "disabled") if name in told}
    return " ".join(map("=".join, told.items()))
