"""Where changes go: ``freshet.alert_receivers`` and ``freshet.connectors``, both to files."""

import json
from collections.abc import Sequence
from pathlib import Path

from freshet.crawler.extensions.alerts.receivers import Delivery
from freshet.crawler.extensions.alerts.tables import Message
from freshet.crawler.extensions.connectors.targets import Batch, HeldPassage, TargetPlace


class Receiver:
    """Writes messages to the file of ``ledger://FILE``, a line each."""

    def __init__(self, url: str, _key: bytes | None, _timeout_s: float) -> None:
        self._file = Path(url.partition("://")[2])

    async def deliver(self, message: Message, _now: float) -> Delivery:
        """Append a message to the file."""
        with self._file.open("a") as file:
            file.write(f"{message.body}\n")
        return Delivery("taken")

    async def close(self) -> None:
        """Hold nothing."""


class Target:
    """Keeps the passages of ``ledger:FILE`` in one JSON file."""

    def __init__(self, address: str) -> None:
        self._file = Path(address.partition(":")[2])

    def _read(self) -> dict[str, dict[str, object]]:
        empty: dict[str, dict[str, object]] = {"place": {}, "pages": {}}
        return json.loads(self._file.read_text()) if self._file.exists() else empty

    def _write(self, pages: dict[str, object], place: TargetPlace) -> None:
        new = self._file.with_suffix(".new")
        new.write_text(json.dumps({"place": place.as_json(), "pages": pages}))
        new.replace(self._file)

    def place(self) -> TargetPlace | None:
        """Return the place in the file."""
        place = self._read()["place"]
        return TargetPlace.read(place) if place else None

    def held(self, urls: Sequence[str], texts: Sequence[str]) -> list[HeldPassage]:
        """Hold no vectors."""
        return []

    def apply(self, batch: Batch) -> None:
        """Replace pages."""
        pages = self._read()["pages"]
        for page in batch.pages:
            pages[page.url] = [chunk.markdown for chunk in page.chunks]
            if not page.chunks:
                del pages[page.url]
        self._write(pages, batch.after)

    def finish(self, _before: TargetPlace, after: TargetPlace) -> None:
        """Keep the place."""
        self._write(self._read()["pages"], after)

    def close(self) -> None:
        """Hold nothing."""
