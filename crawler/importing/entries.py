"""What another program's list says, entry by entry."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Site:
    """A URL that is watched.

    Attributes:
        where: which entry it is, in words for people.
        url: as written; not checked.
        name: as written, or "".
        days: the interval between two looks that the entry asks for; None where it says none.
        lost: what it says beyond that, for which a site list has no place, in words for people.
    """

    where: str
    url: str
    name: str = ""
    days: float | None = None
    lost: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Skipped:
    """An entry that gives no site, and the reason."""

    where: str
    text: str
    reason: str


Entry: TypeAlias = Site | Skipped


class Unreadable(Exception):
    """The file is not of its format, or too large; the message is a sentence without its name."""
