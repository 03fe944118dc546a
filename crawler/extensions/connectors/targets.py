"""Targets of a synchronisation: their contents, and the Protocol of connectors.

A target holds the passages of a store, their vectors if it has a model, and its place in the
changefeed. *Invariant*: the place is written with the passages, in one transaction if the target
has transactions, else after them. Consequence: after a kill the synchronisation continues from the
place in the target, and writing the same passages twice changes nothing.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from importlib.util import find_spec
from typing import Any, Final, NamedTuple, Protocol, TypeAlias

from freshet.crawler.errors import UsageError, needs_extra
from freshet.crawler.extensions.connectors.errors import TargetError
from freshet.crawler.frontier.clock import iso
from freshet.crawler.read.chunks import Chunk
from freshet.entry_points import found, load

#: Entry points of connectors: a function that opens the target of an address, by its scheme.
CONNECTORS: Final = "freshet.connectors"

Vector: TypeAlias = Sequence[float]


@dataclass(frozen=True, slots=True)
class TargetPlace:
    """The place of a target in the changefeed, with the options that filled the target.

    A ``generation`` begins after a cursor was lost: all pages are written again, and the rest of
    the generation before is deleted once the new one ``is_whole``. ``dimensions`` is the length of
    the vectors of ``model``, 0 without vectors or before the first.
    """

    cursor: str = "0"
    generation: int = 1
    is_whole: bool = False
    chunk_chars: int = 0
    model: str = ""
    dimensions: int = 0

    def as_json(self) -> dict[str, Any]:
        """Return all of its fields."""
        return asdict(self)

    @classmethod
    def read(cls, said: Any) -> "TargetPlace":
        """Return the place that this JSON describes. Raises ValueError."""
        kinds = {each.name: type(each.default) for each in fields(cls)}
        if not isinstance(said, dict) or any(
            type(value) is not kinds.get(name) for name, value in said.items()
        ):
            raise ValueError(f"this is no place of `freshet sync`: {str(said)[:100]}")
        return cls(**said)


@dataclass(frozen=True, slots=True)
class PageContent:
    """The current passages of a page, none if it was deleted; times are in UTC."""

    url: str
    chunks: Sequence[Chunk] = ()
    fetched_at: float | None = None
    changed_at: float | None = None

    def rows(self) -> list[dict[str, Any]]:
        """Return the passages as rows, with the names of :data:`COLUMNS`."""
        said = {"page_url": self.url, "fetched_at": self.fetched_at, "changed_at": self.changed_at}
        return [each.as_json() | said for each in self.chunks]


#: Columns of a passage in every target, with their SQL types. TIME is in Unix seconds.
COLUMNS: Final[Mapping[str, str]] = {
    "id": "TEXT", "page_url": "TEXT", "url": "TEXT", "title": "TEXT", "language": "TEXT",
    "headings": "LIST", "position": "INTEGER", "previous": "TEXT", "next": "TEXT",
    "markdown": "TEXT", "fetched_at": "TIME", "changed_at": "TIME",
}  # fmt: skip


def dated_row(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row with its times in ISO 8601."""
    times = {name for name, kind in COLUMNS.items() if kind == "TIME"}
    return {
        name: iso(value) if name in times and value is not None else value
        for name, value in row.items()
    }


@dataclass(frozen=True, slots=True)
class Batch:
    """Pages that a target takes at once.

    ``pages`` replace the stored pages of their URLs. ``vectors`` has the vectors of passages that
    are new to the target, by id; the others keep theirs. ``before`` is the target's place,
    ``after`` the place to store.
    """

    pages: Sequence[PageContent]
    before: TargetPlace
    after: TargetPlace
    vectors: Mapping[str, Vector] = field(default_factory=dict)


class HeldPassage(NamedTuple):
    """A passage in a target, with its vector; None if the target does not return vectors."""

    id: str
    headings: tuple[str, ...] = ()
    markdown: str = ""
    vector: Vector | None = None


class Target(Protocol):
    """An index that is kept in step. Its functions raise :class:`TargetError`."""

    def place(self) -> TargetPlace | None:
        """Return the place that the target has, None of a new one."""

    def held(self, urls: Sequence[str], texts: Sequence[str]) -> list[HeldPassage]:
        """Return the passages that the target has with vectors: of these pages, or of these texts.

        Others may be among them.
        """

    def apply(self, batch: Batch) -> None:
        """Replace pages, and keep the place after them."""

    def finish(self, before: TargetPlace, after: TargetPlace) -> None:
        """Delete the rows of generations before the place's, and store the place."""

    def close(self) -> None:
        """Give back what is held."""


def opened(address: str) -> Target:
    """Open the target of an address, such as ``sqlite-vec:vectors.db``.

    Raises:
        UsageError: no connector has its scheme.
        TargetError: it cannot be opened.
    """
    scheme, _, rest = address.partition(":")
    connectors = {each.name: each for each in found(CONNECTORS)}
    if scheme not in connectors or not rest:
        known = ", ".join(f"{name}:" for name in connectors)
        raise UsageError(f"{address}: a target begins with one of {known}")
    target: Target = load(connectors[scheme])(address)
    return target


def require(feature: str, extra: str, *modules: str) -> None:
    """Raise TargetError where a connector's client is not installed."""
    if any(find_spec(module) is None for module in modules):
        raise TargetError(needs_extra(feature, extra))
