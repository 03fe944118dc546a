"""The words of a page to crawlers about itself, wherever they stand in the document."""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import repeat
from typing import Final, Self, TypeAlias

from freshet.crawler.reduce.links import HUB_RELATIONS, is_feed, tokens_of
from freshet.crawler.reduce.tree import PLACES, Tree
from freshet.crawler.urls import base_at, is_http, without_fragment

# WHATWG HTML, section 4.2.5.3, "shared declarative refresh steps".
_REFRESH: Final = re.compile(
    r"""[\t\n\f\r ]* (\d+|(?=\.)) [\d.]* (?>[\t\n\f\r ]*[;,]|[\t\n\f\r ]) [\t\n\f\r ]*+
    (?>url [\t\n\f\r ]* = [\t\n\f\r ]*|) (?: "([^"]*) | '([^']*) | (.+) )""",
    re.IGNORECASE | re.VERBOSE | re.DOTALL,
)
_MAX_DELAY_S: Final = 10.0**9
#: A redirect in the page itself: the seconds before it, and the resolved URL.
MetaRefresh: TypeAlias = tuple[float, str]


#: What an element says of the page: its tag, and three texts. "title": a text in which something
#: stands; "lang": the language tag of the root; "meta": its pragma, name and content, "noscript"
#: where it counts without scripts only; "link": its relations, media type and reference. The core
#: leaves out those that :class:`PageHead` does not ask for.
HeadRow: TypeAlias = tuple[str, str, str, str]


def rows_of(tree: Tree) -> Iterator[HeadRow]:
    """Yield what the elements of a page say of all of it."""
    root = tree.attributes(0)
    yield "lang", root.get("lang") or root.get("xml:lang") or "", "", ""
    for node in tree.named("title"):
        text = " ".join(tree.text_of(node).split())
        if text and not tree.place[node] & PLACES["drawing"]:
            yield "title", text, "", ""
    for said in map(tree.attributes, tree.named("link")):
        if "href" in said:
            yield "link", said.get("rel", ""), said.get("type", ""), said["href"]
    yield from _metas_of(tree)


def _metas_of(tree: Tree) -> Iterator[HeadRow]:
    for node in tree.named("meta"):
        said = tree.attributes(node)
        if "content" in said:
            is_other = tree.place[node] & PLACES["noscript"]
            pragma, name = said.get("http-equiv", ""), said.get("name", "")
            yield "noscript" if is_other else "meta", pragma, name, said["content"]


def base_of(tree: Tree, url: str) -> str:
    """Return what the references of a page from ``url`` are relative to."""
    said = map(tree.attributes, tree.named("base"))
    # The first counts, if it is usable.
    return base_by(next((each["href"] for each in said if "href" in each), ""), url)


def base_by(reference: str, url: str) -> str:
    """Return what a base element with that reference makes of the URL of its page."""
    return http_url(reference, url) or without_fragment(url)


#: Pragmas and relations for which the head is read.
PRAGMAS: Final = ("refresh", "content-language")
RELATIONS: Final = ("canonical", "alternate", "feed", *sorted(HUB_RELATIONS))


class PageHead:
    """The words of a page about all of it; ``base_url`` is what its references are relative to."""

    def __init__(self, rows: Iterable[HeadRow], base_url: str) -> None:
        self.base_url = base_url
        self._title: str | None = None
        self._language = ""
        self._metas: list[HeadRow] = []
        self._links: list[tuple[Sequence[str], str, str]] = []
        for row in rows:
            tag, first, second, third = row
            if tag == "link":
                self._links.append((tokens_of(first), second, third))
            elif tag == "lang":
                self._language = first
            elif tag == "title":
                self._title = self._title or first
            else:
                self._metas.append(row)

    @classmethod
    def of(cls, tree: Tree, url: str) -> Self:
        """Return the head of a page from ``url``."""
        return cls(rows_of(tree), base_of(tree, url))

    def title(self) -> str | None:
        """Return the first title with a text, but for those of drawings."""
        return self._title

    def language(self) -> str | None:
        """Return the language tag of the document (HTML, section 3.2.6.2), as written."""
        said = [content.strip() for content in self._pragmas("content-language")]
        named = [content for content in said if "," not in content]
        return self._language.strip() or (named[0] if named else "") or None

    def _pragmas(self, name: str) -> list[str]:
        return [content for _, pragma, _, content in self._metas if pragma.strip().lower() == name]

    def canonical(self) -> str | None:
        """Return the canonical URL that the page names."""
        hints = [href for tokens, _, href in self._links if "canonical" in tokens]
        return next(filter(None, self._resolved(hints)), None)

    def feeds(self) -> tuple[str, ...]:
        """Return the feeds that the page names."""
        named = [href for tokens, kind, href in self._links if is_feed({"type": kind}, tokens)]
        return tuple(dict.fromkeys(filter(None, self._resolved(named))))

    def hub_links(self) -> tuple[tuple[str, str], ...]:
        """Return the links of relation hub and self, resolved (W3C WebSub, section 4)."""
        named = [(it, href) for tokens, _, href in self._links for it in tokens]
        hubs = [(token, href) for token, href in named if token in HUB_RELATIONS]
        urls = self._resolved([href for _, href in hubs])
        return tuple([(token, url) for (token, _), url in zip(hubs, urls, strict=True) if url])

    def _resolved(self, references: Sequence[str]) -> list[str | None]:
        return [*map(http_url, references, repeat(self.base_url))]

    def meta_refresh(self) -> MetaRefresh | None:
        """Return the first refresh that leads elsewhere, and that scripts would not prevent."""
        # Where scripts run, what is said to others does not count.
        said = [
            content
            for tag, pragma, _, content in self._metas
            if tag == "meta" and pragma.strip().lower() == "refresh"
        ]
        return next(filter(None, map(refresh_of, said, repeat(self.base_url))), None)

    def robots_meta(self, agent_token: str) -> tuple[str, ...]:
        """Return the directives to all robots, and to the one of that name."""
        names = {"robots", agent_token.lower()}
        return tuple(
            [content for _, _, name, content in self._metas if name.strip().lower() in names]
        )


def refresh_of(text: str, base: str) -> MetaRefresh | None:
    """Return what a refresh in a page or in the header of that name says, if it leads elsewhere."""
    match = _REFRESH.match(text)
    url = http_url(match[2] or match[3] or match[4] or "", base) if match else None
    return (min(float(match[1] or 0), _MAX_DELAY_S), url) if match and url else None


def http_url(reference: str, base: str) -> str | None:
    """Return the URL of a page that a reference leads to, without its fragment."""
    url = base_at(base).resolve(reference) if reference.strip() else None
    return without_fragment(url) if url is not None and is_http(url) else None
