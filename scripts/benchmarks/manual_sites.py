"""Manuals as sites with more URLs than documents, for the benchmark of traps.

A site is made of the pages of a manual, or of its translations or versions. Its links are spelled
as a program spells them that adds a session, the page that the reader came from, or a view for
printers; what the pages show is the manual.
"""

from __future__ import annotations

import re
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from posixpath import dirname, join, normpath
from random import Random
from typing import Final
from urllib.parse import parse_qs, quote, unquote, urlsplit

from selectolax.lexbor import LexborHTMLParser

from freshet.crawler.fetch.client import Request
from freshet.crawler.frontier.clock import VirtualClock
from freshet.crawler.urls import canonical
from freshet.storage.records import FetchResult

ORIGIN: Final = "https://manuals.example"
#: The time at which a crawl begins.
BEGIN: Final = 1_800_000_000.0
_HTML: Final = ((b"Content-Type", b"text/html; charset=utf-8"),)
_PLAIN: Final = ((b"Content-Type", b"text/plain"),)
_LINK: Final = re.compile(r"(<a\b[^>]*?\bhref\s*=\s*)(?:\"([^\"]*)\"|'([^']*)')", re.IGNORECASE)
_BODY: Final = re.compile(r"<body\b[^>]*>", re.IGNORECASE)
_HEAD_LINK: Final = re.compile(r"<(?:link|base)\b[^>]*>", re.IGNORECASE)
#: What Sphinx, DocBook and others put around a page, and a view for printers leaves out.
_AROUND: Final = "nav, footer, .related, .sphinxsidebar, .footer, .navheader, .navfooter"
_LANGUAGE: Final = r"[a-z]{2}(?:[-_][A-Za-z]{2})?"
#: A folder: the package, the language of a translation, and the version.
_FOLDER: Final = re.compile(rf"(?P<name>.+?)(?:-(?P<language>{_LANGUAGE}))?(?:_(?P<version>.+))?")


# -- sites -------------------------------------------------------------------


class Site:
    """A site that answers at once, on its own clock.

    ``asked`` are the requests for pages and ``linked`` the links of its answers, both without the
    origin. From ``most_requests`` on nothing is there. ``settings`` are those of its crawl.
    """

    robots = ""
    most_requests = 3_000

    def __init__(self, settings: dict[str, object] | None = None) -> None:
        self.settings = settings or {}
        self.clock = VirtualClock(BEGIN)
        self.chance = Random(58)  # no secret
        self.asked: list[str] = []
        self.linked: set[str] = set()

    @property
    def wanted(self) -> set[str]:
        """The documents that there are."""
        raise NotImplementedError

    def document(self, target: str) -> str | None:
        """The document at a target, None if there is none."""
        raise NotImplementedError

    def answer(self, target: str) -> str | None:
        """The page at a target, None if there is none."""
        raise NotImplementedError

    def content_type(self, target: str) -> str:
        """The type of the page at a target."""
        is_data = urlsplit(target).path.endswith(".dat")
        return "application/octet-stream" if is_data else "text/html; charset=utf-8"

    async def fetch(self, request: Request) -> FetchResult:
        """Make one exchange."""
        at, target = self.clock.now(), request.url.removeprefix(ORIGIN)
        if target == "/robots.txt" and self.robots:
            body = self.robots.encode()
            return FetchResult(request.url, "fetched", at, 0, 200, headers=_PLAIN, body=body)
        html = self.answer(target) if len(self.asked) < self.most_requests else None
        if request.accept == "page":
            self.asked.append(target)
        if html is None:
            return FetchResult(request.url, "gone", at, 0, 404, "http_404")
        body, headers = html.encode(), ((b"Content-Type", self.content_type(target).encode()),)
        return FetchResult(
            request.url, "fetched", at, 0, 200, headers=headers, wire_body=body, body=body
        )

    async def close(self) -> None:
        """Nothing is open."""

    @property
    def linked_urls(self) -> set[str]:
        """The canonical URLs that pages led to."""
        return {canonical(ORIGIN + each) for each in self.linked}

    def link(self, target: str, words: str = "&#8226;", attributes: str = "") -> str:
        """A link to a target."""
        self.linked.add(target)
        return f'<a href="{target.replace("&", "&amp;")}" {attributes}>{words}</a> '


# -- manuals -----------------------------------------------------------------


