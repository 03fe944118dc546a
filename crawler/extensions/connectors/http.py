"""``http://…`` and ``https://…``: batches in JSON for any HTTP service.

``GET URL`` answers with the place that the receiver has (``{"place": {…}}``), or 404 before the
first. ``POST URL`` brings pages and the place after them, which the receiver keeps with them, or
``{"finish": true}`` with a place: all pages of an older generation go then. Both are sent again
until the answer is 2xx. A receiver that adds ``"held": true`` to its place is asked which passages
it has with vectors, and gets no vectors of those.
"""

import json
from collections.abc import Sequence
from http.client import HTTPException
from typing import Any, Final
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from tenacity import Retrying, retry_if_exception_type, stop_after_attempt
from tenacity.wait import wait_random_exponential

from freshet.crawler.extensions.connectors.errors import TargetError, TargetLost
from freshet.crawler.extensions.connectors.targets import Batch, HeldPassage, TargetPlace, dated_row

_ATTEMPTS: Final = 5
_LONGEST_WAIT_S: Final = 10.0
_TIME_LIMIT_S: Final = 60.0


def connect(address: str) -> "HttpTarget":
    """Return the receiver at a URL."""
    return HttpTarget(address)


class HttpTarget:
    """A receiver of batches over HTTP; as a :class:`.targets.Target`."""

    def __init__(self, url: str) -> None:
        self._url, self._tells_held = url, False

    def place(self) -> TargetPlace | None:
        """Ask for the place."""
        told = self._ask(None)
        if told is None:
            return None
        try:
            answer = json.loads(told)
            self._tells_held = answer.get("held") is True
            return TargetPlace.read(answer["place"])
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            why = 'GET must answer with the last {"place": {…}} that was posted, or 404'
            raise TargetError(f"{self._url}: {why}") from error

    def held(self, urls: Sequence[str], texts: Sequence[str]) -> list[HeldPassage]:
        """Ask which passages of these pages the receiver has, if it can answer that."""
        if not self._tells_held:
            return []
        told = self._ask({"held": [*urls]}) or b""
        try:
            return [HeldPassage(str(name)) for name in json.loads(told)["held"]]
        except (ValueError, TypeError, KeyError) as error:
            why = '{"held": [URL, …]} is to be answered with {"held": [ID, …]}'
            raise TargetError(f"{self._url}: {why}") from error

    def apply(self, batch: Batch) -> None:
        """Send pages."""
        pages = []
        for page in batch.pages:
            rows = [dated_row(row) for row in page.rows()]
            for row in rows:
                if (vector := batch.vectors.get(row["id"])) is not None:
                    row["embedding"] = [*map(float, vector)]
            pages.append({"url": page.url, "chunks": rows})
        self._ask({"pages": pages, "place": batch.after.as_json()})

    def finish(self, before: TargetPlace, after: TargetPlace) -> None:
        """Say that a generation is whole."""
        self._ask({"finish": True, "place": after.as_json()})

    def _ask(self, message: dict[str, Any] | None) -> bytes | None:
        """Return the answer to a message, or to GET; None of 404 there."""
        retrying = Retrying(
            stop=stop_after_attempt(_ATTEMPTS),
            wait=wait_random_exponential(max=_LONGEST_WAIT_S),
            retry=retry_if_exception_type(TargetLost),
            reraise=True,
        )
        body = None if message is None else json.dumps(message).encode()
        answer: bytes | None = retrying(self._asked_once, body)
        return answer

    def _asked_once(self, body: bytes | None) -> bytes | None:
        headers = {"Content-Type": "application/json"}
        try:
            # The entry point gives the scheme: http or https.
            asked = Request(self._url, body, headers)  # noqa: S310
            with urlopen(asked, timeout=_TIME_LIMIT_S) as response:  # noqa: S310
                told: bytes = response.read()
                return told
        except HTTPError as error:
            # It holds the connection.
            with error:
                if body is None and error.code == 404:
                    return None
                if error.code == 429 or error.code >= 500:
                    raise TargetLost(f"{self._url}: answers {error.code}") from error
                said = " ".join(error.read(200).decode("utf-8", "replace").split())
                raise TargetError(f"{self._url}: answers {error.code}: {said}") from error
        except (OSError, HTTPException) as error:
            raise TargetLost(f"{self._url}: {error}") from error
        except ValueError as error:
            raise TargetError(f"{self._url}: {error}") from error

    def close(self) -> None:
        """Do nothing: no connection is kept."""
