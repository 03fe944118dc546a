"""Lists of pages that people see: answers to searches, and digests of alerts.

An extension may record which results people open (entry points ``freshet.audiences``). It also
arranges lists and records the pages that they showed.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from functools import partial
from hashlib import blake2b
from pathlib import Path
from secrets import randbits
from sqlite3 import Connection
from typing import Final, Literal, Protocol, TypeAlias

from aiosqlite import Connection as Reader

from freshet.config.settings import Settings
from freshet.crawler.frontier.clock import iso
from freshet.crawler.read.library import Library, asking
from freshet.entry_points import loaded
from freshet.storage.database import write_beside
from freshet.storage.errors import StoreError
from freshet.storage.tables import changefeed

log = logging.getLogger(__name__)

_DAY_S: Final = 86_400

#: Where a list was shown.
MadeFor: TypeAlias = Literal["terminal", "http", "digest", "file"]


@dataclass(frozen=True, slots=True)
class Impression:
    """A page in a list at a ``place`` from 1 on; ``promoted``: its place was drawn at random.

    ``showing_id`` is the id in links to it: 63 random bits, so that it cannot be guessed.
    """

    showing_id: int
    page_id: int
    place: int
    promoted: bool

    @classmethod
    def of(cls, page_id: int, place: int, *, promoted: bool = False) -> "Impression":
        """Return a page in a list, with a new id."""
        return cls(randbits(63), page_id, place, promoted)


@dataclass(frozen=True, slots=True)
class RankedPage:
    """A page of a list; pages of a lower ``tier`` precede all others.

    ``worth`` is its relevance, ``promoted`` whether its place was drawn at random.
    """

    page_id: int
    url: str
    worth: float
    tier: int = 0
    promoted: bool = False

    def shown_at(self, place: int) -> Impression:
        """Return its impression at a place, from 1 on, of a list that is shown, with a new id."""
        return Impression.of(self.page_id, place, promoted=self.promoted)


@dataclass(frozen=True, slots=True)
class SearchResult:
    """A page that was found. ``changed_at`` is its last significant change, in UTC.

    ``is_partial``: some of the words are not on it. ``marks`` are where the words that were found
    begin and end in ``snippet``, which is empty if the page's bytes are not kept. ``is_new``: it
    was promoted to its place because it was never looked at. ``showing`` is the record of its place
    in the list, with the id in links to it.
    """

    url: str
    title: str
    changed_at: datetime
    score: float
    snippet: str
    marks: tuple[tuple[int, int], ...]
    is_partial: bool
    is_new: bool
    showing: Impression
    #: The shard that holds the page; 0 in a file.
    shard: int = 0

    def as_json(self, *, linked: bool = False) -> dict[str, object]:
        """Return the result as verbs and ``/v1`` print it; ``linked``: with its link."""
        told = asdict(self) | {"changed_at": iso(self.changed_at.timestamp())}
        del told["showing"], told["shard"]
        return told | ({"open": link_to(self.showing)} if linked else {})


class Audience(Protocol):
    """The users who see lists."""

    @property
    def links(self) -> bool:
        """True if lists that are sent link to where openings are noted."""

    @property
    def arranges(self) -> bool:
        """True if a list may be shown in another order than by relevance."""

    def arranged(self, found: Sequence[RankedPage], count: int, seed: int) -> list[RankedPage]:
        """Return the first ``count`` pages of a list, in the order in which they are shown.

        The same ``seed`` gives the same ones, so that a longer list begins as a shorter one.
        """

    def recording(
        self, made_for: MadeFor, at: float, listed: Sequence[Impression]
    ) -> Callable[[Connection], bool]:
        """Return what notes a list that was shown, in a transaction of the store."""


#: Entry points that give :class:`Audiences`; the first one is used.
AUDIENCES: Final = "freshet.audiences"


class Audiences(Protocol):
    """Record of the results that people open: a module with this function, or an object."""

    async def audience_of(self, db: Reader, settings: Settings, now: float) -> Audience | None:
        """Return the audience of a store so far; None if lists are not recorded."""

    def nobody(self, settings: Settings) -> Audience | None:
        """Return an audience that has not opened anything; None if lists are not recorded."""


def _audiences() -> Audiences | None:
    return next(iter(loaded(AUDIENCES).values()), None)


async def audience_in(db: Reader, settings: Settings, now: float) -> Audience | None:
    """Return the audience of a store; None if lists are not recorded."""
    known = _audiences()
    return None if known is None else await known.audience_of(db, settings, now)


async def audience_of(library: Library, settings: Settings, now: float) -> Audience | None:
    """Return the audience of a library; lists of a folder are ordered by relevance alone."""
    known = _audiences()
    if known is None:
        return None
    if library.shards is not None:
        return known.nobody(settings)
    return await library.one(0, asking(audience_in, settings=settings, now=now))


async def seed_of(db: Reader, words: str, now: float) -> int:
    """Return the seed of a list: the same for the same words in this store today."""
    epoch = (await changefeed.position(db, "0")).epoch
    text = f"{epoch} {now // _DAY_S:.0f} {words}"
    return int.from_bytes(blake2b(text.encode("utf-8", "replace"), digest_size=8).digest())


def link_to(showing: Impression) -> str:
    """Return the path on the server that notes the opening of a page, and leads on to it."""
    return f"/o/{showing.showing_id:016x}"


async def record(
    path: Path, audience: Audience, made_for: MadeFor, at: float, listed: Sequence[Impression]
) -> None:
    """Record a list that was shown, while another process may write the store."""
    await note(path, audience.recording(made_for, at, listed))


async def note(path: Path, work: Callable[[Connection], object]) -> None:
    """Record lists and openings; a failure to record does not stop the list."""
    try:
        await asyncio.to_thread(partial(write_beside, path, work))
    except StoreError as error:
        log.warning("what is shown and opened is not noted: %s", error)
