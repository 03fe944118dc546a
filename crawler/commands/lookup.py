"""From a URL as a person types it to what the store knows under that name."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import SequenceMatcher

import aiosqlite

from freshet.crawler.admission.sites import seeds_from_arguments
from freshet.crawler.commands.console import fail
from freshet.crawler.urls import canonical, origin
from freshet.storage.queries import page

_NEAREST = 3


def spellings(text: str) -> list[str]:
    """The canonical URLs that ``text`` may mean: without a scheme https, then http.

    Ends the program (wrong usage) where it is no URL.
    """
    sites = seeds_from_arguments([text])
    for problem in sites.problems:
        fail(f"{problem.text}: {problem.message}", 2)
    seed = sites.seeds[0]
    urls = [seed.url] if seed.fallback_url is None else [seed.url, seed.fallback_url]
    return [canonical(url) for url in urls]


async def nearest(connection: aiosqlite.Connection, url: str) -> list[str]:
    """The known URLs on the host of ``url``, http and https, that are most like it."""
    schemes = [f"{scheme}{url[url.index(':') :]}" for scheme in ("https", "http")]
    near = [
        known
        for spelling in schemes
        for known in await page.neighbours(connection, str(origin(spelling)), spelling)
    ]
    return sorted(near, key=lambda known: -_likeness(known, url))[:_NEAREST]


def unknown(url: str, near: Sequence[str]) -> str:
    """The sentence for a URL that the store does not know."""
    if not near:
        return f"{url} is not known, nor any other URL on that host"
    return f"{url} is not known; the nearest on that host: {', '.join(near)}"


def _likeness(one: str, other: str) -> float:
    """From 0 to 1, whatever the schemes."""
    return SequenceMatcher(
        None, one.partition(":")[2], other.partition(":")[2], autojunk=False
    ).ratio()
