"""``parquet:FOLDER``: passages, and vectors if there are some, as Parquet files.

``FOLDER/current`` is a link to a folder with the files of one moment and the cursor. A batch makes
the next one beside it, of links to the files that stay and of new ones, and then the link leads
there. *Invariant*: what ``current`` leads to is whole, at any moment.
"""

import fcntl
import json
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from freshet.crawler.extensions.connectors.errors import TargetError, stale
from freshet.crawler.extensions.connectors.targets import (
    COLUMNS,
    Batch,
    HeldPassage,
    TargetPlace,
    require,
)
from freshet.storage.database import sync

_TYPES: Final = {
    "TEXT": "VARCHAR", "INTEGER": "BIGINT", "LIST": "VARCHAR[]", "TIME": "DOUBLE",
}  # fmt: skip
#: Files with fewer rows are merged once there are this many.
_SMALL_ROWS: Final = 100_000
_MOST_SMALL: Final = 16
_CURRENT: Final = "current"
_PLACE: Final = "place.json"
_LOCK: Final = ".lock"
_FILES: Final = "*.parquet"


def connect(address: str) -> "ParquetTarget":
    """Open the folder of an address, or make it."""
    require("Parquet", "parquet", "duckdb")
    return ParquetTarget(Path(address.partition(":")[2]))


