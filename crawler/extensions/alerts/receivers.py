"""Delivery of messages: the Protocol of receivers, webhooks and apprise services."""

import asyncio
import base64
import binascii
import hashlib
import hmac
import json
import logging
import re
import threading
import warnings
from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import Any, Final, Literal, Protocol, TypeAlias

import structlog
from aiohttp.abc import AbstractResolver
from tenacity import AsyncRetrying, retry_if_exception, stop_after_attempt, wait_fixed
from yarl import URL

from freshet.crawler.errors import CrawlError, Unfetched, needs_extra
from freshet.crawler.extensions.alerts.tables import Message
from freshet.crawler.fetch.addresses import AddressGuard
from freshet.crawler.fetch.connection import HeadLimits, HttpConnection, field_bytes, request_bytes
from freshet.crawler.fetch.responses import retry_after_s
from freshet.crawler.fetch.transport import Connections
from freshet.crawler.frontier.clock import Clock, pause
from freshet.crawler.run.terminal import counted

#: The result of a delivery: "refused" is about the message, "failed" may pass.
DeliveryOutcome: TypeAlias = Literal["taken", "refused", "failed"]


@dataclass(frozen=True, slots=True)
class Delivery:
    """The end of a delivery; ``retry_after_s`` is the pause that the receiver wants."""

    outcome: DeliveryOutcome
    said: str = ""
    retry_after_s: float | None = None


#: Entry points that add receivers, by the scheme of their URLs: a function of the URL, the key that
#: signs the messages (or None) and the time limit of a delivery in seconds.
RECEIVERS: Final = "freshet.alert_receivers"


class Receiver(Protocol):
    """Destination of messages, one at a time."""

    async def deliver(self, message: Message, now: float) -> Delivery:
        """Hand a message over within the time limit; any failure is in the answer."""

    async def close(self) -> None:
        """Close connections."""


# -- signing -----------------------------------------------------------------
# Standard Webhooks, scheme ``v1``: HMAC-SHA256 over ``id.timestamp.body``.

_PREFIX: Final = "whsec_"
#: Of the specification: 192 to 512 bits.
_LEAST, _MOST = 24, 64


def key_of(secret: str) -> bytes:
    """Return the key of a secret: ``whsec_`` and base64, or 24 to 64 bytes of text.

    Raises:
        ValueError: it is not such a secret; the message does not quote it.
    """
    key = secret.encode()
    if secret.startswith(_PREFIX):
        try:
            key = base64.b64decode(secret.removeprefix(_PREFIX), validate=True)
        except binascii.Error as error:
            raise ValueError(f"what follows {_PREFIX} is not base64") from error
    if not _LEAST <= len(key) <= _MOST:
        raise ValueError(f"it has {len(key)} bytes, and should have {_LEAST} to {_MOST}")
    return key


def signature(key: bytes, message_id: str, timestamp: int, body: bytes) -> str:
    """Return the value of the header ``webhook-signature``; ``timestamp`` is in Unix seconds."""
    signed = f"{message_id}.{timestamp}.".encode() + body
    digest = hmac.digest(key, signed, hashlib.sha256)
    return f"v1,{base64.b64encode(digest).decode('ascii')}"


# -- webhook -----------------------------------------------------------------

#: Connections that are tried in a row, with seconds between them.
_CONNECTS: Final = 2
_CONNECT_WAIT_S: Final = 0.5
#: Statuses about the message itself: a retry would get the same.
_ABOUT_THE_MESSAGE: Final = frozenset({400, 410, 413, 415, 422})