@dataclass(frozen=True)
class Manual:
    """The pages that the first one leads to, by a key; that of the first one is empty.

    ``files`` are the paths by which their links are resolved. The keys of ``editions``, if there
    are some, begin with the name of one, and their pages lead to one another.
    """

    name: str
    pages: Mapping[str, str]
    files: Mapping[str, str]
    editions: tuple[str, ...] = ()

    @cached_property
    def keys(self) -> dict[str, str]:
        """The page of each file."""
        return {file: key for key, file in self.files.items()}

    def others(self, key: str) -> list[str]:
        """The same page in other editions, or their first one."""
        own, _, rest = (key or f"{self.editions[0]}/").partition("/")
        found = (self.beside(each, rest) for each in self.editions if each != own)
        return [each for each in found if each is not None]

    def beside(self, edition: str, rest: str) -> str | None:
        """The page of an edition, its first one, or None."""
        return next((k for k in (f"{edition}/{rest}", f"{edition}/") if k in self.pages), None)


def read_manual(name: str, folder: Path, most: int) -> Manual | None:
    """Read a manual of at most so many pages; None if none of its pages is an index."""
    found = (each for each in folder.rglob("*.html") if each.is_file() and not each.is_symlink())
    paths = {each.relative_to(folder).as_posix(): each for each in found}
    starts = [each for each in paths if Path(each).name.split(".")[0] in {"index", "contents"}]
    order = {each: (each.count("/"), "index" not in each, each) for each in starts}
    first = min(starts, key=order.__getitem__, default=None)
    if first is None:
        return None
    root, queue, pages = dirname(first), deque([first]), dict[str, str]()
    while queue and len(pages) < most:
        path = queue.popleft()
        pages[path] = html = paths[path].read_text("utf-8", "replace")
        for _, *links in _LINK.findall(html):
            target = _resolved(path, "".join(links))
            if target in paths and target not in pages and target not in queue:
                queue.append(target)
    keys = {path: _key(path.removeprefix(f"{root}/")) if path != first else "" for path in pages}
    return Manual(
        name,
        {keys[path]: html for path, html in pages.items()},
        {keys[path]: path for path in pages},
    )


def _key(path: str) -> str:
    """A page's path without its ending and its language."""
    return re.sub(rf"\.{_LANGUAGE}$", "", path.removesuffix(".html"))


def _resolved(path: str, link: str) -> str | None:
    """The path of a relative link's target."""
    parts = urlsplit(link)
    if parts.scheme or parts.netloc or not parts.path:
        return None
    return normpath(join(dirname(path), unquote(parts.path)))


def joined(name: str, editions: Mapping[str, Manual]) -> Manual:
    """One manual of several editions; it begins with the first one's first page."""
    pages, files = dict[str, str](), dict[str, str]()
    for edition, manual in editions.items():
        for key, html in manual.pages.items():
            pages[f"{edition}/{key}"] = html
            files[f"{edition}/{key}"] = f"{edition}/{manual.files[key]}"
    return Manual(name, pages, files, tuple(editions))


def manuals(folder: Path, least: int, most: int) -> Iterator[Manual]:
    """Yield the manuals of a folder, one of each folder in it that has enough pages."""
    for each in sorted(folder.iterdir()):
        found = read_manual(each.name, each, most) if each.is_dir() else None
        if found is not None and len(found.pages) >= least:
            yield found


def of_several(found: list[Manual], part: str) -> list[Manual]:
    """Join the manuals whose folders differ in this part alone: ``language`` or ``version``."""
    groups: dict[tuple[str, ...], dict[str, Manual]] = {}
    for manual in found:
        named = _FOLDER.fullmatch(manual.name)
        said = {name: text or "" for name, text in named.groupdict().items()} if named else {}
        edition = said.pop(part, "") or {"language": "en"}.get(part, "")
        if edition:
            said.pop("version", "")
            groups.setdefault(tuple(said.values()), {})[edition] = manual
    return [
        joined(" ".join(each.name for each in group.values()), group)
        for group in groups.values()
        if len(group) > 1
    ]


@dataclass(frozen=True)
class Served:
    """A request for a page; ``token`` is the session that its response begins."""

    target: str
    key: str
    chance: Random
    token: str

    @property
    def query(self) -> Mapping[str, str]:
        """The parameters of the request."""
        found = parse_qs(urlsplit(self.target).query, keep_blank_values=True)
        return {name: each[-1] for name, each in found.items()}


