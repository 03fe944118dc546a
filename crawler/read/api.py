"""The routes of ``/v1``: changefeed, documents, pages of a store. See openapi.toml.

*Invariant.* A step of the event loop makes of a store a few documents or some hundred rows, and
holds one such part in memory, however much is asked for and however slowly it is read.
"""

import heapq
import re
import tomllib
from collections.abc import AsyncGenerator, Iterable, Mapping
from functools import partial
from importlib.resources import files
from itertools import islice
from math import inf
from operator import itemgetter
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote, unquote

from aiohttp import hdrs, web
from aiosqlite import Connection as Reader

from freshet import __version__
from freshet.config.loading import SettingsSource
from freshet.config.settings import Settings
from freshet.config.sites import pattern
from freshet.crawler.admission.site_lists import spellings
from freshet.crawler.errors import UnknownPage, UsageError
from freshet.crawler.frontier.clock import dated
from freshet.crawler.read.changefeed import Changefeed, uses_of
from freshet.crawler.read.chunks import CHUNKS_VERSION
from freshet.crawler.read.documents import Documents, StoredDocument, document_version
from freshet.crawler.read.library import Library, asking
from freshet.crawler.reduce.document import DOCUMENT_VERSION
from freshet.crawler.run.hooks import ROUTES
from freshet.crawler.run.network import parser_of, selector_hints
from freshet.crawler.run.terminal import json_text
from freshet.crawler.service.http import DASHBOARDS, Answer, HtmlPages, HttpRefusal, as_line, whole
from freshet.entry_points import folder, loaded
from freshet.storage.queries import page
from freshet.storage.queries.page import DocumentSource
from freshet.storage.tables import runs
from freshet.storage.tables.runs import SiteSetting

_FEED: Final = "/v1/changefeed"
PAGES: Final = "/v1/pages"
#: Default number of changes, with documents (True) or without.
_USUAL: Final = {False: 1_000, True: 100}
_MOST: Final = {False: 10_000, True: 1_000}
_STEP: Final = {False: 500, True: 10}
_TYPES: Final = {"markdown": "text/markdown", "text": "text/plain", "html": "text/html"}
#: Of what documents are made of.
_VERSIONS: Final = f"{DOCUMENT_VERSION} {CHUNKS_VERSION}"
_BOOLEANS: Final = {"true": True, "false": False}


def description() -> dict[str, Any]:
    """Return the description of ``/v1``, as OpenAPI has it."""
    text = files(__package__).joinpath("openapi.toml").read_text("utf-8")
    told = tomllib.loads(text)
    told["info"]["version"] = __version__
    for make in loaded(ROUTES).values():
        added = tomllib.loads((folder(make.__module__) / "openapi.toml").read_text("utf-8"))
        told["paths"] |= added["paths"]
        told["components"]["schemas"] |= added.get("components", {}).get("schemas", {})
    return told


