"""Vectors of passages: of a function in Python, or of a server that speaks OpenAI's embeddings."""

import inspect
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any, Final, Protocol

import aiohttp
from tenacity import AsyncRetrying, retry_if_exception_type, stop_after_attempt
from tenacity.wait import wait_random_exponential

from freshet.crawler.errors import UsageError
from freshet.crawler.extensions.connectors.errors import TargetError
from freshet.crawler.extensions.connectors.targets import Vector

#: The most characters of a text for a model: a line of code has no bound.
MOST_CHARS: Final = 8_000
#: Texts of one request; their vectors are written together.
TEXTS_AT_ONCE: Final = 64
_ATTEMPTS: Final = 8
_LONGEST_WAIT_S: Final = 60.0
_TIME_LIMIT_S: Final = 120.0


class Embedder(Protocol):
    """A model with a ``name``, by which a target knows its vectors."""

    @property
    def name(self) -> str:
        """The name of the model."""

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        """Return the vector of each text; raises TargetError."""


class FunctionEmbedder:
    """A function of a list of texts, named ``module:function``; it may be a coroutine function."""

    def __init__(self, name: str) -> None:
        """Import the function, also from the working directory.

        Raises:
            UsageError: there is none of that name.
        """
        self.name = name
        module, _, function = name.partition(":")
        if "" not in sys.path:
            sys.path.insert(0, "")
        try:
            self._embed: Callable[[list[str]], Any] = getattr(import_module(module), function)
        except (ImportError, AttributeError, ValueError) as error:
            raise UsageError(f"--embed {name}: {error}; name it as module:function") from error

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        """Return the vectors that the function returns; its exceptions become one line."""
        try:
            made = self._embed([*texts])
            if inspect.isawaitable(made):
                made = await made
            return [[*map(float, vector)] for vector in made]
        except Exception as error:
            raise TargetError(f"--embed {self.name} failed: {error!r}") from error


class _Passing(Exception):
    """A failure of a server that may pass."""


class HttpEmbedder:
    """A server that answers ``POST URL`` as OpenAI's ``/v1/embeddings`` does."""

    def __init__(self, url: str, model: str, key: str | None = None) -> None:
        """Ask the server at ``url`` for vectors of ``model``; ``key`` is sent as a bearer token."""
        self.name, self._url = model or url, url
        self._asked = {"model": model} if model else {}
        self._headers = {"Authorization": f"Bearer {key}"} if key else {}

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        """Return the vectors of all texts in batches; retry temporary failures."""
        found = list[Vector]()
        timeout = aiohttp.ClientTimeout(total=_TIME_LIMIT_S)
        async with aiohttp.ClientSession(headers=self._headers, timeout=timeout) as client:
            for begin in range(0, len(texts), TEXTS_AT_ONCE):
                found += await self._tried(client, texts[begin : begin + TEXTS_AT_ONCE])
        return found

    async def _tried(self, client: aiohttp.ClientSession, texts: Sequence[str]) -> list[Vector]:
        try:
            async for attempt in AsyncRetrying(
                stop=stop_after_attempt(_ATTEMPTS),
                wait=wait_random_exponential(max=_LONGEST_WAIT_S),
                retry=retry_if_exception_type(_Passing),
                reraise=True,
            ):
                with attempt:
                    return await self._ask(client, texts)
        except _Passing as error:
            raise TargetError(f"--embed-url {self._url}: {error}; run again later") from error
        raise AssertionError("tenacity ends by a result or an exception")

    async def _ask(self, client: aiohttp.ClientSession, texts: Sequence[str]) -> list[Vector]:
        try:
            async with client.post(self._url, json=self._asked | {"input": [*texts]}) as response:
                if response.status == 429 or response.status >= 500:
                    raise _Passing(f"the server answers {response.status}")
                if response.status != 200:
                    said = " ".join((await response.text())[:200].split())
                    why = f"the server answers {response.status}: {said}"
                    raise TargetError(f"--embed-url {self._url}: {why}")
                told = await response.json(content_type=None)
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise _Passing(str(error) or type(error).__name__) from error
        except ValueError as error:
            raise TargetError(f"--embed-url {self._url}: the answer is not JSON") from error
        try:
            rows = sorted(told["data"], key=lambda row: row["index"])
            return [row["embedding"] for row in rows]
        except (KeyError, TypeError) as error:
            why = "the response does not have the form of OpenAI's embeddings"
            raise TargetError(f"--embed-url {self._url}: {why}") from error


async def vectors_of(embedder: Embedder, texts: Sequence[str], dimensions: int) -> list[Vector]:
    """Return the vectors of texts, as many and as long as they must be.

    Raises:
        TargetError: they are not. ``dimensions`` is the target's number, 0 before the first write.
    """
    made = await embedder.embed([text[:MOST_CHARS] for text in texts])
    if len(made) != len(texts):
        raise TargetError(f"{embedder.name}: {len(made)} vectors for {len(texts)} texts")
    lengths = {len(vector) for vector in made} | ({dimensions} if dimensions else set())
    if len(lengths) > 1 or 0 in lengths:
        found = ", ".join(map(str, sorted(lengths - {dimensions} or lengths)))
        of = f"the target has {dimensions}" if dimensions else "they must be of one length"
        raise TargetError(f"{embedder.name}: vectors of {found} dimensions, but {of}")
    return made
