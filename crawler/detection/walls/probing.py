"""Probes: asking a host for a page that cannot exist, to see how it says so.

A probe stands beside a page that was found, in the same directory and with the same ending,
for hosts that answer by directory or by ending; its name is made of a token that the caller
draws, so that no host can know it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, TypeAlias
from urllib.parse import urlsplit, urlunsplit

from freshet.crawler.detection.walls.look import PageLook

_LONGEST_ENDING: Final = 5


@dataclass(frozen=True, slots=True)
class HonestAnswer:
    """The host says itself that there is nothing: by a status, or by leading elsewhere.

    ``status`` is None where no answer came.
    """

    status: int | None


#: How a probe was answered: honestly, or with 200 and a page.
ProbeAnswer: TypeAlias = HonestAnswer | PageLook


def probe_url(url: str, token: str) -> str:
    """A URL that cannot exist beside a page.

    >>> probe_url("https://h.example/shop/chair.html?id=3", "k3v9x")
    'https://h.example/shop/k3v9x.html'
    >>> probe_url("https://h.example/shop/", "k3v9x")
    'https://h.example/shop/k3v9x/'
    """
    parts = urlsplit(url)
    directory, _, name = parts.path.rpartition("/")
    if not name and directory:
        directory, _, _ = (
            directory.rpartition("/") if directory.count("/") > 1 else (directory, "", "")
        )
        return urlunsplit((parts.scheme, parts.netloc, f"{directory}/{token}/", "", ""))
    _, dot, ending = name.rpartition(".")
    plain = dot and 0 < len(ending) <= _LONGEST_ENDING and ending.isalnum()
    return urlunsplit(
        (parts.scheme, parts.netloc, f"{directory}/{token}{dot + ending if plain else ''}", "", "")
    )