class StoreApi:
    """The answers of a store over HTTP; the owner calls :meth:`close`.

    Attributes:
        name: of the store.
        library: the documents of the store.
        routes: the routes, for a server.
        source: where the settings come from; None if they cannot be changed here.
    """

    def __init__(
        self, path: Path, settings: Settings, library: Library | None = None,
        source: SettingsSource | None = None,
    ) -> None:  # fmt: skip
        """Answer from the store at ``path``, which need not exist yet, or from a ``library``."""
        self.name, self._parser, self.source = path.name, parser_of(settings), source
        self.library = library or Library(path, self._parser, settings)
        self._sites = _selected(settings)
        self._description = description()
        self.routes: list[web.AbstractRouteDef] = [
            web.get("/v1/openapi.json", self._describe),
            web.get(_FEED, self._changefeed),
            web.get(PAGES, self._pages),
            web.get(f"{PAGES}/{{url:.*}}", self._page),
        ]
        for make in loaded(ROUTES).values():
            self.routes += make(self, settings).routes

    def obey(self, settings: Settings) -> None:
        """Read documents by other selectors from now on. Raises UsageError for a wrong one."""
        self._parser.hints = selector_hints(settings)
        self._sites = _selected(settings)

    async def close(self) -> None:
        """End the parser's processes, and close the caches of documents."""
        self.library.close()
        await self._parser.close()

    async def _describe(self, request: web.Request) -> Answer:
        self.asked("/v1/openapi.json", request)
        return whole(self._description, name="")

    # -- the changefeed ------------------------------------------------------------

    async def _changefeed(self, request: web.Request) -> Answer:
        asked = self.asked(_FEED, request)
        (docs, chars), feed, since = _content(asked), asked["feed"], asked["since"]
        limit = asked["limit"] or (inf if feed == "continuous" else _USUAL[docs])
        if feed != "continuous" and limit > _MOST[docs]:
            raise UsageError(f"limit={limit}: at most {_MOST[docs]} with documents")
        match = None if asked["filter"] is None else pattern(asked["filter"])
        noise = asked["all"]
        changes = Changefeed(
            self.library, docs, noise=noise, match=match, chunk_chars=chars, usage=_usage(asked)
        )
        try:
            await changes.read(since, 0)
            _, now = await changes.read("now", 0)
        except ValueError as error:
            raise UsageError(f"since: {error}") from error
        # From the time of this request on, not of the next read.
        since = now if since == "now" else since
        wait_s, headers = asked["heartbeat"] / 1_000, down_header(changes.down)
        if feed == "normal":
            kept, _ = await self.library.each(lambda _: asking(runs.site_settings))
            name = f"{now} {kept} {self._sites} {_VERSIONS} {request.query_string}"
            pieces = _results(changes, since, limit, _STEP[docs])
            return Answer(pieces, name=name, headers=headers)
        if feed == "longpoll":
            pieces = _awaited(changes, since, limit, _STEP[docs], wait_s=wait_s)
            return Answer(pieces, live=True, headers=headers)
        lines = _lines(changes, since, limit, _STEP[docs], wait_s=wait_s)
        return Answer(lines, "application/x-ndjson", live=True, headers=headers)

    # -- pages -----------------------------------------------------------------------

    async def _pages(self, request: web.Request) -> Answer:
        asked = self.asked(PAGES, request)
        by_shard, down = await self.library.each(lambda _: asking(page.listed, **asked))
        merged = heapq.merge(*by_shard.values(), key=itemgetter("url"))
        found = list(islice(merged, asked["limit"]))
        after = found[-1]["url"] if len(found) == asked["limit"] else None
        told = {"pages": found, "after": after} | down_of(down)
        return whole(dated(told), name="", headers=down_header(down))

    async def _page(self, request: web.Request) -> Answer:
        asked = self.asked(f"{PAGES}/{{url}}", request)
        named = request.raw_path.partition("?")[0].partition(f"{PAGES}/")[2]
        form, wanted, chars = asked["format"], _wanted(asked), _chunk_chars(asked)
        if chars is not None and form != "json":
            raise UsageError(f"format={form}: chunks are in JSON only")
        # A URL that is not escaped is accepted as well; it cannot have a query.
        typed = named if "://" in named else unquote(named)
        shard, typed = await self.library.home(typed)
        read = asking(_version, urls=spellings(typed), wanted=wanted)
        try:
            url, body_kept, source, kept = await self.library.one(shard, read)
        except UsageError as error:
            raise error if asked["as_of"] else UnknownPage(error) from error
        hints = self._parser.hints(url, kept)
        return Answer(
            self._document(shard, source.version_id, form, chars),
            f"{_TYPES[form]}; charset=utf-8" if form in _TYPES else "application/json",
            name=f"{source} {body_kept} {hints} {_VERSIONS} {form} {chars}",
            headers={hdrs.CONTENT_LOCATION: f"{PAGES}/{quote(url, safe='')}"},
        )

    async def _document(
        self, shard: int, version_id: int, form: str, chars: int | None
    ) -> AsyncGenerator[bytes, None]:
        found = await self.library.one(shard, partial(_stored, version_id=version_id))
        if found is None:
            raise UnknownPage("this version was taken back just now; ask again")
        if found.missing is not None and form != "json":
            raise UnknownPage(found.missing)
        if form == "json":
            yield as_line(found.as_json(None if chars is None else found.cut(chars)))
        else:
            yield f"{getattr(found, form)}\n".encode("utf-8", "replace")

    # -- parameters ------------------------------------------------------------------

    def asked(self, path: str, request: web.Request) -> dict[str, Any]:
        """Return the values of a path's parameters, as the description has them."""
        told = self._description["paths"][path]["get"].get("parameters", [])
        known = {each["name"]: each["schema"] for each in told if each["in"] == "query"}
        for name in request.query:
            if name not in known:
                there = ", ".join(known) or "none"
                raise UsageError(f"{name} is not a parameter; accepted are {there}")
            if len(request.query.getall(name)) > 1:
                raise UsageError(f"{name} is given twice; give it once")
        defaults = {name: schema.get("default") for name, schema in known.items()}
        given = {name: _value(name, text, known[name]) for name, text in request.query.items()}
        return defaults | given


def _selected(settings: Settings) -> list[tuple[object, ...]]:
    """Return the settings that select the content of documents; the store may add to them."""
    return [(it.match, it.include, it.ignore) for it in settings.sites]


def _value(name: str, text: str, schema: dict[str, Any]) -> object:
    if schema["type"] == "integer":
        least, most = schema.get("minimum", -(10**9)), schema.get("maximum", 10**9)
        if not re.fullmatch(r"-?[0-9]{1,9}", text) or not least <= int(text) <= most:
            raise UsageError(
                f"{name}={text[:80]}: accepted are whole numbers from {least} to {most}"
            )
        return int(text)
    accepted = _BOOLEANS if schema["type"] == "boolean" else schema.get("enum")
    if accepted is not None and text not in accepted:
        raise UsageError(f"{name}={text[:80]}: accepted are {', '.join(accepted)}")
    return _BOOLEANS[text] if schema["type"] == "boolean" else text


