"""The HTTP server of a process: one address, one authentication, one form of responses.

Without a token, the server is open to this machine only. A web page must not read from it through a
name that points to this machine (DNS rebinding), so requests for a foreign name are refused; IP
addresses are allowed. With a token, every route needs it, or a session begun with it, except
``/healthz``, links with unguessable ids, and the login. Routes that change something (POST) exist
only with a token.
"""

import asyncio
import logging
import os
import re
from collections.abc import (
    AsyncGenerator,
    Awaitable,
    Callable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import aclosing, contextmanager, suppress
from hashlib import blake2b
from http import HTTPStatus
from ipaddress import ip_address
from types import MappingProxyType
from typing import Any, Final, Protocol, TypeAlias, cast
from urllib.parse import parse_qsl, quote

from aiohttp import ETag, hdrs, web
from aiohttp.typedefs import Handler
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder

from freshet.config.settings import Operation
from freshet.crawler.errors import CrawlError, Refused, UnknownPage, UsageError
from freshet.crawler.fetch.bounds import open_files
from freshet.crawler.frontier.clock import dated
from freshet.crawler.run.logs import hide, read_secret
from freshet.crawler.run.terminal import json_text
from freshet.crawler.service.listening import BoundedServer
from freshet.crawler.service.logins import (
    CSRF,
    HASHED,
    LOGIN,
    LOGOUT,
    Logins,
    check_form,
    place_of,
    stood_at,
)
from freshet.storage.errors import CursorGone, StoreError

log = logging.getLogger(__name__)

_HEADERS: Final = {
    "X-Content-Type-Options": "nosniff",
    # A stored web page is displayed without any function.
    "Content-Security-Policy": "default-src 'none'; sandbox",
}
#: Concurrent connections for short requests.
_CONNECTIONS: Final = 64
#: Concurrent requests that need work; readers that wait for changes; monitoring.
_LASTING: Final = 64
_WAITING: Final = 1_000
_LOOKING: Final = 16
_LATER: Final = {hdrs.RETRY_AFTER: "5"}
_WANTED: Final = {hdrs.WWW_AUTHENTICATE: 'Bearer realm="freshet"'}
#: Matches an Accept-Encoding that accepts gzip.
_ZIPPED: Final = re.compile(r"\bgzip\b(?!\s*;\s*q=0(\.0*)?\s*(,|$))", re.IGNORECASE)
#: Smaller bodies are not compressed. Larger bodies are written in pieces, each with a time limit.
_COMPRESSED_BYTES: Final = 1_024
_PIECE_BYTES: Final = 2**16
#: Longer bodies are sent while they are produced, without Content-Length.
_WHOLE_BYTES: Final = 2**20
_STALLED_S: Final = 20.0
#: Event stream for pages in a browser.
EVENTS: Final = "/events"
_FEED: Final = "/v1/changefeed"
#: Paths of monitoring, which is never refused for lack of room.
_LOOKED_AT: Final = frozenset({"/healthz", "/metrics"})
#: Feeds at unguessable URLs.
_SECRET_FEEDS: Final = "/feeds/"
#: Paths that need no token.
_FREE: Final = ("/healthz", "/o/", _SECRET_FEEDS, "/static/", "/.well-known/", LOGIN)
#: The fields of a request's form, by name.
FORM: Final[web.RequestKey[Mapping[str, str]]] = web.RequestKey("form", dict)
#: Limits of a form: bytes and fields.
_FORM_BYTES, _FORM_FIELDS = 2**16, 100
_FORM: Final = "application/x-www-form-urlencoded"
#: RFC 6750; 16 characters cannot be guessed over a network.
_TOKEN: Final = re.compile(r"[A-Za-z0-9._~+/-]{16,}=*")


class HttpRefusal(Exception):
    """A request that is answered with an error status and a reason."""

    def __init__(self, status: HTTPStatus, reason: object, **headers: str) -> None:
        super().__init__(reason)
        self.status, self.headers = status, headers

    def as_json(self) -> dict[str, str]:
        """Return the error as a word for programs and a sentence for people."""
        return {"error": self.status.name.lower(), "reason": str(self)}

    @classmethod
    def of(cls, error: Exception) -> "HttpRefusal | None":
        """Return the refusal for an error, or None for a fault of the program."""
        match error:
            case HttpRefusal():
                return error
            case Refused():
                later = _LATER if error.status == HTTPStatus.TOO_MANY_REQUESTS else {}
                return cls(HTTPStatus(error.status), error, **later)
            case CursorGone():
                return cls(HTTPStatus.GONE, f"{error} (since=0)")
            case UnknownPage():
                return cls(HTTPStatus.NOT_FOUND, error)
            case UsageError():
                return cls(HTTPStatus.BAD_REQUEST, error)
            case StoreError():
                return cls(HTTPStatus.SERVICE_UNAVAILABLE, error, **_LATER)
            case web.HTTPException():
                return cls._of_aiohttp(error)
        return None

    @classmethod
    def _of_aiohttp(cls, error: web.HTTPException) -> "HttpRefusal":
        allowed = ", ".join(sorted(getattr(error, "allowed_methods", ())))
        if allowed:
            return cls(HTTPStatus(error.status), f"only {allowed} are allowed", Allow=allowed)
        return cls(HTTPStatus(error.status), error.text)


class Answer(web.StreamResponse):
    """A response whose ``pieces`` are produced while it is sent; ``live`` ones are sent at once.

    ``name`` identifies the content, independent of its coding, and becomes the ETag. An empty name
    uses the body itself; None forbids caching.
    """

    def __init__(
        self, pieces: AsyncGenerator[bytes, None], content_type: str = "application/json", *,
        status: HTTPStatus = HTTPStatus.OK, name: str | None = None, live: bool = False,
        headers: Mapping[str, str] = MappingProxyType({}),
    ) -> None:  # fmt: skip
        super().__init__(status=status, headers={hdrs.CONTENT_TYPE: content_type, **headers})
        self._pieces, self._name, self.is_live = pieces, name, live
        self.force_close()

    async def send(self, request: web.BaseRequest) -> None:
        """Send it; an error before the first byte is raised, a later one ends the connection."""
        async with aclosing(self._pieces):
            body, is_whole, tag = b"", False, self._name and _digest(self._name.encode())
            if not self.is_live and not (tag and _is_known(request, tag)):
                body, is_whole = await self._begun()
            if tag == "" and is_whole:
                tag = _digest(body)
            self._settle(request, tag, len(body) if is_whole else None)
            with _cutting_short(request):
                await self._write(request, body)

    async def _begun(self) -> tuple[bytes, bool]:
        """Return the first bytes, and whether they are the whole body."""
        found, size = [], 0
        async for piece in self._pieces:
            found.append(piece)
            size += len(piece)
            if size > _WHOLE_BYTES:
                return b"".join(found), False
        return b"".join(found), True

    def _settle(self, request: web.BaseRequest, tag: str | None, length: int | None) -> None:
        """Set the headers that depend on the request; the length may be unknown."""
        zipped = not self.is_live and _takes_gzip(request)
        if tag:
            self.etag = f"{tag}-gzip" if zipped else tag
        if tag and _is_known(request, tag):
            self.set_status(HTTPStatus.NOT_MODIFIED)
        elif not zipped or (length is not None and length <= _COMPRESSED_BYTES):
            self.content_length = length
        elif request.method == hdrs.METH_HEAD:
            self.headers[hdrs.CONTENT_ENCODING] = "gzip"
        else:
            self.enable_compression(web.ContentCoding.gzip)

    async def _write(self, request: web.BaseRequest, body: bytes) -> None:
        writer = await self.prepare(request)
        if request.method != hdrs.METH_HEAD and self.status != HTTPStatus.NOT_MODIFIED:
            if self.is_live and writer is not None:
                writer.send_headers()
            await self._write_piece(body)
            async for piece in self._pieces:
                await self._write_piece(piece)
        async with asyncio.timeout(_STALLED_S):
            await self.write_eof()

    async def _write_piece(self, piece: bytes) -> None:
        for at in range(0, len(piece), _PIECE_BYTES):
            async with asyncio.timeout(_STALLED_S):
                await self.write(piece[at : at + _PIECE_BYTES])


def whole(body: object, content_type: str = "application/json", **others: Any) -> Answer:
    """Return the response for a body: bytes, or a value to send as JSON."""

    async def pieces() -> AsyncGenerator[bytes, None]:
        yield body if isinstance(body, bytes) else as_line(body)

    return Answer(pieces(), content_type, **others)


def as_line(value: object) -> bytes:
    """Return a value as JSON on one line."""
    return json_text(value).encode("utf-8", "replace") + b"\n"


def leading(path: str) -> Answer:
    """Return the response to a form: a redirect to a page."""
    return whole(b"", status=HTTPStatus.SEE_OTHER, headers={hdrs.LOCATION: path})


#: Entry points of functions that make :class:`HtmlPages` from a
#: :class:`freshet.crawler.read.api.StoreApi` and the settings; the first one is used.
DASHBOARDS: Final = "freshet.dashboards"


class HtmlPages(Protocol):
    """Pages for people in addition to an API: the routes of both, and refusals as pages.

    The fields of a form are ``request[FORM]``.
    """

    routes: Iterable[web.AbstractRouteDef]

    def refused(self, request: web.BaseRequest, refusal: HttpRefusal) -> Answer:
        """Return a refusal as a page."""

    async def close(self) -> None:
        """End what the pages have begun; the last call."""


#: The content of ``/healthz``: a list of problems, empty if healthy, and further facts.
Health: TypeAlias = tuple[list[str], Mapping[str, object]]


def of_shards(found: Mapping[int, Health], down: Mapping[int, str]) -> Health:
    """Return a store's health from that of its shards, and why other shards did not answer."""
    lines = {shard: problems for shard, (problems, _) in found.items()}
    lines |= {shard: [f"down: {why}"] for shard, why in down.items()}
    problems = [f"shard {shard}: {line}" for shard in sorted(lines) for line in lines[shard]]
    facts = {str(shard): found[shard][1] for shard in sorted(found)}
    return problems, {"shards": facts, "down": {str(n): down[n] for n in sorted(down)}}


class HttpServer:
    """Server of ``/healthz``, ``/metrics`` and further routes, from :meth:`open` to :meth:`close`.

    ``pages`` adds pages for people.
    """

    def __init__(
        self,
        operation: Operation,
        health: Callable[[], Awaitable[Health]],
        registry: CollectorRegistry,
        routes: Iterable[web.AbstractRouteDef] = (),
        pages: HtmlPages | None = None,
    ) -> None:
        """Serve by these settings.

        Raises:
            CrawlError: the token cannot be read, or is invalid.
        """
        self._health, self._registry, self._pages = health, registry, pages
        self._names = {"localhost", *map(str.lower, operation.host_names)}
        token = read_secret("operation.token", operation.token)
        if operation.token and not (_TOKEN.fullmatch(token) or HASHED.fullmatch(token)):
            raise CrawlError(
                "operation.token: a token has at least 16 letters, digits or characters of "
                "._~+/-, as `openssl rand -hex 32` prints them; prefix a hash with sha256:"
            )
        hide(token)
        self._logins = Logins(token, operation.trusted_proxies) if token else None
        # The rest is reserved for the store and for requests that need work.
        self._waiting = min(_WAITING, open_files() // 2)
        self._server: BoundedServer | None = None
        self._runner = web.AppRunner(self._application([*routes, *(pages.routes if pages else ())]))

    def _application(self, routes: Sequence[web.AbstractRouteDef]) -> web.Application:
        app = web.Application(
            middlewares=[self._sent, self._let_in, self._placed], client_max_size=_FORM_BYTES
        )
        given = {(it.method, it.path) for it in routes if isinstance(it, web.RouteDef)}
        self._has_login = (hdrs.METH_GET, LOGIN) in given
        looks = [web.get("/healthz", self._serve_health), web.get("/metrics", self._serve_metrics)]
        app.add_routes(it for it in looks if (it.method, it.path) not in given)
        app.add_routes([*routes, web.post(LOGIN, self._log_in), web.post(LOGOUT, self._log_out)])
        app.add_routes([web.get("/{path:.*}", self._refuse_path)])
        app.on_response_prepare.append(_add_headers)
        return app

    async def open(self, address: str, port: int) -> str:
        """Listen as :class:`BoundedServer`; return the URL, with the chosen port."""
        await self._runner.setup()
        # The runner has a server after setup.
        app = cast("web.Server", self._runner.server)
        self._server = BoundedServer(
            app.request_handler, _CONNECTIONS, lambda *_: None,
            places={"work": _LASTING, "wait": self._waiting, "look": _LOOKING},
            request_factory=app.request_factory,
        )  # fmt: skip
        host, port = await self._server.open(address, port)
        return f"http://[{host}]:{port}/" if ":" in host else f"http://{host}:{port}/"

    def login_place(self) -> str:
        """Return a path for one login within ten minutes; "" if the server has no token."""
        if self._logins is None or not self._has_login:
            return ""
        return f"{LOGIN}?once={self._logins.key_for_one()}"

    async def close(self) -> None:
        """Stop listening."""
        if self._server is not None:
            await self._server.close()
        await self._runner.cleanup()
        if self._pages is not None:
            await self._pages.close()

    # -- from outside to inside ----------------------------------------------------

    @web.middleware
    async def _sent(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Send a response, or the refusal for an error."""
        request[CSRF] = ""
        try:
            response = await handler(request)
            if isinstance(response, Answer):
                await response.send(request)
                return response
            # A file, which aiohttp sends itself.
            response.force_close()
            if _takes_gzip(request) and hdrs.RANGE not in request.headers:
                response.enable_compression(web.ContentCoding.gzip)
            return response
        except ConnectionError:
            raise
        except Exception as error:  # noqa: BLE001 - any error: later requests are answered
            answer = self._refused(request, error)
        await answer.send(request)
        return answer

    def _refused(self, request: web.Request, error: Exception) -> Answer:
        if (refused := HttpRefusal.of(error)) is None:
            log.error("a request could not be answered", exc_info=error)
            refused = HttpRefusal(HTTPStatus.INTERNAL_SERVER_ERROR, "see the log of the server")
        if self._pages is not None and _is_for_people(request):
            return self._pages.refused(request, refused)
        return whole(refused.as_json(), status=refused.status, headers=refused.headers)

    @web.middleware
    async def _let_in(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Refuse foreign host names, requests without authentication, and foreign forms.

        Afterwards ``request[FORM]`` has the fields of the request's form.
        """
        known, is_form = self._logins, request.method == hdrs.METH_POST
        if (wrong := request.match_info.http_exception) is not None:
            raise wrong
        if not self._is_allowed_name(request.headers.getall(hdrs.HOST, [])):
            why = "the Host header is not allowed; add its name to operation.host_names"
            raise HttpRefusal(HTTPStatus.MISDIRECTED_REQUEST, why)
        is_program = known is not None and self._is_program(request, known)
        if is_form and known is None:
            why = "changes need a token: set operation.token, and start again"
            raise HttpRefusal(HTTPStatus.FORBIDDEN, why)
        if is_form:
            request[FORM] = await _form(request)
        if is_form and not is_program:
            check_form(request, request[FORM])
        return await handler(request)

    @web.middleware
    async def _placed(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Reserve a place for a request of a limited kind; refuse it if all are taken."""
        if not (kind := _kind_of(request)):
            return await handler(request)
        is_full = self._server is not None and not self._server.keep(request, kind)
        if is_full and kind != "look":
            why = f"{_LASTING} requests are being answered; try again later"
            if kind == "wait":
                why = f"{self._waiting:,} readers wait for changes; try again later"
            raise HttpRefusal(HTTPStatus.SERVICE_UNAVAILABLE, why, **_LATER)
        return await handler(request)

    def _is_program(self, request: web.BaseRequest, known: Logins) -> bool:
        """Return whether a request has the token itself, and set its session's secret, if any.

        Raises:
            HttpRefusal: it needs a token or session, and has neither.
            Refused: its client has sent too many wrong tokens.
        """
        request[CSRF] = known.mark(request)
        is_free = request.path.startswith(_FREE)
        is_program = (not is_free or request.path == LOGIN) and known.bears(request)
        if not (is_program or request[CSRF] or is_free):
            raise self._unknown(request)
        return is_program

    def _unknown(self, request: web.BaseRequest) -> HttpRefusal:
        """Return the refusal of an unauthenticated request; it leads people to the login."""
        is_form = request.method == hdrs.METH_POST
        place = stood_at(request) if is_form else request.path_qs
        login = f"{LOGIN}?next={quote(place, safe='')}{'&lost=' * is_form}"
        if _is_for_people(request) and self._has_login:
            return HttpRefusal(HTTPStatus.SEE_OTHER, "log in first", Location=login)
        why = "send the header Authorization: Bearer TOKEN, with the token of operation.token"
        # HX-Redirect makes htmx load the login as a whole page, not into a part of one.
        return HttpRefusal(HTTPStatus.UNAUTHORIZED, why, **_WANTED, **{"HX-Redirect": login})

    def _is_allowed_name(self, hosts: list[str]) -> bool:
        """Return whether the request names exactly one host: an address or an allowed name."""
        if len(hosts) != 1:
            return False
        name, colon, port = hosts[0].lower().rpartition(":")
        if not (colon and port.isdigit()):
            name = hosts[0].lower()
        if name in self._names:
            return True
        with suppress(ValueError):
            ip_address(name.removeprefix("[").removesuffix("]"))
            return True
        return False

    # -- routes --------------------------------------------------------------------

    async def _log_in(self, request: web.Request) -> Answer:
        answer = leading(place_of(request.query.get("next", "")))
        if self._logins is not None:
            self._logins.login(request, request[FORM], answer)
        return answer

    async def _log_out(self, request: web.Request) -> Answer:
        answer = leading(LOGIN)
        if self._logins is not None:
            self._logins.logout(request, answer)
        return answer

    async def _refuse_path(self, request: web.Request) -> Answer:
        if self._pages is not None and _is_for_people(request):
            raise HttpRefusal(HTTPStatus.NOT_FOUND, "There is no page here.")
        there = dict.fromkeys(it.canonical for it in request.app.router.resources())
        raise HttpRefusal(
            HTTPStatus.NOT_FOUND, f"there is no such path; there are {', '.join([*there][:-1])}"
        )

    async def _serve_health(self, _request: web.BaseRequest) -> Answer:
        problems, facts = await self._health()
        status = HTTPStatus.SERVICE_UNAVAILABLE if problems else HTTPStatus.OK
        words = {"status": "unavailable" if problems else "ok", "problems": problems, **facts}
        return whole(dated(words), status=status)

    async def _serve_metrics(self, request: web.BaseRequest) -> Answer:
        encode, content_type = choose_encoder(request.headers.get(hdrs.ACCEPT, ""))
        return whole(encode(self._registry), content_type)


def _kind_of(request: web.BaseRequest) -> str:
    """Return the kind of place that a request needs, or "" if it is short."""
    if request.path in _LOOKED_AT:
        return "look"
    waits = request.query.get("feed") in ("longpoll", "continuous")
    if request.path.startswith(EVENTS) or (request.path == _FEED and waits):
        return "wait"
    return "work" if request.path.startswith(("/v1/", _SECRET_FEEDS)) else ""


def _is_for_people(request: web.BaseRequest) -> bool:
    return "text/html" in request.headers.get(hdrs.ACCEPT, "")


def _takes_gzip(request: web.BaseRequest) -> bool:
    return bool(_ZIPPED.search(request.headers.get(hdrs.ACCEPT_ENCODING, "")))


async def _add_headers(_request: web.BaseRequest, response: web.StreamResponse) -> None:
    """Add the common headers to all responses, including aiohttp's own."""
    # aiohttp has set its own Server header before.
    response.headers[hdrs.SERVER] = "freshet"
    for name, value in _HEADERS.items():
        response.headers.setdefault(name, value)
    tag, is_live = response.etag, isinstance(response, Answer) and response.is_live
    response.headers.setdefault(hdrs.CACHE_CONTROL, "private, no-cache" if tag else "no-store")
    if not is_live:
        response.headers[hdrs.VARY] = hdrs.ACCEPT_ENCODING
    if tag and response.compression and not isinstance(response, Answer):
        # aiohttp uses the same ETag for both codings of a file.
        response.etag = ETag(tag.value, is_weak=True)


async def _form(request: web.BaseRequest) -> dict[str, str]:
    """Read the fields of a short form."""
    if request.content_type != _FORM:
        raise HttpRefusal(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, f"send a form: {_FORM}")
    try:
        body = (await request.read()).decode()
        return dict(parse_qsl(body, keep_blank_values=True, max_num_fields=_FORM_FIELDS))
    except ValueError as error:
        raise HttpRefusal(HTTPStatus.BAD_REQUEST, f"this is not a form: {error}") from error


async def listening(server: HttpServer, operation: Operation) -> str:
    """Open a server at the address of the settings; return its URL.

    Raises:
        CrawlError: it cannot listen there.
    """
    try:
        return await server.open(*operation.endpoint or ("", 0))
    except OSError as error:
        why = os.strerror(error.errno) if error.errno else str(error)
        raise CrawlError(
            f"{operation.listen}: cannot listen there: {why}; choose another address with --listen "
            "or operation.listen"
        ) from error


# -- sending -----------------------------------------------------------------


@contextmanager
def _cutting_short(request: web.BaseRequest) -> Iterator[None]:
    """End the connection if a response fails after its first bytes."""
    try:
        yield
    except ConnectionError:
        raise
    except Exception as error:
        if request.transport is not None:
            request.transport.abort()
        # A reader that stopped reading is not worth a log line.
        if not isinstance(error, TimeoutError):
            log.warning("the answer to %s was cut short: %s", request.path, error)
        raise ConnectionResetError("the answer was cut short") from error


def _digest(content: bytes) -> str:
    return blake2b(content, digest_size=16).hexdigest()


def _is_known(request: web.BaseRequest, etag: str) -> bool:
    """Return whether the client has the content with this ETag, in any coding."""
    known = {each.value.removesuffix("-gzip") for each in request.if_none_match or ()}
    return "*" in known or etag in known
