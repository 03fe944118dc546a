"""A sharded store: a folder with ``shards.toml`` and one ordinary store for each shard.

*Invariant.* A registrable domain, and a group of hosts that share one host queue, belongs to one
shard, by jump consistent hash (Lamping and Veach, 2014). Consequence: politeness, robots.txt and
what is learnt of a site stay within a shard, and of N + 1 shards the new one takes 1/(N + 1) of
the domains, from all others alike.
"""

from __future__ import annotations

import tomllib
from collections.abc import Awaitable, Callable, Container, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from sqlite3 import Connection
from typing import Final, NamedTuple, TypeVar

from freshet.storage.database import SHARDS_FILE, reading
from freshet.storage.errors import StoreError
from freshet.storage.files import trouble

T = TypeVar("T")

_FORMAT: Final = 1
_HASH: Final = "jump-blake2b"
_MOST: Final = 1_000
_KEYS: Final = frozenset({"format", "epoch", "shards", "hash"})


@dataclass(frozen=True, slots=True)
class Shards:
    """The shards of a folder. ``epoch`` is raised whenever a domain may have changed its shard.

    ``before`` is their number before a split or merge, while that is under way.
    """

    folder: Path
    count: int
    epoch: int = 1
    before: int | None = None

    @classmethod
    def read(cls, folder: Path) -> Shards:
        """Read ``shards.toml``.

        Raises:
            StoreError: it cannot be read, or a key is missing, unknown or wrong.
        """
        file = folder / SHARDS_FILE
        try:
            told = tomllib.loads(file.read_text("utf-8"))
        except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
            why = getattr(error, "strerror", None) or error
            raise StoreError(f"{file}: {why}; restore it from a backup") from error
        if told.keys() - {"before"} != _KEYS:
            raise StoreError(f"{file}: has {', '.join(told)}; it needs {', '.join(sorted(_KEYS))}")
        if (told["format"], told["hash"]) != (_FORMAT, _HASH):
            raise StoreError(
                f"{file}: of format {told['format']} and hash {told['hash']}; "
                f"this Freshet reads format {_FORMAT} and hash {_HASH}; upgrade Freshet"
            )
        for key, most in (("shards", _MOST), ("epoch", 2**53), ("before", _MOST)):
            if key in told and (type(told[key]) is not int or not 1 <= told[key] <= most):
                raise StoreError(f"{file}: {key} = {told[key]!r}: accepted is 1 to {most}")
        return cls(folder, told["shards"], told["epoch"], told.get("before"))

    def require_settled(self) -> None:
        """Raise StoreError while domains are on their way to other shards."""
        if self.before is not None:
            verb = "split" if self.before <= self.count else "merge"
            raise StoreError(
                f"{self.folder}: a {verb} from {self.before} to {self.count} is under way: "
                f"`freshet shards {verb} {self.count} --db {self.folder}` goes on with it"
            )

    def write(self) -> None:
        """Write ``shards.toml``, whole or not at all; the folder is made if it is not there.

        Raises:
            StoreError: it cannot be written.
        """
        file = self.folder / SHARDS_FILE
        before = "" if self.before is None else f"before = {self.before}\n"
        text = (
            f"# The shards of one store. `freshet shards split` and `merge` change their number.\n"
            f'format = {_FORMAT}\nepoch = {self.epoch}\nshards = {self.count}\nhash = "{_HASH}"\n'
            f"{before}"
        )
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            written = file.with_suffix(".toml.new")
            written.write_text(text, "utf-8")
            written.replace(file)
        except OSError as error:
            raise StoreError(trouble(file, error)) from error

    def path(self, shard: int) -> Path:
        """Return the store of a shard, counted from 0."""
        return self.folder / f"{shard:04}.db"

    def paths(self) -> list[Path]:
        """Return the stores of all shards."""
        return [self.path(shard) for shard in range(self.count)]

    def of(self, name: str) -> int:
        """Return the shard of a registrable domain, or of a group of hosts.

        >>> [Shards(Path("crawl"), 4).of(name) for name in ("example.org", "example.com")]
        [1, 0]
        """
        key = int.from_bytes(blake2b(name.encode("utf-8", "replace"), digest_size=8).digest())
        return _jump(key, self.count)


def is_sharded(path: Path) -> bool:
    """Return whether a path is the folder of a sharded store."""
    return (path / SHARDS_FILE).is_file()


def require_there(path: Path) -> None:
    """Raise StoreError unless the store of a shard is on this machine."""
    if not path.exists():
        why = f"it was moved to {path.readlink()}" if path.is_symlink() else "there is no such file"
        raise StoreError(
            f"{path}: {why}: bring it back or restore a backup, unless it is new or elsewhere"
        )


def none_answers(down: Mapping[int, str]) -> StoreError:
    """Return the error where all shards are down: the first two reasons that differ."""
    return StoreError("; ".join(list(dict.fromkeys(down.values()))[:2]))


class Lease(NamedTuple):
    """The number of a shard, in its store, and how often it has been taken."""

    shard: int
    epoch: int


def lease_of(connection: Connection) -> Lease | None:
    """Return the lease of a shard's store, None in a store that is no shard."""
    row = connection.execute("SELECT shard, epoch FROM lease").fetchone()
    return None if row is None else Lease(*row)


def take_lease(connection: Connection, shard: int) -> int:
    """Take a shard, so that whoever had it can commit nothing any more; return the new epoch."""
    sql = "INSERT INTO lease VALUES (1, ?, 1) ON CONFLICT DO UPDATE SET epoch = epoch + 1"
    connection.execute(sql, (shard,))
    return int(connection.execute("SELECT epoch FROM lease").fetchone()[0])


class Stores:
    """The stores at a path: the one of a file, or those of a folder's shards.

    Attributes:
        shards: the shards of the folder, None for a file.
        paths: the file, or those of the shards.
        down: by its number, why a shard could not be read lately.
    """

    def __init__(self, path: Path) -> None:
        """Raise StoreError if the path is a folder whose ``shards.toml`` is not valid."""
        self.shards = Shards.read(path) if is_sharded(path) else None
        self.paths = [path] if self.shards is None else self.shards.paths()
        self.down: dict[int, str] = {}

    async def each(
        self, read: Callable[[Path], Awaitable[T]], among: Container[Path] | None = None
    ) -> dict[int, T]:
        """Return by shard what ``read`` returns of its store, if that is ``among`` those wanted.

        A file counts as shard 0.

        Raises:
            StoreError: the file cannot be read, or no shard can.
        """
        found, self.down = dict[int, T](), dict[int, str]()
        for shard, path in enumerate(self.paths):
            if among is not None and path not in among:
                continue
            try:
                if self.shards is not None:
                    # What opens a store for writing would make one.
                    require_there(path)
                found[shard] = await read(path)
            except StoreError as error:
                if self.shards is None:
                    raise
                self.down[shard] = str(error)
        if len(self.down) == len(self.paths):
            raise none_answers(self.down)
        return found

    async def readable(self) -> dict[int, Path]:
        """Return the stores that can be read; raises as :meth:`each`."""
        return await self.each(_readable)


async def _readable(path: Path) -> Path:
    async with reading(path):
        return path


def _jump(key: int, buckets: int) -> int:
    """Return the bucket of a 64-bit key (the algorithm of the paper's figure 1)."""
    place, following = -1, 0
    while following < buckets:
        place = following
        key = (key * 2_862_933_555_777_941_757 + 1) % 2**64
        following = int((place + 1) * (2**31 / ((key >> 33) + 1)))
    return place
