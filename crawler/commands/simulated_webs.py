"""The webs that a simulation can run on, by the names that a user gives them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from freshet.crawler.synthetic_web import presets
from freshet.crawler.synthetic_web.presets import WebSpec
from freshet.crawler.synthetic_web.web import SyntheticWeb
from freshet.scheduler import policy


def _synthetic(seed: int, days: float) -> Callable[..., SyntheticWeb]:
    def synthetic(hosts: int = 4, pages: int = 40) -> SyntheticWeb:
        return presets.mixed(WebSpec(hosts, pages, seed, days))

    return synthetic


def _showcase(seed: int, days: float) -> Callable[..., SyntheticWeb]:
    def showcase(traps: bool = False) -> SyntheticWeb:
        return presets.showcase(seed, traps=traps, span_days=days)

    return showcase


def _endless(seed: int, days: float) -> Callable[..., SyntheticWeb]:
    def endless(pages: int = 60, traps: bool = True) -> SyntheticWeb:
        return presets.endless(WebSpec(1, pages, seed, days), traps=traps)

    return endless


def _newsroom(seed: int, days: float) -> Callable[..., SyntheticWeb]:
    def newsroom(items: float = 48.0, docs: int = 40) -> SyntheticWeb:
        return presets.newsroom(WebSpec(3, docs, seed, days), items)

    return newsroom


_WEBS: Final[Mapping[str, Callable[[int, float], Callable[..., SyntheticWeb]]]] = {
    "synthetic": _synthetic,
    "showcase": _showcase,
    "endless": _endless,
    "newsroom": _newsroom,
}

#: Those whose pages count for hours only.
_EPHEMERAL: Final = frozenset({"newsroom"})


def is_ephemeral(specification: str) -> bool:
    """Whether a web is one of news, where it counts how soon its pages are found."""
    return specification.partition(":")[0] in _EPHEMERAL


def load(specification: str, seed: int, days: float) -> SyntheticWeb:
    """A web by ``NAME`` or ``NAME:OPTION=VALUE,…`` that changes for so many days.

    ``synthetic`` (``hosts``, ``pages`` of each) is news, documentation, shops and wikis in turn;
    ``showcase`` (``traps``) ten small hosts of every character; ``endless`` (``pages``, ``traps``)
    a shop with calendars and filters that never end; ``newsroom`` (``items`` a day, ``docs``) news
    that soon leaves all lists, beside a quiet manual of ``docs`` pages.

    Raises:
        ValueError: if the name, an option or a value is not accepted.
    """
    name, _, text = specification.partition(":")
    if name not in _WEBS:
        raise ValueError(f"web: {name!r} is not known; accepted are {', '.join(sorted(_WEBS))}")
    make = _WEBS[name](seed, days)
    try:
        return make(**policy.given(make, text))
    except ValueError as error:
        raise ValueError(f"web {name}: {error}") from error
