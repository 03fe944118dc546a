"""``qdrant:FOLDER`` and ``qdrant:http://HOST:6333/COLLECTION``: points in Qdrant.

A passage is a point: its id is the passage's id as a UUID, its payload has the passage's fields.
The place is the only point of the collection ``COLLECTION-place``. Qdrant has no transactions, so
the place is written after the points, and writing the same points twice changes nothing.
"""

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final
from uuid import UUID

from freshet.crawler.extensions.connectors.errors import TargetError, TargetLost
from freshet.crawler.extensions.connectors.targets import (
    Batch,
    HeldPassage,
    TargetPlace,
    dated_row,
    require,
)

_COLLECTION: Final = "passages"
_PAGE: Final = 1_000
#: Points of one request.
_POINTS: Final = 200


def connect(address: str) -> "QdrantTarget":
    """Open the folder of an address, or connect to its server."""
    require("Qdrant", "qdrant", "qdrant_client")
    return QdrantTarget(address.partition(":")[2])


class QdrantTarget:
    """Passages and vectors in Qdrant; as a :class:`.targets.Target`."""

    def __init__(self, where: str) -> None:
        from qdrant_client import QdrantClient, models  # noqa: PLC0415 - an extra

        self._where, self._models = where, models
        with self._told():
            if where.startswith(("http://", "https://")):
                url, _, name = where.rstrip("/").rpartition("/")
                if not url.partition("//")[2]:
                    raise TargetError(
                        f"{where}: add the name of the collection: qdrant:{where}/passages"
                    )
                # It would print warnings about a server that does not answer.
                self._name = name
                self._client = QdrantClient(url=url, check_compatibility=False)
            else:
                self._name, self._client = _COLLECTION, self._local(where)

    @staticmethod
    def _local(folder: str) -> Any:
        from qdrant_client import QdrantClient  # noqa: PLC0415 - an extra

        try:
            return QdrantClient(path=folder)
        except (KeyError, TypeError) as error:
            raise TargetError(f"{folder}: not a Qdrant folder; name another one") from error

    @contextmanager
    def _told(self) -> Iterator[None]:
        from qdrant_client.http import exceptions  # noqa: PLC0415 - an extra

        try:
            yield
        except exceptions.ResponseHandlingException as error:
            raise TargetLost(f"{self._where}: {error}") from error
        except exceptions.UnexpectedResponse as error:
            kind = TargetLost if (error.status_code or 0) >= 500 else TargetError
            raise kind(f"{self._where}: answers {error.status_code}") from error
        except sqlite3.Error as error:
            # A folder is an SQLite file.
            why = f"{error}; make room or name another folder"
            raise TargetError(f"{self._where}: {why}") from error
        except (OSError, RuntimeError, ValueError) as error:
            line = next(iter(str(error).splitlines()), type(error).__name__)
            raise TargetError(f"{self._where}: {line}") from error

    @property
    def _places(self) -> str:
        return f"{self._name}-place"

    def place(self) -> TargetPlace | None:
        """Return the place of the collection."""
        with self._told():
            if not self._client.collection_exists(self._places):
                return None
            found = self._client.retrieve(self._places, [1], with_payload=True)
            return TargetPlace.read(found[0].payload) if found else None

    def _points(self, **wanted: Sequence[str]) -> Iterator[Any]:
        """Yield the points with one of the wanted values in one of the fields."""
        if not self._client.collection_exists(self._name):
            return
        models, after = self._models, None
        fields = [
            models.FieldCondition(key=key, match=models.MatchAny(any=[*values]))
            for key, values in wanted.items()
        ]
        while True:
            points, after = self._client.scroll(
                self._name, scroll_filter=models.Filter(should=fields), limit=_PAGE, offset=after,
                with_payload=["headings", "markdown"], with_vectors=True,
            )  # fmt: skip
            yield from points
            if after is None:
                return

    def held(self, urls: Sequence[str], texts: Sequence[str]) -> list[HeldPassage]:
        """Return the passages of these pages, and the passages with these texts."""
        with self._told():
            return [
                HeldPassage(
                    UUID(str(it.id)).hex, tuple(it.payload["headings"]), it.payload["markdown"],
                    it.vector,
                )
                for it in self._points(page_url=urls, markdown=texts)
            ]  # fmt: skip

    def apply(self, batch: Batch) -> None:
        """Replace pages, then the place."""
        if not batch.after.model:
            raise TargetError(f"{self._where}: Qdrant has no points without vectors; give --embed")
        models, rows = self._models, dict[str, dict[str, Any]]()
        for row in (row for page in batch.pages for row in page.rows()):
            rows[row["id"]] = dated_row(row) | {"generation": batch.after.generation}
        with self._told():
            self._require_collections(batch.after.dimensions)
            urls = [page.url for page in batch.pages]
            gone = {UUID(str(it.id)).hex for it in self._points(page_url=urls)} - rows.keys()
            if gone:
                ids = models.PointIdsList(points=[str(UUID(name)) for name in gone])
                self._client.delete(self._name, ids)
            self._write_new(batch, rows)
            for name in rows.keys() - batch.vectors.keys():
                self._client.overwrite_payload(self._name, rows[name], [str(UUID(name))])
            self._keep(batch.after)

    def _write_new(self, batch: Batch, rows: Mapping[str, dict[str, Any]]) -> None:
        """Write the points that have vectors."""
        points = [
            self._models.PointStruct(
                id=str(UUID(name)), vector=[*map(float, vector)], payload=rows[name]
            )
            for name, vector in batch.vectors.items()
        ]
        for begin in range(0, len(points), _POINTS):
            self._client.upsert(self._name, points[begin : begin + _POINTS])

    def _require_collections(self, dimensions: int) -> None:
        models = self._models
        for name, size in ((self._name, dimensions), (self._places, 1)):
            if size and not self._client.collection_exists(name):
                config = models.VectorParams(size=size, distance=models.Distance.COSINE)
                self._client.create_collection(name, vectors_config=config)

    def finish(self, before: TargetPlace, after: TargetPlace) -> None:
        """Delete the points of older generations, then store the place."""
        models = self._models
        old = models.FieldCondition(key="generation", range=models.Range(lt=after.generation))
        with self._told():
            self._require_collections(0)
            if self._client.collection_exists(self._name):
                chosen = models.FilterSelector(filter=models.Filter(must=[old]))
                self._client.delete(self._name, chosen)
            self._keep(after)

    def _keep(self, place: TargetPlace) -> None:
        point = self._models.PointStruct(id=1, vector=[1.0], payload=place.as_json())
        self._client.upsert(self._places, [point])

    def close(self) -> None:
        """Let others open the folder."""
        self._client.close()
