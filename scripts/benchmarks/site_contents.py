"""The sites that the loopback server serves: what they answer, and the truth about it."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Protocol

_WORDS = 4_000
_TEXT_BYTES = 1 << 20
_PARAGRAPH_BYTES = 600


@dataclass(frozen=True, slots=True)
class Answer:
    """A response: its status, and all its bytes from the status line on, in pieces."""

    status: int
    pieces: Iterator[bytes]


class Site(Protocol):
    """What answers on an address."""

    @property
    def latency_s(self) -> float:
        """Seconds from a request to its answer."""

    def answer(self, path: str, headers: Mapping[str, str]) -> Answer:
        """The answer to a GET; header names are in lower case."""


@dataclass(frozen=True, slots=True)
class Calm:
    """A well-behaved site: pages ``/``, ``/p/1`` …, each linking to the ``links`` after it.

    Bodies have about ``min_bytes`` to ``max_bytes``. Even pages have an ETag.
    """

    pages: int
    links: int = 10
    min_bytes: int = 2_000
    max_bytes: int = 2_000
    latency_s: float = 0.03

    def answer(self, path: str, headers: Mapping[str, str]) -> Answer:
        """A page, a robots.txt that allows everything, 304 or 404."""
        if path == "/robots.txt":
            return simple(200, b"User-agent: *\nDisallow:\n", "Content-Type: text/plain")
        number = self.number(path)
        if number is None:
            return simple(404, b"no such page", "Content-Type: text/plain")
        validator = f'"{number}"' if number % 2 == 0 else None
        if validator and headers.get("if-none-match") == validator:
            return simple(304, b"", f"ETag: {validator}")
        lines = ["Content-Type: text/html; charset=utf-8"]
        return simple(200, self.body(number), *lines, *([f"ETag: {validator}"] * bool(validator)))

    def paths(self) -> list[str]:
        """Every page of the site."""
        return [self.path(number) for number in range(self.pages)]

    def path(self, number: int) -> str:
        """Where a page is; its number counts round."""
        return f"/p/{number % self.pages}" if number % self.pages else "/"

    def number(self, path: str) -> int | None:
        """The number of the page at a path, or None."""
        if path == "/":
            return 0
        digits = path.removeprefix("/p/")
        return int(digits) if digits.isdecimal() and 0 < int(digits) < self.pages else None

    def body(self, number: int) -> bytes:
        """The document: links, then text."""
        following = range(number + 1, number + 1 + self.links)
        links = "".join(f'<li><a href="{self.path(n)}">Page {n}</a>\n' for n in following)
        text, size = _text(), self._size(number)
        begin = number * 7_919 % (len(text) - self.max_bytes)
        paragraphs = "\n".join(
            f"<p>{text[at : at + _PARAGRAPH_BYTES]}</p>"
            for at in range(begin, begin + max(size - len(links), 200), _PARAGRAPH_BYTES)
        )
        return (
            f"<!doctype html>\n<html lang=en><title>Page {number}</title>\n"
            f"<nav><ul>{links}</ul></nav>\n<main><h1>Page {number}</h1>\n{paragraphs}\n</main>\n"
        ).encode()

    def _size(self, number: int) -> int:
        return self.min_bytes + number * 7_927 % (self.max_bytes - self.min_bytes + 1)


def simple(status: int, body: bytes, *lines: str) -> Answer:
    """A complete answer on a connection that stays open."""
    length = [] if status == 304 else [f"Content-Length: {len(body)}"]
    return Answer(status, iter([head(status, *lines, *length) + body]))


def head(status: int, *lines: str) -> bytes:
    """A status line and headers."""
    return "\r\n".join([f"HTTP/1.1 {status} X", *lines, "", ""]).encode("ascii")


@cache
def _text() -> str:
    """Made-up words, the same in every process."""
    rng = random.Random(1)
    letters = "aeiouaeioubcdfghlmnprstv"
    words = ["".join(rng.choices(letters, k=rng.randint(2, 11))) for _ in range(_WORDS)]
    return " ".join(rng.choices(words, k=_TEXT_BYTES // 6))[:_TEXT_BYTES]