def path_of(key: str) -> str:
    """The usual path of a page."""
    return f"/{quote(key)}"


def key_of(target: str) -> str:
    """The page at a usual path."""
    return unquote(urlsplit(target).path)[1:]


@dataclass(frozen=True)
class Spelling:
    """How a site spells its links, and what its URLs show.

    ``link`` writes the one to a page, ``find`` reads the page of a target, ``show`` changes its
    HTML, and ``more`` are links that a page has beside the manual's.
    """

    link: Callable[[str, Served], str] = lambda key, _served: path_of(key)
    find: Callable[[str], str] = key_of
    show: Callable[[str, Served], str] = lambda html, _served: html
    more: Callable[[Served], list[str]] = lambda _served: []
    #: What else a link to a page says, and the robots.txt of the site.
    rel: Callable[[str], str] = lambda _key: ""
    robots: str = ""


class ManualSite(Site):
    """The site of a manual: each of its pages is a document."""

    def __init__(
        self, manual: Manual, spelling: Spelling, settings: dict[str, object] | None = None
    ) -> None:
        super().__init__(settings)
        self.manual, self.spelling, self.robots = manual, spelling, spelling.robots

    @property
    def wanted(self) -> set[str]:
        """The pages of the manual."""
        return set(self.manual.pages)

    def document(self, target: str) -> str | None:
        """The page at a target."""
        key = self.spelling.find(target)
        if not key and self.manual.editions:
            key = f"{self.manual.editions[0]}/"
        return key if key in self.manual.pages else None

    def answer(self, target: str) -> str | None:
        """The HTML of the page, its links spelled in this site's way."""
        key = self.document(target)
        if key is None:
            return None
        token = f"{self.chance.getrandbits(128):032x}"
        served = Served(target, key, self.chance, token)
        file, keys = self.manual.files[key], self.manual.keys
        edition = f"{key.partition('/')[0]}/" if self.manual.editions else ""

        def spelled(found: re.Match[str]) -> str:
            goal = _resolved(file, found[2] or found[3] or "")
            there = keys.get(goal or "")
            if there is None or not there.startswith(edition):
                return f'{found[1]}"#"'
            link = self.spelling.link(there, served)
            self.linked.add(link)
            rel = self.spelling.rel(there)
            return f'{found[1]}"{link.replace("&", "&amp;")}" rel="{rel}"'

        html = _LINK.sub(spelled, _HEAD_LINK.sub("", self.manual.pages[key]))
        others = self.manual.others(key) if edition else []
        targets = [self.spelling.link(each, served) for each in others]
        menu = "".join(self.link(each) for each in (*targets, *self.spelling.more(served)))
        return self.spelling.show(_with_menu(html, menu), served)


def _with_menu(html: str, menu: str) -> str:
    body = _BODY.search(html)
    if body is None or not menu:
        return html
    return f"{html[: body.end()]}<div role=navigation>{menu}</div>{html[body.end() :]}"


def printed(html: str) -> str:
    """A page without what stands around its content."""
    tree = LexborHTMLParser(html)
    for node in tree.css(_AROUND):
        node.decompose()
    return tree.html or ""


def highlighted(html: str, word: str) -> str:
    """A page with a word marked as Sphinx marks it; as it is without one."""
    if not word:
        return html
    head, body, rest = html.partition("<body")
    pattern = re.compile(rf"(>[^<>]*?)\b({re.escape(word)})\b(?=[^<>]*<)", re.IGNORECASE)
    return head + body + pattern.sub(r'\1<span class="highlighted">\2</span>', rest)


def frequent_words(manual: Manual, count: int) -> list[str]:
    """Words that many of its pages have: what readers search for."""
    words = Counter[str]()
    for html in manual.pages.values():
        words.update(set(re.findall(r"(?<=[ >])[a-z]{5,9}(?=[ <.,])", html)))
    return [word for word, _ in words.most_common(count)]


def numbered(manual: Manual, edition: str) -> Manual:
    """A copy of a manual with the number of its version on each page, as generators write it."""
    pages = {
        key: html.replace("</body>", f"<p>Documentation of version {edition}</p></body>")
        for key, html in manual.pages.items()
    }
    return replace(manual, pages=pages)
