"""The words of a page to crawlers about itself, wherever they stand in the document."""

import re
from collections.abc import Mapping
from typing import Final, TypeAlias

from freshet.crawler.reduce.links import HUB_RELATIONS, is_feed, relations
from freshet.crawler.reduce.tree import PLACES, Tree
from freshet.crawler.urls import is_http, resolve, without_fragment

# WHATWG HTML, section 4.2.5.3, "shared declarative refresh steps".
_REFRESH: Final = re.compile(
    r"""[\t\n\f\r ]* (\d+|(?=\.)) [\d.]* (?>[\t\n\f\r ]*[;,]|[\t\n\f\r ]) [\t\n\f\r ]*+
    (?>url [\t\n\f\r ]* = [\t\n\f\r ]*|) (?: "([^"]*) | '([^']*) | (.+) )""",
    re.IGNORECASE | re.VERBOSE | re.DOTALL,
)
_MAX_DELAY_S: Final = 10.0**9
#: A redirect in the page itself: the seconds before it, and the resolved URL.
MetaRefresh: TypeAlias = tuple[float, str]


class PageHead:
    """The elements of a page from ``url`` that say something about all of it.

    ``base_url`` is what its references are relative to.
    """

    def __init__(self, tree: Tree, url: str) -> None:
        self._tree = tree
        self._links = [(relations(said), said) for _, said in self._saying("link", "href")]
        metas = self._saying("meta", "content")
        self._metas = [said for _, said in metas]
        self._pragmas = [
            (said["http-equiv"].strip().lower(), node, said["content"])
            for node, said in metas
            if "http-equiv" in said
        ]
        # The first counts, if it is usable.
        base = next((said["href"] for _, said in self._saying("base", "href")), "")
        self.base_url = http_url(base, url) or without_fragment(url)

    def _saying(self, tag: str, attribute: str) -> list[tuple[int, Mapping[str, str]]]:
        read = self._tree.attributes
        return [(it, said) for it in self._tree.named(tag) if attribute in (said := read(it))]

    def title(self) -> str | None:
        """Return the first title with a text, but for those of drawings."""
        tree = self._tree
        titles = (it for it in tree.named("title") if not tree.place[it] & PLACES["drawing"])
        return next(filter(None, (" ".join(tree.text_of(it).split()) for it in titles)), None)

    def language(self) -> str | None:
        """Return the language tag of the document (HTML, section 3.2.6.2), as written."""
        root = self._tree.attributes(0)
        declared = root.get("lang") or root.get("xml:lang") or ""
        pragmas = (said for name, _, said in self._pragmas if name == "content-language")
        return declared.strip() or next((c.strip() for c in pragmas if "," not in c), "") or None

    def canonical(self) -> str | None:
        """Return the canonical URL that the page names."""
        hints = (self._target(said) for tokens, said in self._links if "canonical" in tokens)
        return next(filter(None, hints), None)

    def feeds(self) -> tuple[str, ...]:
        """Return the feeds that the page names."""
        found = (self._target(said) for tokens, said in self._links if is_feed(said, tokens))
        return tuple(dict.fromkeys(url for url in found if url))

    def hub_links(self) -> tuple[tuple[str, str], ...]:
        """Return the links of relation hub and self, resolved (W3C WebSub, section 4)."""
        named = ((it, said) for tokens, said in self._links for it in tokens if it in HUB_RELATIONS)
        found = ((token, self._target(said)) for token, said in named)
        return tuple((token, url) for token, url in found if url)

    def _target(self, link: Mapping[str, str]) -> str | None:
        return http_url(link["href"], self.base_url)

    def meta_refresh(self) -> MetaRefresh | None:
        """Return the first refresh that leads elsewhere, and that scripts would not prevent."""
        # Where scripts run, what is said to others does not count.
        place, others = self._tree.place, PLACES["noscript"]
        said = (
            text
            for name, node, text in self._pragmas
            if name == "refresh" and not place[node] & others
        )
        return next(filter(None, (refresh_of(text, self.base_url) for text in said)), None)

    def robots_meta(self, agent_token: str) -> tuple[str, ...]:
        """Return the directives to all robots, and to the one of that name."""
        names = {"robots", agent_token.lower()}
        return tuple(
            meta["content"]
            for meta in self._metas
            if "name" in meta and meta["name"].strip().lower() in names
        )


def refresh_of(text: str, base: str) -> MetaRefresh | None:
    """Return what a refresh in a page or in the header of that name says, if it leads elsewhere."""
    match = _REFRESH.match(text)
    url = http_url(match[2] or match[3] or match[4] or "", base) if match else None
    return (min(float(match[1] or 0), _MAX_DELAY_S), url) if match and url else None


def http_url(reference: str, base: str) -> str | None:
    """Return the URL of a page that a reference leads to, without its fragment."""
    url = resolve(reference, base) if reference.strip() else None
    return without_fragment(url) if url is not None and is_http(url) else None
