"""The signs of a page that may be a block page, and the judgement on it."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sized
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from itertools import islice
from typing import Final, TypeAlias

from selectolax.lexbor import LexborDocumentOptions, LexborHTMLParser, LexborNode, SelectolaxError

from freshet.crawler.compare.not_content.cues import MOST_BYTES, is_little, length, may_wait, tells
from freshet.crawler.reduce.blocks import Blocks
from freshet.crawler.reduce.boilerplate import is_frame_name, is_frame_role, is_hidden
from freshet.crawler.reduce.page import markup_of
from freshet.crawler.reduce.sketch import Sketch, resemblance
from freshet.crawler.reduce.tree import is_calm
from freshet.crawler.robots import parse_directives

# -- signs -------------------------------------------------------------------
# Only short pages are worth the second parse. Its input is bounded for any body: bytes, elements,
# characters of text and of script.

_MOST_ELEMENTS: Final = 4_000
_MOST_TEXT: Final = 12_000
_MOST_SCRIPT: Final = 8_000
_MOST_NAMES: Final = 300

_OPTIONS: Final = LexborDocumentOptions.WO_EVENTS.value
_INLINE: Final = frozenset(
    "a abbr b bdi bdo big cite code data del dfn em font i img ins kbd mark nobr q s samp small "
    "span strike strong sub sup time tt u var wbr".split()
)
_UNSEEN: Final = frozenset(
    "script style template svg canvas audio video object embed head title option datalist "
    "-comment -doctype".split()
)
_FRAME: Final = frozenset({"nav", "aside", "menu", "footer", "header"})
_HEADINGS: Final = frozenset({"h1", "h2", "h3", "h4", "legend"})
_CONTROLS: Final = frozenset({"button", "label", "select", "textarea"})
#: Frames by names of their position on the page, in some languages.
_EDGE: Final = re.compile(
    r"^(?:top|head|header|kopf|foot|footer|fuss|fuß|bottom|hd|ft|pie|piede|pied|rodape|stopka|"
    r"naglowek|cabecera|cabecalho|testata|menu\w*|sidebar|seitenleiste|lateral|sidfot|sidhuvud|"
    r"kop|voet|copyright|legal|impressum)$",
    re.IGNORECASE,
)
_OVERLAY: Final = re.compile(r"cookie|consent|gdpr|cmp|modal|dialog|overlay|gate|wall", re.I)
_TEXT_INPUTS: Final = frozenset({"text", "email", "tel", "number", "date", "url"})
_SECRET: Final = re.compile(
    r"pass|pwd|senha|kennwort|clave|haslo|passwd|pin$|otp|parol|losen", re.I
)
_STATUS: Final = re.compile(
    r"""["']?(?:status_?code|status|code)["']?\s*[:=]\s*["']?([45]\d\d)\b""", re.I
)
_HEX: Final = re.compile(r"\\x([0-9a-fA-F]{2})")
_DELAY: Final = re.compile(r"\s*(\d{1,6})")
#: Ids of the element into which a framework builds the page, as their starters name it.
_ROOTS: Final = re.compile(
    r"^(?:_*(?:next|nuxt|gatsby|layout|docusaurus)|(?:react-?|vue-?|js-?)?(?:app|root)|"
    r"(?:app|main|page)-?(?:root|app|mount|container)|q-app|svelte|elm|ember-?app|"
    r"mount(?:-?point)?|target)$",
    re.IGNORECASE,
)
#: Elements that are filled beside the content of a page, whether scripts build that or not.
_PART: Final = re.compile(
    r"(?:^|[-_])(?:nav|navi|navbar|navigation|menu|menus|header|footer|side-?bar|toc|bread-?crumbs?"
    r"|search|banner|ads?|cookies?|cart|chat|comments?|share|social|toolbar|tooltip|modal|dialog"
    r"|overlay|toast|notifications?|player|map)(?:$|[-_])",
    re.IGNORECASE,
)
#: Elements of a page's own, or of ReDoc.
_CUSTOM: Final = re.compile(r"<([a-z][a-z0-9]*-[a-z0-9-]+|redoc)[\s>]")
#: Elements that a program may fill: any with an id that is still empty.
_STAGES: Final = "body :is(div, main, section, pre, span)[id]"
_FILMS: Final = "iframe, frame, video, audio, object, embed"
_MEDIA: Final = f"img, svg text, canvas, input, {_FILMS}"
#: Texts of a page while scripts build it, or without scripts: short, on JavaScript, or names.
_WAITS: Final = re.compile(
    r"^\W*(?:now )?(?:loading|please wait|one moment|initiali[sz]ing|starting|lade|laden|"
    r"wird geladen|chargement|cargando|caricamento|carregando|загрузка|wczytywanie|ładowanie|"
    r"laddar|加载|正在加载|読み込み|ロード)(?:\W+\w+){0,3}\W*$"
    r"|^(?=.*javascript).*(?:enabl|activ|ativ|attiv|requir|need|without|turn|aktiv|benötig|"
    r"habilit|inschakel|включ|włącz|启用|有効)"
    r"|^(?:[^\w{}]*\{\{[^{}]*\}\})+[^\w{}]*$|^An unhandled error has occurred\.\s*Reload\W*$",
    re.IGNORECASE | re.DOTALL,
)
#: What React leaves to the browser.
_LEFT_OUT: Final = "template[data-dgst]"
_MOST_ROOTS: Final = 8
#: Shorter scripts build no page.
_PROGRAM: Final = 100


@dataclass(slots=True)
class PageSigns:
    """Facts about a page's markup; without arguments, about a page that cannot be read.

    ``headings``, ``texts``, ``linked`` (only links) and ``controls`` (buttons, labels,
    placeholders) are of the main part, ``frame_words`` is the number of words around it.
    ``names`` are ids, classes and attributes that carry a name, ``addresses`` the targets of
    frames, scripts, pictures and forms; ``hidden`` the values of hidden fields;
    ``statuses`` HTTP errors that a script states; ``refresh_s`` a meta refresh, in seconds;
    ``refreshes_to_check``: it leads to a check of visitors (:func:`is_check`).
    ``codes`` counts elements of preformatted text.
    ``programs`` has the addresses of scripts that run, ``module`` or ``inline`` for inline ones;
    ``roots`` has elements into which frameworks build a page, and whether they are empty yet;
    ``unscripted`` is the text of all ``noscript`` elements.
    ``is_all_frame``: all ``texts`` are the frame's. ``media`` counts pictures, and twice films and
    embedded pages. ``is_whole``: no limit has cut the page short.
    """

    language: str = ""
    headings: list[str] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    linked: list[str] = field(default_factory=list)
    controls: list[str] = field(default_factory=list)
    noscript: str = ""
    frame_words: int = 0
    form_count: int = 0
    passwords: int = 0
    fields: int = 0
    long_fields: int = 0
    iframes: int = 0
    elements: int = 0
    names: list[str] = field(default_factory=list)
    addresses: list[str] = field(default_factory=list)
    hidden: list[str] = field(default_factory=list)
    scripts: str = ""
    statuses: frozenset[int] = frozenset()
    noindex: bool = False
    refresh_s: float | None = None
    refreshes_to_check: bool = False
    codes: int = 0
    programs: list[str] = field(default_factory=list)
    roots: dict[str, bool] = field(default_factory=dict)
    unscripted: str = ""
    is_all_frame: bool = False
    media: int = 0
    is_whole: bool = False

    def lacks(self, *said: Sized) -> bool:
        """Return whether all of these are empty, and would not be if more of the page were read."""
        return self.is_whole and not any(map(len, said))


def read_signs(body: bytes, content_type: str | None) -> PageSigns:
    """Read the signs of an HTML page; of a longer body only the first 64 KiB.

    A body that would be costly to parse has no signs: block pages are simple.
    """
    signs, is_short, body = PageSigns(), len(body) <= MOST_BYTES, body[:MOST_BYTES]
    if not is_calm(body):
        return signs
    text = markup_of(body, content_type).decode()
    try:
        tree = LexborHTMLParser(text, options=_OPTIONS)
    except SelectolaxError:
        return signs
    if tree.body is not None:
        for error in tree.css("#blazor-error-ui"):
            error.decompose()  # a style sheet hides it
        _read_head(tree, signs)
        signs.is_whole = _Body(signs).walk(tree.body) and is_short
        _read_stage(tree, text, signs)
    return signs


def _read_head(tree: LexborHTMLParser, signs: PageSigns) -> None:
    """Read the head, and the scripts at any place."""
    root = tree.root
    if root is not None:
        signs.language = (root.attributes.get("lang") or "").strip()[:16]
    for meta in tree.css("meta")[:100]:
        _read_meta(meta.attributes, signs)
    codes: list[str] = []
    left = _MOST_SCRIPT
    for script in tree.css("script")[:60]:
        source, kind = script.attributes.get("src"), script.attributes.get("type") or ""
        code = "" if source else script.text()
        if source:
            _note(signs.addresses, source)
        elif left > 0:
            codes.append(code[:left])
            left -= len(codes[-1])
        if not kind or "javascript" in kind or kind == "module":
            is_module = kind == "module" or "import(" in code
            inline = "module" if is_module else "inline" * (len(code) >= _PROGRAM)
            _note(signs.programs, source or inline)
    signs.scripts = _HEX.sub(lambda m: chr(int(m[1], 16)), " ".join(codes))
    signs.statuses = frozenset(map(int, _STATUS.findall(signs.scripts)))


def says_nothing(text: str) -> bool:
    """Return whether a text is empty, or only there until scripts have built the page."""
    return not text.strip() or _WAITS.search(text) is not None


def _text_in(node: LexborNode) -> str:
    text = node.text(deep=True)
    for unseen in node.css("script, style, noscript")[:60]:
        text = text.replace(unseen.text(deep=True), "", 1)
    return text


def _empty_stages(tree: LexborHTMLParser) -> Iterator[str]:
    """Yield the empty elements among the first named ones, without parts of a frame."""
    stages = (node for node in tree.css(_STAGES) if not _PART.search(node.id or ""))
    for node in islice(stages, _MOST_ROOTS):
        if says_nothing(_text_in(node)) and not node.css_first(_MEDIA):
            yield f"#{node.id}"


def is_root(name: str) -> bool:
    """Return whether frameworks name the place like this where they build a page."""
    return name[0] == "<" or bool(_ROOTS.match(name[1:]))


def _read_stage(tree: LexborHTMLParser, text: str, signs: PageSigns) -> None:
    """Read the places where scripts may build the page, and its media."""
    for node in tree.css("body [id]")[:300]:
        if _ROOTS.match(node.id or "") and len(signs.roots) < _MOST_ROOTS:
            signs.roots[f"#{node.id}"] = says_nothing(_text_in(node))
    for name in _empty_stages(tree):
        signs.roots.setdefault(name, True)
    for tag in list(dict.fromkeys(_CUSTOM.findall(text)))[:_MOST_ROOTS]:
        if first := tree.css_first(f"body {tag}"):
            signs.roots[f"<{tag}>"] = says_nothing(_text_in(first))
    if tree.css_first(_LEFT_OUT):
        signs.roots[f"<{_LEFT_OUT}>"] = True
    signs.unscripted = " ".join(
        " ".join(node.text(deep=True).split()) for node in tree.css("noscript")
    )
    films = len(tree.css(_FILMS)) + (tree.css_first("svg text") is not None)
    unseen = len(tree.css("noscript img"))
    unseen += 2 * len(tree.css("noscript iframe, iframe[src^='javascript']"))
    signs.media = len(tree.css("img")) + 2 * films - unseen


def _read_meta(attributes: Mapping[str, str | None], signs: PageSigns) -> None:
    content = attributes.get("content") or ""
    if (attributes.get("name") or "").lower() == "robots":
        signs.noindex |= parse_directives([content], "", is_header=False).noindex
    elif (attributes.get("http-equiv") or "").lower() == "refresh":
        delay = _DELAY.match(content)
        signs.refresh_s = float(delay[1]) if delay else signs.refresh_s
        signs.refreshes_to_check |= is_check(content)


def is_check(target: str) -> bool:
    """Return whether the target of a meta refresh is a check of visitors, not another page.

    SiteGround's servers answer suspected robots with such a refresh alone.
    """
    return "captcha" in target.lower()


def _note(noted: list[str], value: str | None, most: int = 100) -> None:
    if value and len(noted) < most:
        noted.append(value[:300])


#: The zone of a node, whether it is frame, whether a link, and whether in a separate block.
_Place: TypeAlias = tuple[list[str], bool, bool, bool]


class _Body:
    """Reader of a body; a zone is the list that takes the texts there."""

    def __init__(self, signs: PageSigns) -> None:
        self._signs = signs
        self._framed: list[str] = []
        self._noscript: list[str] = []
        self._text_left = _MOST_TEXT
        self._is_full = False
        # The open stretch of text, and its linked characters.
        self._pending: list[str] = []
        self._pending_linked = 0

    def walk(self, body: LexborNode) -> bool:
        """Read the body in document order, without recursion; return whether all was read."""
        signs = self._signs
        self._names(body.attributes)
        above: list[tuple[LexborNode | None, _Place]] = []
        node, place = body.first_child, (signs.texts, False, False, False)
        while (node is not None or above) and not self._is_full:
            if node is None:
                zone, framed, _, is_block = place
                if is_block:
                    self._end(zone, framed=framed)
                node, place = above.pop()
            elif (inside := self._seen(node, place)) is None:
                node = node.next
            else:
                above.append((node.next, place))
                node, place = node.first_child, inside
        self._end(place[0], framed=place[1])
        self._take_frame()
        return self._text_left > 0 and signs.elements <= _MOST_ELEMENTS

    def _take_frame(self) -> None:
        """Take the frame for the content of a page that is all frame."""
        signs = self._signs
        signs.noscript = " ".join(self._noscript)
        if not (signs.headings or signs.texts or signs.controls or signs.linked):
            signs.texts, signs.is_all_frame = self._framed, True

    def _zone(self, tag: str, zone: list[str]) -> list[str]:
        if tag in _HEADINGS:
            return self._signs.headings
        if tag in _CONTROLS:
            return self._signs.controls
        return self._noscript if tag == "noscript" else zone

    def _element(self, tag: str, attributes: Mapping[str, str | None], *, framed: bool) -> None:
        signs = self._signs
        if attributes and not framed:
            self._names(attributes)
        match tag:
            case "input" | "textarea":
                if not framed:
                    self._input(tag, attributes)
            case "iframe" | "img":
                signs.iframes += tag == "iframe"
                _note(signs.addresses, attributes.get("src"))
            case "form" if not framed:
                signs.form_count += 1
                _note(signs.addresses, attributes.get("action"))
            case "pre" | "code":
                signs.codes += 1
            case _:
                pass

    def _seen(self, node: LexborNode, place: _Place) -> _Place | None:
        """Read one node; return the place of those in it, None if they are not read."""
        tag = node.tag or ""
        if tag == "-text":
            self._text(node.text_content or "", linked=place[2])
        elif tag not in _UNSEEN:
            self._signs.elements += 1
            self._is_full = self._signs.elements > _MOST_ELEMENTS or self._text_left <= 0
            return None if self._is_full else self._inside(node, tag, place)
        return None

    def _inside(self, node: LexborNode, tag: str, place: _Place) -> _Place | None:
        """Read an element; return the place of the nodes in it, None if they are not read."""
        zone, framed, linked, _ = place
        attributes = node.attributes
        self._element(tag, attributes, framed=framed)
        if tag in {"iframe", "input", "textarea"}:
            return None
        if is_block := tag not in _INLINE:
            self._end(zone, framed=framed)
        framed = (framed and tag != "h1") or _is_framed(node, tag, attributes)
        return self._zone(tag, zone), framed, linked or tag == "a", is_block

    def _input(self, tag: str, attributes: Mapping[str, str | None]) -> None:
        signs = self._signs
        kind = (attributes.get("type") or "text").lower()
        name = attributes.get("name") or attributes.get("id") or ""
        completes = attributes.get("autocomplete") or ""
        if kind == "hidden":
            _note(signs.hidden, f"{name}={attributes.get('value') or ''}")
        elif kind in {"submit", "button"}:
            _note(signs.controls, attributes.get("value"))
        elif kind == "password" or completes == "current-password" or _SECRET.search(name):
            signs.passwords += 1
        elif tag == "textarea":
            signs.long_fields += 1
        elif kind in _TEXT_INPUTS:
            signs.fields += 1
        if kind != "search":
            _note(signs.controls, attributes.get("placeholder"))

    def _names(self, attributes: Mapping[str, str | None]) -> None:
        for key, value in attributes.items():
            if key in {"id", "class"}:
                _note(self._signs.names, value, _MOST_NAMES)
            elif key.startswith("data-") and "key" in key:
                _note(self._signs.names, key, _MOST_NAMES)

    def _text(self, text: str, *, linked: bool) -> None:
        if text.isspace() and not self._pending:
            return
        text = text[: self._text_left]
        self._text_left -= len(text)
        self._pending.append(text)
        if linked:
            self._pending_linked += len(text.strip())

    def _end(self, zone: list[str], *, framed: bool) -> None:
        """End a stretch of text and file it under its kind."""
        if not self._pending:
            return
        signs, text = self._signs, " ".join("".join(self._pending).split())
        linked = self._pending_linked > 0.7 * len(text)
        self._pending.clear()
        self._pending_linked = 0
        if framed:
            signs.frame_words += len(text.split())
            _note(self._framed, text)
        elif text:
            (signs.linked if linked and zone is signs.texts else zone).append(text)


def _is_framed(node: LexborNode, tag: str, attributes: Mapping[str, str | None]) -> bool:
    if tag in _FRAME:
        # A header or an aside with the page's heading is not frame.
        return tag in {"nav", "menu", "footer"} or node.css_first("h1") is None
    if not attributes:
        return False
    if is_hidden(attributes):
        return True
    element_id, classes = attributes.get("id"), attributes.get("class")
    if _OVERLAY.search(f"{element_id} {classes}") or attributes.get("role") in {"dialog", "main"}:
        return False
    edge = any(map(_EDGE.match, f"{element_id or ''} {classes or ''}".split()))
    named = edge or is_frame_role(attributes) or is_frame_name(element_id, classes)
    return named and tag not in _INLINE and tag != "body" and node.css_first("h1, main") is None


#: Texts with less resemblance are not versions of one text.
_ANOTHER: Final = 0.25


class NotContentKind(StrEnum):
    """The kind of page in the place of content."""

    SOFT_404 = "soft_404"
    ERROR_PAGE = "error_page"
    LOGIN_WALL = "login_wall"
    CONSENT_WALL = "consent_wall"
    CAPTCHA = "captcha"
    RATE_LIMITED_PAGE = "rate_limited_page"
    PARKED = "parked"
    NEEDS_JAVASCRIPT = "needs_javascript"


class Proof(StrEnum):
    """A proof that a page is not content; two kinds never follow from the same fact."""

    #: Its words, or their absence; a title and an equal heading are one proof.
    WORDS = "words"
    #: The host shows it for a URL that cannot exist.
    PROBE = "probe"
    #: URLs that had different content before show it now.
    RETURN = "return"
    #: A script in it states an error, or it has a Retry-After header.
    STATUS = "status"
    #: The markup of a firewall's challenge, of a single sign-on, or of a page yet to be built.
    MARKUP = "markup"
    #: URLs of several names show it. It makes a page doubtful, and never helps to refuse one.
    ELSEWHERE = "elsewhere"
    #: A few new words have replaced a long text; likewise.
    REPLACED = "replaced"


@dataclass(frozen=True, slots=True)
class NotContent:
    """The judgement that a page is not content, or may not be.

    ``why`` is a sentence for people, ``probability`` (0 to 1) an estimate. A page with one proof
    is doubtful: it is stored and delivered. Two refuse it.
    """

    kind: NotContentKind
    why: str
    probability: float
    proofs: frozenset[Proof]

    @property
    def is_refused(self) -> bool:
        """Return whether nothing of the page is kept."""
        return len(self.proofs - {Proof.ELSEWHERE, Proof.REPLACED}) > 1

    @property
    def is_of_names(self) -> bool:
        """Return whether the only evidence is that URLs of several names show the page."""
        return self.proofs == {Proof.ELSEWHERE}


class _Cached:
    """Has room for the value of a cached property."""

    __slots__ = ("__dict__",)


@dataclass(frozen=True, slots=True)
class PageFacts(_Cached):
    """A page that was answered with 200.

    ``blocks`` and ``sketch`` are of its main text. The signs are read once they are asked for:
    few pages need them. ``before`` is the digest of the content of
    this URL at its last visit, if this is not an edited version of it, see
    :func:`is_another_text` (None: it had no content, or it is unknown); ``retry_after``: the answer
    has a Retry-After header. ``frame`` has texts that most pages of the host show; ``elsewhere``:
    URLs of several other names show the same text; ``replaced``: it is short, and the text before
    was long and had none of its blocks. ``is_known``: the page was
    content with this very text.
    """

    url: str
    title: str | None
    blocks: Blocks
    sketch: Sketch
    body: bytes = b""
    content_type: str | None = None
    before: bytes | None = None
    retry_after: bool = False
    frame: frozenset[str] = frozenset()
    elsewhere: bool = False
    replaced: bool = False
    is_known: bool = False

    @cached_property
    def texts(self) -> tuple[str, ...]:
        """The blocks of the main text without those of the host's frame."""
        if not self.frame:
            return self.blocks.texts
        own = tuple(text for text in self.blocks.texts if text not in self.frame)
        # Pages that share most of their text are one page: it has no frame.
        return own if 2 * length(own) >= length(self.blocks.texts) else self.blocks.texts

    @cached_property
    def signs(self) -> PageSigns:
        """The signs of the page's markup, without the texts of the host's frame."""
        signs = read_signs(self.body, self.content_type)
        if len(self.texts) < len(self.blocks):
            for said in (signs.headings, signs.texts, signs.linked, signs.controls):
                said[:] = [text for text in said if text not in self.frame]
        return signs

    @cached_property
    def said(self) -> str:
        """The texts of the signs, a line each, as patterns are searched in them."""
        return "\n".join(self.signs.texts).lower()

    @cached_property
    def names(self) -> str:
        """The names of elements, each once, likewise."""
        return _searched(self.signs.names)

    @cached_property
    def addresses(self) -> str:
        """The embedded addresses, each once, likewise."""
        return _searched(self.signs.addresses)

    @cached_property
    def tells(self) -> bool:
        """True if anything on the page, or in its place, could be the sign of a block page.

        Words that were content are not a sign, except for few that may have another markup now.
        """
        if self.is_known and not (self.elsewhere or is_little(self.blocks.texts)):
            return False
        if self.before is not None or self.elsewhere or may_wait(self.blocks.texts, self.body):
            return True
        return tells(self.title, self.texts, self.body)


def _searched(texts: Iterable[str]) -> str:
    # All at once: a call for each of some hundred names would cost more than it gains.
    # In lower case: to ignore case costs three times as much.
    return "\n".join(dict.fromkeys(texts)).lower()


#: Shingles of a long text, and words of a short one.
_LONG: Final = 100
SHORT: Final = 60


def replaces(new: Sketch, old: Sketch) -> bool:
    """Return whether a short text has no block of the one before, which was long."""
    blocks = set(new.block_digests.tolist())
    return old.shingle_count >= _LONG and blocks.isdisjoint(old.block_digests.tolist())


def is_another_text(old: Sketch, new: Sketch) -> bool:
    """Return whether a page shows another text than before, not an edited one."""
    # Python's own bool: callers test ``is True``.
    return bool(resemblance(old, new)[0] < _ANOTHER)
