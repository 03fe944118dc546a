"""The schema's history, and tables that extensions keep, each with a schema version of its own.

The first migration makes the schema of 0.1.0. Those of the time before are not kept, nor are their
stores read; from 0.1.0 on each change of the schema is a further file, applied once, in one
transaction.
"""

import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from sqlite3 import Connection
from typing import Protocol

from freshet.entry_points import folder, loaded
from freshet.storage.errors import StoreError
from freshet.storage.records import Visit


@cache
def migrations() -> tuple[tuple[int, str, str], ...]:
    """Return number, name and SQL of all steps in order, from ``NNNN_name.sql`` in their folder.

    The number becomes ``PRAGMA user_version``.
    """
    steps = [
        f
        for f in files("freshet.storage").joinpath("migrations").iterdir()
        if f.name.endswith(".sql")
    ]
    return tuple(
        (int(f.name[:4]), f.name[5:-4], f.read_text("utf-8"))
        for f in sorted(steps, key=lambda f: f.name)
    )


def oldest() -> int:
    """Return the number of the oldest schema that can be migrated."""
    return migrations()[0][0]


def newest() -> int:
    """Return the number of the last migration, which is that of the schema."""
    return migrations()[-1][0]


#: Entry points that give :class:`Tables`, by the name of the extension.
GROUP = "freshet.tables"
#: Entry points that give functions of a run's settings that make a :class:`Recording`.
RECORDERS = "freshet.recorders"


class Tables(Protocol):
    """Tables of an extension: a module, which is loaded whenever a store is opened for writing.

    They refer to the tables of the core by foreign keys, and delete their rows by triggers: where a
    row of the core is deleted, and where a page is forgotten (a row in ``forgetting``). So a store
    is written on where the extension is missing. Of the core's tables they change none. A table of
    an earlier version may be there already: a step that makes one says ``IF NOT EXISTS``.
    """

    __name__: str

    @property
    def STEPS(self) -> Sequence[str]:  # noqa: N802 - a constant of a module
        """The SQL scripts that make the tables, in order: the version of a schema is their number.

        Each is a file in the folder of the module. A released script is never changed: a further
        one follows it.
        """

    @property
    def DATED(self) -> Mapping[str, Sequence[str]]:  # noqa: N802 - likewise
        """Columns with times to come, by table: they are set to now when a clock was set back."""


class Recording:
    """Writes rows of an extension in the transaction of what they are about; by itself none."""

    def record(
        self, db: Connection, visits: Sequence[Visit], documents: Collection[int], now: float
    ) -> None:
        """Write what these visits give rise to, after their rows; called on the writer's thread.

        The ids of the pages whose documents may be others now are in ``documents``. Without
        visits: other rows were written, such as amendments of verdicts.
        """

    def rolled_back(self) -> None:
        """Forget what was cached of the store: the transaction has failed."""


class Indexed(Protocol):
    """An index of pages by their text, outside of runs: a module, or an object."""

    def lines(self, title: str | None, texts: Sequence[str], kinds: Sequence[str]) -> str:
        """Return what the index has to know of a text: a title, and blocks with their kinds."""

    def renew(self, db: Connection, words: Mapping[int, str]) -> None:
        """Replace what :meth:`lines` gave of indexed pages, by their ids."""

    def forget(self, db: Connection, page_ids: Iterable[int]) -> None:
        """Delete what is held of pages that are forgotten, or leave the store."""

    def compact(self, db: Connection) -> None:
        """Leave nothing of what was deleted in the file."""

    def begin_like(self, db: Connection, other: Connection) -> None:
        """Make an index in a new store if another store has one."""


#: Entry points that give :class:`Indexed`, and more for runs; the first one is used.
INDEXES = "freshet.indexes"


def index() -> Indexed | None:
    """Return the index of pages that an extension keeps, if there is one."""
    return next(iter(loaded(INDEXES).values()), None)


def recorders(settings: object) -> list[Recording]:
    """Return what extensions write in the transactions of a run with these settings."""
    return [make(settings) for make in loaded(RECORDERS).values()]


def migrate(path: Path, connection: Connection) -> None:
    """Bring the tables of all extensions to their newest versions, each step in a transaction.

    Raises:
        StoreError: a newer version of an extension wrote the store.
    """
    stored = dict(connection.execute("SELECT name, version FROM extension"))
    for name, tables in _tables().items():
        version, newest = stored.get(name, 0), len(tables.STEPS)
        if version > newest:
            raise StoreError(
                f"{path}: its tables of the extension {name} have schema {version}, newer than the "
                f"{newest} that this one knows; upgrade it"
            )
        for number, step in enumerate(tables.STEPS[version:], version + 1):
            sql = (folder(tables.__name__) / step).read_text("utf-8")
            connection.executescript(f"BEGIN IMMEDIATE;\n{sql}")
            row = name, number, time.time()
            connection.execute("INSERT OR REPLACE INTO extension VALUES (?, ?, ?)", row)
            connection.execute("COMMIT")


def dated() -> dict[str, Sequence[str]]:
    """Return the columns with times to come of all extensions, by table."""
    return {name: columns for each in _tables().values() for name, columns in each.DATED.items()}


def _tables() -> Mapping[str, Tables]:
    return loaded(GROUP)