def _wanted(asked: Mapping[str, Any]) -> str | None:
    """Return the requested version; raise UsageError unless exactly one is named."""
    version, as_of = asked["version"], asked["as_of"]
    if as_of is not None and version is not None:
        raise UsageError("give version or as_of, not both")
    if as_of is not None and as_of.isdecimal():
        raise UsageError(f"as_of={as_of[:80]}: not a time such as 2026-03-31T12:00Z")
    return as_of if version is None else str(version)


def _content(asked: Mapping[str, Any]) -> tuple[bool, int | None]:
    """Return whether documents are asked for, and the most characters of their chunks."""
    chars = _chunk_chars(asked)
    return asked["include_docs"] or chars is not None, chars


def _usage(asked: Mapping[str, Any]) -> frozenset[str]:
    """Return the uses that are asked for."""
    return uses_of(filter(None, (asked["usage"] or "").split(",")), "usage")


def _chunk_chars(asked: Mapping[str, Any]) -> int | None:
    """Return the most characters of the requested chunks, None without chunks."""
    return asked["chunk_chars"] if asked["chunks"] else None


# -- reads of one store --------------------------------------------------------


async def _version(
    db: Reader, urls: list[str], wanted: str | None
) -> tuple[str, bool, DocumentSource, tuple[SiteSetting, ...]]:
    """Return the page's last name, and of what its document is made."""
    known = await page.find(db, urls)
    if known is None:
        raise UnknownPage(f"{urls[0]} is not known; {PAGES} lists the known ones")
    final = known.alias or known
    version = await document_version(db, final, wanted)
    (source,) = (await page.document_sources(db, [version.version_id])).values()
    return final.url, version.body_kept, source, tuple(await runs.site_settings(db))


async def _stored(made: Documents, version_id: int) -> StoredDocument | None:
    async with page.snapshot(made.path) as db:
        return (await made.read(db, [version_id])).get(version_id)


def down_of(down: Mapping[int, str]) -> dict[str, object]:
    """Return the shards that could not be read and the reasons, as JSON; {} if all could."""
    return {"down": {str(shard): why for shard, why in down.items()}} if down else {}


def down_header(down: Mapping[int, str]) -> dict[str, str]:
    """Return the header that names the shards that are down."""
    return {"Freshet-Down": ", ".join(map(str, sorted(down)))} if down else {}


# -- feeds -------------------------------------------------------------------


async def _results(
    changes: Changefeed, since: str, limit: float, step: int
) -> AsyncGenerator[bytes, None]:
    """Yield one JSON object of all changes, a line for each."""
    before = b'{"results": [\n'
    while limit > 0:
        wanted = int(min(limit, step))
        found, since = await changes.read(since, wanted)
        for change in found:
            yield before + as_line(change.as_json()).rstrip()
            before = b",\n"
        limit = limit - wanted if len(found) == wanted else 0
    last = json_text({"last_seq": since} | down_of(changes.down))
    yield (b"" if before == b",\n" else before) + f"\n], {last[1:]}\n".encode("utf-8", "replace")


async def _awaited(
    changes: Changefeed, since: str, limit: float, step: int, *, wait_s: float
) -> AsyncGenerator[bytes, None]:
    """Yield an empty line from time to time, and as :func:`_results` when there are changes."""
    while True:
        found, cursor = await changes.awaited(since, wait_s, limit=1)
        if found:
            break
        since = cursor
        yield b"\n"
    async for piece in _results(changes, since, limit, step):
        yield piece


async def _lines(
    changes: Changefeed, since: str, limit: float, step: int, *, wait_s: float
) -> AsyncGenerator[bytes, None]:
    """Yield each change on a line, an empty line from time to time, at last an error."""
    try:
        while limit > 0:
            found, since = await changes.awaited(since, wait_s, int(min(limit, step)))
            for change in found:
                yield as_line(change.as_json())
            if not found:
                yield b"\n"
            limit -= len(found)
    except Exception as error:
        if (refusal := HttpRefusal.of(error)) is None:
            raise
        yield as_line(refusal.as_json())


class ApiAlone:
    """The routes of an API where no extension has pages for people."""

    def __init__(self, api: StoreApi) -> None:
        """Answer programs from a store; ``api`` stays the caller's."""
        self.routes: Iterable[web.AbstractRouteDef] = api.routes

    def refused(self, _request: web.BaseRequest, refusal: HttpRefusal) -> Answer:
        """Return a refusal as programs get it."""
        return whole(refusal.as_json(), status=refusal.status, headers=refusal.headers)

    async def close(self) -> None:
        """Do nothing: this source holds no resources."""


def pages_of(api: StoreApi, settings: Settings) -> HtmlPages:
    """Return the pages of a store beside its API, or the API alone."""
    for make in loaded(DASHBOARDS).values():
        made: HtmlPages = make(api, settings)
        return made
    return ApiAlone(api)
