"""Scope: which URLs belong to the crawl.

Invariant: a URL is in scope if and only if one of its keys is the key of a root. Hence the
cost of a question does not depend on the number of seeds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from enum import StrEnum

from freshet.crawler.urls import canonical, origin, registrable_domain, site_key


class ScopeKind(StrEnum):
    """How far the crawl goes beyond its seeds."""

    HOST = "host"
    DOMAIN = "domain"
    PREFIX = "prefix"
    LIST = "list"


class Scope:
    """The roots of a crawl, and what is reached from them.

    A root is a seed, or where the seed's own redirect led. In scope are, by kind:

    - ``host``: URLs of a root's site (``http``, ``https`` and ``www.`` count as one);
    - ``domain``: URLs with a root's registrable domain, on any host and port;
    - ``prefix``: URLs of a root's site, in the directory of the root's path: all up to its
      last '/', so that ``/docs`` without a slash means the whole site;
    - ``list``: the roots.
    """

    def __init__(self, kind: ScopeKind, seeds: Iterable[str] = ()) -> None:
        self.kind = kind
        self._roots: dict[str, None] = {}
        # Counted: a key stays while any root has it.
        self._keys: Counter[str] = Counter()
        for seed in seeds:
            self.add_seed(seed)

    def add_seed(self, url: str) -> None:
        """Make a seed's URL a root.

        Raises:
            ValueError: if it is not an absolute http or https URL.
        """
        root = canonical(url)
        if root not in self._roots:
            self._roots[root] = None
            self._keys[self._root_key(root)] += 1

    def move_seed(self, old: str, new: str) -> None:
        """A seed has redirected: ``new`` becomes a root, and ``old`` is one no longer.

        Raises:
            ValueError: if either is not an absolute http or https URL; nothing has changed.
        """
        left = canonical(old)
        self.add_seed(new)
        if left != canonical(new) and left in self._roots:
            del self._roots[left]
            self._release(self._root_key(left))

    def contains(self, url: str) -> bool:
        """Whether an http or https URL is in scope.

        Raises:
            ValueError: if it is not an absolute http or https URL.
        """
        return any(key in self._keys for key in self._keys_of(url))

    def roots(self) -> list[str]:
        """The canonical roots in the order of their arrival: ``Scope(kind, roots)`` again."""
        return list(self._roots)

    def _release(self, key: str) -> None:
        self._keys[key] -= 1
        if not self._keys[key]:
            del self._keys[key]

    def _root_key(self, root: str) -> str:
        """The narrowest key of a root: the last, which is the deepest directory."""
        *_, key = self._keys_of(root)
        return key

    def _keys_of(self, url: str) -> Iterable[str]:
        match self.kind:
            case ScopeKind.HOST:
                return (site_key(url),)
            case ScopeKind.DOMAIN:
                return (registrable_domain(origin(url).host),)
            case ScopeKind.PREFIX:
                return _directories(canonical(url))
            case ScopeKind.LIST:
                return (canonical(url),)


def _directories(url: str) -> Iterator[str]:
    """A canonical URL's site with each directory on its path, the outermost first."""
    path = url.partition("?")[0].split("/", 3)[3]
    directory = f"{site_key(url)}/"
    yield directory
    for segment in path.split("/")[:-1]:
        directory += f"{segment}/"
        yield directory
