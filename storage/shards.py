"""A sharded store: a folder with ``shards.toml`` and one ordinary store for each shard.

*Invariant.* A registrable domain, and a group of hosts that share one host queue, belongs to one
shard, by jump consistent hash (Lamping and Veach, 2014). Consequence: politeness, robots.txt and
what is learnt of a site stay within a shard, and of N + 1 shards the new one takes 1/(N + 1) of
the domains, from all others alike.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Final, TypeVar

from freshet.storage.database import SHARDS_FILE
from freshet.storage.errors import StoreError, trouble

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


def _jump(key: int, buckets: int) -> int:
    """Return the bucket of a 64-bit key (the algorithm of the paper's figure 1)."""
    place, following = -1, 0
    while following < buckets:
        place = following
        key = (key * 2_862_933_555_777_941_757 + 1) % 2**64
        following = int((place + 1) * (2**31 / ((key >> 33) + 1)))
    return place