class Webhook:
    """Receiver that posts to one URL, over separate connections; without a key it does not sign.

    Redirects are not followed, and of an answer only status and headers are read. A new
    connection is made for each message: one that breaks on a stale connection would be sent twice.
    """

    def __init__(
        self,
        url: str,
        key: bytes | None,
        timeout_s: float,
        *,
        guard: AddressGuard,
        resolver: AbstractResolver,
        user_agent: str,
        clock: Clock,
    ) -> None:
        self._url = url
        self._key = key
        self._timeout_s = timeout_s
        self._user_agent = user_agent
        self._clock = clock
        # The time limit applies to the whole delivery.
        heads = HeadLimits(2 * timeout_s)
        self._connections = Connections(guard, resolver, None, heads, connect_timeout_s=None)

    async def deliver(self, message: Message, now: float) -> Delivery:
        """Post the message, see :class:`Receiver`."""
        try:
            async with asyncio.timeout(self._timeout_s):
                return await self._post(message, now)
        except TimeoutError:
            return Delivery("failed", f"no answer within {self._timeout_s:g} s")
        except Unfetched as error:
            return Delivery("failed", error.detail)

    async def _post(self, message: Message, now: float) -> Delivery:
        body, url = message.body.encode(), URL(self._url)
        fields = {
            "Host": url.host_port_subcomponent or "",
            "User-Agent": self._user_agent,
            "Connection": "close",
            "Content-Length": str(len(body)),
            **self._headers(message, body, now),
        }
        if url.user is not None:
            pair = f"{url.user}:{url.password or ''}".encode()
            fields["Authorization"] = f"Basic {base64.b64encode(pair).decode('ascii')}"
        # Nothing was sent yet: a receiver that is being started again is soon there.
        tries = AsyncRetrying(
            retry=retry_if_exception(_is_refused),
            stop=stop_after_attempt(_CONNECTS),
            wait=wait_fixed(_CONNECT_WAIT_S),
            sleep=partial(pause, self._clock),
            reraise=True,
        )
        channel: HttpConnection = await tries(self._connections.get, url, None)
        try:
            sent = field_bytes(fields.items())
            head = await channel.ask(request_bytes("POST", url.raw_path_qs, sent, body))
        finally:
            channel.close()
        if 200 <= head.status < 300:
            return Delivery("taken")
        reason = head.status_line.partition(b" ")[2].strip()[3:]
        said = f"HTTP {head.status}{reason.decode('ascii', 'backslashreplace')}".rstrip()
        if head.status in _ABOUT_THE_MESSAGE:
            return Delivery("refused", said)
        return Delivery("failed", said, retry_after_s(head.headers, now))

    def _headers(self, message: Message, body: bytes, now: float) -> dict[str, str]:
        timestamp = int(now)
        headers = {
            "Content-Type": "application/json",
            "webhook-id": message.key,
            "webhook-timestamp": str(timestamp),
            "Idempotency-Key": message.key,
        }
        if self._key is not None:
            headers["webhook-signature"] = signature(self._key, message.key, timestamp, body)
        return headers

    async def close(self) -> None:
        """Close the connections."""
        await self._connections.close()


def _is_refused(error: BaseException) -> bool:
    return isinstance(error, Unfetched) and error.reason == "connect"


# -- log ----------------------------------------------------------------------

#: The address of the log, for rules without another one.
LOG: Final = "log:"


class Logged:
    """Receiver that writes a line to the log of the crawl or the daemon."""

    async def deliver(self, message: Message, now: float) -> Delivery:
        """Write the message, see :class:`Receiver`."""
        title, body = in_words(json.loads(message.body))
        structlog.get_logger().info("alert", rule=message.rule, title=title, text=body)
        return Delivery("taken")

    async def close(self) -> None:
        """Do nothing: no connection is open."""


# -- apprised ----------------------------------------------------------------
# Messages for people through apprise (an extra): mail, chats, telephones, by its URLs.

#: Items of a digest in a message for people.
_SHOWN: Final = 50
_LONGEST: Final = 300


