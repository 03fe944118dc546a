"""Requests to the synthetic web and the responses to them, as values."""

from __future__ import annotations

from dataclasses import dataclass
from email.utils import formatdate
from hashlib import blake2b
from http import HTTPStatus

from freshet.crawler.synthetic_web.conditional import UNCONDITIONAL, Conditions, is_current
from freshet.crawler.synthetic_web.resources import Encoding, Fault

Header = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Ask:
    """A GET of a site's target (path and query as on the wire)."""

    host: str
    target: str
    conditions: Conditions = UNCONDITIONAL


@dataclass(frozen=True, slots=True)
class Answer:
    """A response; Content-Length is left to who carries it."""

    status: int
    headers: tuple[Header, ...] = ()
    body: bytes = b""

    def header(self, name: str) -> str | None:
        """The value of a header; none stands here twice."""
        return next((value for key, value in self.headers if key == name), None)


@dataclass(frozen=True, slots=True)
class Validators:
    """What tells the versions of one representation apart (RFC 9110, section 8.8)."""

    etag: str | None = None
    last_modified_at: float | None = None

    def headers(self) -> list[Header]:
        """As response headers."""
        headers = [("ETag", self.etag)] if self.etag is not None else []
        if self.last_modified_at is not None:
            headers.append(("Last-Modified", http_date(self.last_modified_at)))
        return headers


def http_date(at: float) -> str:
    """IMF-fixdate (RFC 9110, section 5.6.7) of a time in Unix seconds."""
    return formatdate(at, usegmt=True)


def strong_etag(body: bytes) -> str:
    """An ETag that differs where the bytes do."""
    return f'"{blake2b(body, digest_size=8).hexdigest()}"'


def success(ask: Ask, at: float, body: bytes, validators: Validators, *headers: Header) -> Answer:
    """200 with the body, or 304 where the client has it already."""
    common = (("Date", http_date(at)), *validators.headers())
    if is_current(ask.conditions, validators.etag, validators.last_modified_at):
        return Answer(HTTPStatus.NOT_MODIFIED, common)
    return Answer(HTTPStatus.OK, (*common, *headers), body)


def content_type(encoding: Encoding) -> Header:
    """The Content-Type of an HTML page."""
    charset = f"; charset={encoding.label}" if encoding.in_header else ""
    return "Content-Type", f"text/html{charset}"


def plight(status: int, at: float, *headers: Header) -> Answer:
    """A short page for a status that is not a success."""
    phrase = HTTPStatus(status).phrase
    body = f"<!doctype html><title>{status}</title><h1>{status} {phrase}</h1>\n".encode()
    common = (("Date", http_date(at)), ("Content-Type", "text/html; charset=utf-8"))
    return Answer(status, (*common, *headers), body)


def failure(fault: Fault, at: float) -> Answer:
    """The answer of a fault that strikes."""
    if fault.retry_after_s is None:
        return plight(fault.status, at)
    date = http_date(at // 1 + fault.retry_after_s)
    return plight(
        fault.status, at, ("Retry-After", date if fault.as_date else str(fault.retry_after_s))
    )
