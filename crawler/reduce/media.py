"""Links in the place of elements that show or play something of another address: videos, frames."""

from collections.abc import Callable, Iterator, Mapping
from typing import Final
from urllib.parse import urlsplit

from freshet.crawler.reduce.boilerplate import FRAME_HOSTS, is_control, is_frame_name
from freshet.crawler.reduce.content import is_shown
from freshet.crawler.reduce.tree import LINK, SOURCES, Tree

#: Attributes with the address; before a script has run it may be in a data attribute.
_ADDRESSES: Final = ("href", "data", *SOURCES)
#: Attributes with an address of elements inside of one without an address.
_INSIDE: Final = {
    **dict.fromkeys("source embed object iframe video audio".split(), _ADDRESSES),
    "param": ("value",), "a": ("href",),
}  # fmt: skip
#: Names of parameters with an address.
_PARAMETERS: Final = frozenset({"movie", "src", "url", "filename", "data"})
#: Its name is the first of these that is not empty.
_LABELS: Final = ("title", "aria-label", "alt")
#: A medium with a shorter side is invisible.
_LEAST_SIDE: Final = 3


def medium_of(tree: Tree, node: int, resolve: Callable[[str], str]) -> tuple[str, str]:
    """Return the URL and the name of a medium; two empty texts if it is invisible.

    ``resolve`` gives the absolute URL of a reference, or an empty text. A medium without a name is
    called by its tag. A medium in a link is part of the link; adverts and trackers do not count.
    """
    values = tree.attributes(node)
    names = (" ".join(values.get(name, "").split()) for name in _LABELS)
    label = next(filter(None, names), tree.tag(node))
    url = next(filter(None, map(resolve, _addresses(tree, node, values))), "")
    seen = not tree.place[node] & LINK and _is_seen(values) and not is_control(label)
    return (url, label) if seen and url and not _is_of_frame(url) else ("", "")


def _addresses(tree: Tree, node: int, values: Mapping[str, str]) -> Iterator[str]:
    """Yield the references of an element, then of elements in it."""
    yield from filter(None, map(values.get, _ADDRESSES))
    for inner in range(node + 1, tree.end[node]):
        if names := _INSIDE.get(tree.tag(inner)):
            said = tree.attributes(inner)
            if tree.tag(inner) != "param" or said.get("name", "").lower() in _PARAMETERS:
                yield from filter(None, map(said.get, names))


def _is_seen(values: Mapping[str, str]) -> bool:
    sides = (values.get(side, "").strip().removesuffix("px") for side in ("width", "height"))
    style = values.get("style", "").replace(" ", "").lower()
    return (
        is_shown(values)
        and "visibility:hidden" not in style
        and not any(side.isdecimal() and int(side[:6]) < _LEAST_SIDE for side in sides)
        and not is_frame_name(values.get("id"), values.get("class"))
    )


def _is_of_frame(url: str) -> bool:
    """Return whether a host only shows adverts, counts visitors or asks them who they are."""
    try:
        host, path = f".{urlsplit(url).hostname or ''}", urlsplit(url).path
    except ValueError:
        return True
    return any(
        host.endswith(f".{known}") and path.startswith(f"/{start}")
        for known, _, start in (each.partition("/") for each in FRAME_HOSTS)
    )