class AppriseReceiver:
    """Receiver for one service, called in a separate thread, because apprise blocks.

    A thread cannot be ended: one that has not returned in time is left alone, and until it has,
    every delivery fails. It never holds up the end of the program.

    Raises:
        CrawlError: the extra is not installed, or apprise does not know the URL (which the message
            does not quote).
    """

    def __init__(self, url: str, timeout_s: float) -> None:
        log = logging.getLogger("apprise")
        # Its lines may quote the URL, and with it passwords.
        log.propagate = False
        if _reasons not in log.handlers:
            log.addHandler(_reasons)
            log.setLevel(logging.DEBUG)
        self._service = _service(url)
        self._whom = _whom(url)
        self._timeout_s = timeout_s
        self._thread: threading.Thread | None = None

    async def deliver(self, message: Message, now: float) -> Delivery:
        """Send the message, see :class:`Receiver`."""
        if self._thread is not None and self._thread.is_alive():
            return Delivery("failed", "the service is still busy with the last message")
        title, body = in_words(json.loads(message.body))
        loop = asyncio.get_running_loop()
        answered: asyncio.Future[Delivery] = loop.create_future()

        def work() -> None:
            reason = list[str]()
            _met.set(reason)  # each thread has its context
            try:
                taken = self._service.notify(body=body, title=title, body_format="text")
                answer = Delivery("taken") if taken else Delivery("failed", self._failed(reason))
            except Exception as error:  # noqa: BLE001 - of some hundred services, told as it is
                answer = Delivery("failed", f"the service failed: {type(error).__name__}")
            if not loop.is_closed():
                loop.call_soon_threadsafe(_settle, answered, answer)

        self._thread = threading.Thread(target=work, name="apprise", daemon=True)
        self._thread.start()
        try:
            async with asyncio.timeout(self._timeout_s):
                return await answered
        except TimeoutError:
            return Delivery("failed", f"no answer within {self._timeout_s:g} s")

    def _failed(self, reason: Sequence[str]) -> str:
        if reason:
            return f"{self._whom} did not answer ({reason[-1].lower()})"
        return f"{self._whom} rejected the message"

    async def close(self) -> None:
        """Do nothing: no connection is kept."""


def _whom(url: str) -> str:
    """Return the displayable name of a service: only the host of a mail server is not secret."""
    scheme, _, rest = url.partition("://")
    if scheme.lower() not in {"mailto", "mailtos"}:
        return "the service"
    return f"mail server {re.split('[/?]', rest)[0].rpartition('@')[2]}"


#: The errors that the delivery of this thread has met; apprise's own threads inherit the context.
_met: ContextVar[list[str]] = ContextVar("_met")


class _Reasons(logging.Handler):
    """Errors of sockets that apprise logs. Its other lines may quote passwords and are dropped."""

    _ERROR: Final = re.compile(r"\[Errno -?\d+\] ([A-Za-z ]+)|\b(timed out)\b")

    def emit(self, record: logging.LogRecord) -> None:
        if match := self._ERROR.search(record.getMessage()):
            _met.get([]).append(match[1] or match[2])


_reasons: Final = _Reasons(logging.DEBUG)


def _service(url: str) -> Any:
    with warnings.catch_warnings():
        # Its plug-ins' imports may be deprecated; that does not concern our user.
        warnings.simplefilter("ignore", DeprecationWarning)
        try:
            service = import_module("apprise").Apprise()
        except ModuleNotFoundError as error:
            raise CrawlError(needs_extra("a URL other than http and https", "apprise")) from error
        if not service.add(url):
            raise CrawlError(
                "apprise does not know this URL, or a part is missing; its forms are on "
                "github.com/caronc/apprise"
            )
        return service


def _settle(answered: asyncio.Future[Delivery], answer: Delivery) -> None:
    if not answered.done():
        answered.set_result(answer)


def in_words(message: Mapping[str, Any]) -> tuple[str, str]:
    """Return the title and the text of a message for people."""
    data = message["data"]
    if message["type"] == "digest":
        changes: Sequence[Mapping[str, Any]] = data["changes"]
        lines = [_line(change) for change in changes[:_SHOWN]]
        if more := len(changes) - len(lines) + data.get("left_out", 0):
            lines.append(f"… and {more:,} more")
        pages = counted(len(changes), "page")
        return f"{data['rule']}: {pages}, {data['from']} to {data['to']}", "\n".join(lines)
    if message["type"] == "test":
        return f"{data['rule']}: a test", data["summary"]
    return f"{data['rule']}: {data['kind']} {data['title'] or data['url']}", _line(data)


def _line(data: Mapping[str, Any]) -> str:
    words = f"{data['kind']}: {data['url']}"
    return f"{words}\n  {data['summary'][:_LONGEST]}" if data["summary"] else words
