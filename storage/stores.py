"""The door to stores: that of a file, or those of the shards of a folder.

Whoever reads goes through :func:`open_stores`; nothing else knows how shards are stored.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Container, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from freshet.storage.database import SHARDS_FILE, reading
from freshet.storage.errors import StoreError

if TYPE_CHECKING:
    from freshet.storage.shards import Shards

T = TypeVar("T")


def open_stores(path: Path) -> Stores:
    """Return the stores at a path; raises as :class:`Stores`."""
    return Stores(path)


def is_folder(path: Path) -> bool:
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


def shards_of(folder: Path) -> Shards:
    """Return the shards of a folder; raises StoreError if its ``shards.toml`` is not valid."""
    from freshet.storage.shards import Shards  # noqa: PLC0415 - most stores are files

    return Shards.read(folder)


class Stores:
    """The stores at a path: the one of a file, or those of a folder's shards.

    Attributes:
        shards: the shards of the folder, None for a file.
        paths: the file, or those of the shards.
        down: by its number, why a shard could not be read lately.
    """

    def __init__(self, path: Path) -> None:
        """Raise StoreError if the path is a folder whose ``shards.toml`` is not valid."""
        self.shards = shards_of(path) if is_folder(path) else None
        self.paths = [path] if self.shards is None else self.shards.paths()
        self.down: dict[int, str] = {}

    def of(self, name: str) -> int:
        """Return the shard of a registrable domain, or of a group of hosts; 0 of a file."""
        return 0 if self.shards is None else self.shards.of(name)

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