class ParquetTarget:
    """Passages in a folder of Parquet files; as a :class:`.targets.Target`."""

    def __init__(self, folder: Path) -> None:
        import duckdb  # noqa: PLC0415 - an extra

        self._folder, self._error = folder, duckdb.Error
        with self._told():
            folder.mkdir(parents=True, exist_ok=True)
            self._lock = os.open(folder / _LOCK, os.O_CREAT | os.O_RDWR, 0o644)
            try:
                fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(self._lock)
                raise stale(str(folder)) from None
            self._remove_left()
            self._db = duckdb.connect(":memory:")

    @contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            why = error.strerror or error
            raise TargetError(f"{self._folder}: {why}; make room or name another folder") from error
        except (self._error, ValueError) as error:
            said = str(error).splitlines()[0]
            raise TargetError(
                f"{self._folder}: {said}; make room or name another folder"
            ) from error

    def _remove_left(self) -> None:
        """Remove unfinished and outdated files of a program that was killed."""
        now = self._now()
        for each in self._folder.iterdir():
            if each.is_dir() and not each.is_symlink() and each != now and each.name[0] == "v":
                shutil.rmtree(each)

    def _now(self) -> Path | None:
        link = self._folder / _CURRENT
        return self._folder / link.readlink() if link.is_symlink() else None

    def _files(self) -> list[str]:
        return sorted(map(str, (self._now() or self._folder / _CURRENT).glob(_FILES)))

    def place(self) -> TargetPlace | None:
        """Return the place of the folder."""
        with self._told():
            now = self._now()
            return (
                None
                if now is None
                else TargetPlace.read(json.loads((now / _PLACE).read_text("utf-8")))
            )

    def held(self, urls: Sequence[str], texts: Sequence[str]) -> list[HeldPassage]:
        """Return the passages of these pages, and the passages with these texts."""
        sql = (
            "SELECT id, headings, markdown, embedding FROM read_parquet($files) "
            "WHERE embedding IS NOT NULL "
            "AND (list_contains($urls, page_url) OR markdown IN (SELECT unnest($texts)))"
        )
        with self._told():
            place, files = self.place(), self._files()
            if place is None or not place.dimensions or not files:
                return []
            some = {"files": files, "urls": [*urls], "texts": [*texts]}
            found = self._db.execute(sql, some).fetchall()
        return [HeldPassage(name, tuple(it), text, vector) for name, it, text, vector in found]

    def apply(self, batch: Batch) -> None:
        """Replace pages: the next folder has them in a new file, and the others without them."""
        with self._told(), self._next(batch.before, batch.after) as new:
            urls = [page.url for page in batch.pages]
            files = self._files()
            self._load(batch, files)
            self._copy("SELECT * FROM incoming", new)
            touched = "list_contains($urls, page_url)"
            for file in files:
                some = {"file": file, "urls": urls}
                sql = f"SELECT count(*) FROM read_parquet($file) WHERE {touched}"
                if self._db.execute(sql, some).fetchall() == [(0,)]:
                    os.link(file, new / Path(file).name)
                else:
                    self._copy(f"SELECT * FROM read_parquet($file) WHERE NOT {touched}", new, some)
            self._merge(new)

    def _load(self, batch: Batch, files: Sequence[str]) -> None:
        """Make a table of the rows of a batch; passages that are there keep their vectors."""
        dimensions = batch.after.dimensions
        declared = {name: _TYPES[kind] for name, kind in COLUMNS.items()}
        declared |= {"generation": "BIGINT"}
        declared |= {"embedding": f"FLOAT[{dimensions}]"} if dimensions else {}
        with tempfile.NamedTemporaryFile("w", suffix=".jsonl", dir=self._folder) as rows:
            rows.writelines(f"{json.dumps(row)}\n" for row in _rows(batch))
            rows.flush()
            times = ", ".join(
                f"make_timestamp(CAST(round({name} * 1e6) AS BIGINT)) AS {name}"
                for name, kind in COLUMNS.items()
                if kind == "TIME"
            )
            self._db.execute(
                f"CREATE OR REPLACE TABLE incoming AS SELECT * REPLACE ({times}) "
                "FROM read_json($file, columns = $columns, format = 'newline_delimited', "
                "maximum_object_size = 1073741824)",
                {"file": rows.name, "columns": declared},
            )
        if dimensions and files:
            self._db.execute(
                "UPDATE incoming SET embedding = old.embedding FROM read_parquet(?) AS old "
                "WHERE old.id = incoming.id AND incoming.embedding IS NULL", [files],
            )  # fmt: skip

    def _copy(self, select: str, folder: Path, values: Mapping[str, Any] | None = None) -> None:
        """Write the rows of a statement to a new file of a folder, if there are some."""
        found = self._db.execute(f"CREATE OR REPLACE TEMP TABLE written AS {select}", values)
        del found
        if self._db.execute("SELECT count(*) FROM written").fetchall() == [(0,)]:
            return
        with tempfile.NamedTemporaryFile(
            prefix="chunks-", suffix=".parquet", dir=folder, delete=False
        ) as file:
            self._db.table("written").write_parquet(file.name, compression="zstd")
            os.fsync(file.fileno())
        Path(file.name).chmod(0o644)

    def _merge(self, folder: Path) -> None:
        """Put small files together where there are many."""
        sql = "SELECT file_name, num_rows FROM parquet_file_metadata(?)"
        files = sorted(map(str, folder.glob(_FILES)))
        rows = self._db.execute(sql, [files]).fetchall() if files else []
        small = [name for name, count in rows if count < _SMALL_ROWS]
        if len(small) > _MOST_SMALL:
            some = {"files": small}
            self._copy("SELECT * FROM read_parquet($files, union_by_name = true)", folder, some)
            for name in small:
                Path(name).unlink()

    def finish(self, before: TargetPlace, after: TargetPlace) -> None:
        """Drop the rows of older generations."""
        with self._told(), self._next(before, after) as new:
            for file in self._files():
                some = {"file": file, "generation": after.generation}
                of = "FROM read_parquet($file) WHERE generation"
                if self._db.execute(f"SELECT count(*) {of} < $generation", some).fetchall()[0][0]:
                    self._copy(f"SELECT * {of} >= $generation", new, some)
                else:
                    os.link(file, new / Path(file).name)

    @contextmanager
    def _next(self, before: TargetPlace, after: TargetPlace) -> Iterator[Path]:
        """Yield the next folder, to which the link leads when it is whole."""
        now = self._now()
        if now is not None and self.place() != before:
            raise stale(str(self._folder))
        new = Path(tempfile.mkdtemp(prefix="v", dir=self._folder))
        try:
            yield new
            new.chmod(0o755)
            with (new / _PLACE).open("w", encoding="utf-8") as file:
                file.write(json.dumps(after.as_json()))
                file.flush()
                os.fsync(file.fileno())
            sync(new)
            link = self._folder / f"{_CURRENT}.new"
            link.unlink(missing_ok=True)
            link.symlink_to(new.name)
            link.replace(self._folder / _CURRENT)
            sync(self._folder)
        except BaseException:
            shutil.rmtree(new, ignore_errors=True)
            raise
        if now is not None:
            shutil.rmtree(now)

    def close(self) -> None:
        """Let others write the folder."""
        self._db.close()
        os.close(self._lock)


def _rows(batch: Batch) -> Iterator[dict[str, Any]]:
    """Yield the rows of a batch, with the vectors that it brings."""
    for row in (row for page in batch.pages for row in page.rows()):
        row["generation"] = batch.after.generation
        if batch.after.dimensions:
            vector = batch.vectors.get(row["id"])
            row["embedding"] = None if vector is None else [*map(float, vector)]
        yield row
