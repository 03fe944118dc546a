"""``/feeds/SECRET`` and ``/v1/changefeed.atom``: changes for feed readers (RFC 4287).

An address under ``/feeds/`` belongs to a site, a part of one or an alert rule. The settings of
sites in the store hold it under the key ``feed``; deleting it there revokes it. Each entry is the
last change of a page, with the added and removed words; for a rule each entry is an alert.
"""

from collections.abc import AsyncGenerator, Sequence
from contextlib import suppress
from functools import partial
from html import escape
from typing import Final, NamedTuple, TypeAlias
from urllib.parse import quote
from uuid import NAMESPACE_URL, uuid5
from xml.etree import ElementTree as ET

from aiohttp import web
from aiosqlite import Connection as Reader

from freshet.config.settings import Settings
from freshet.config.sites import Sites, StoredSite
from freshet.crawler.compare.diff import AlignedBlock, in_one_line, shortened
from freshet.crawler.errors import UnknownPage
from freshet.crawler.frontier.clock import iso
from freshet.crawler.read.api import PAGES, StoreApi, down_header
from freshet.crawler.read.documents import Documents, difference
from freshet.crawler.read.library import asking
from freshet.crawler.run.terminal import counted, plain
from freshet.crawler.service.http import Answer
from freshet.storage.entries import REFRESHED, TEXT_CHANNELS
from freshet.storage.queries import page
from freshet.storage.tables import changefeed, runs
from freshet.storage.tables.changefeed import LastChange

#: The key of a feed's address among the settings of sites, and the prefix of a rule's address.
FEED: Final = "feed"
RULE: Final = "rule:"
FEEDS: Final = "/feeds/"
_ATOM: Final = "/v1/changefeed.atom"
#: Entries of a feed.
_NEWS: Final = 50
#: Characters of a summary, blocks and characters of an entry.
_SUMMARY_WIDTH, _BLOCKS, _BLOCK_CHARS = 200, 20, 1_000
_AROUND: Final = 80

#: Of a shard: the epoch of its store, and its changes, each with the name of its entry.
_News: TypeAlias = tuple[str, list[tuple[str, LastChange]]]


class _Entry(NamedTuple):
    shard: int
    name: str
    change: LastChange


class Feeds:
    """The feeds of a store.

    Attributes:
        routes: the routes.
    """

    def __init__(self, api: StoreApi, _settings: Settings) -> None:
        """Answer from the stores of ``api``, which stays the caller's."""
        self._api, self._library = api, api.library
        self.routes: Sequence[web.AbstractRouteDef] = [
            web.get(_ATOM, self._whole),
            web.get(f"{FEEDS}{{secret:.*}}", self._one),
        ]

    async def _whole(self, request: web.Request) -> Answer:
        self._api.asked(_ATOM, request)
        return await self._answer("", _ATOM)

    async def _one(self, request: web.Request) -> Answer:
        self._api.asked(f"{FEEDS}{{secret}}", request)
        secret = request.match_info["secret"]
        parts, _ = await self._library.each(lambda _: asking(runs.site_settings))
        kept = {it.value: it.match for some in parts.values() for it in some if it.key == FEED}
        if secret not in kept:
            raise UnknownPage("no such feed; it may have been revoked")
        return await self._answer(kept[secret], request.path)

    async def _answer(self, of: str, path: str) -> Answer:
        """Return the feed of a site or rule, or of all."""
        parts, down = await self._library.each(lambda _: asking(_newest, of=of))
        told = [
            _Entry(shard, f"{epoch}-{name}", it)
            for shard, (epoch, some) in sorted(parts.items())
            for name, it in some
        ]
        told = sorted(told, key=lambda one: -one.change.at)[:_NEWS]
        feed = _feed(plain(of or self._api.name), min(parts.items())[1][0], path, told)
        # Without reading a text it is known whether a reader has all of this.
        name = f"{path} {[(each.name, each.change.seq) for each in told]} {sorted(down)}"
        return Answer(
            self._written(feed, told), "application/atom+xml", name=name, headers=down_header(down)
        )

    async def _written(
        self, feed: ET.Element, told: Sequence[_Entry]
    ) -> AsyncGenerator[bytes, None]:
        for each in told:
            blocks: Sequence[AlignedBlock] = ()
            if each.change.kind == "changed" and each.change.version_id is not None:
                read = partial(_blocks, it=each.change)
                blocks = await self._library.one(each.shard, read)
            _add_entry(feed, each, blocks)
        yield ET.tostring(feed, "utf-8", xml_declaration=True)


# -- reads of one store --------------------------------------------------------


async def _newest(db: Reader, of: str) -> _News:
    now = await changefeed.position(db, "now")
    if of.startswith(RULE):
        return now.epoch, await _told_by(db, of.removeprefix(RULE))
    sites = Sites([StoredSite(match=of)] if of else [])
    found = await changefeed.newest(db, _NEWS, lambda url: not of or bool(sites.matching(url)))
    return now.epoch, [(str(it.seq), it) for it in found]


async def _told_by(db: Reader, rule: str) -> list[tuple[str, LastChange]]:
    """Return the alerts of a rule; empty without the extension that has rules."""
    sql = "SELECT 1 FROM sqlite_master WHERE name = 'alert'"
    if not await db.execute_fetchall(sql):
        return []
    rows = await db.execute_fetchall(
        "SELECT a.key, a.id, p.id, p.url, p.title, a.kind, f.at, f.version_id, f.resemblance, "
        "f.blocks_added, f.blocks_removed, f.kinds FROM alert AS a "
        "JOIN finding AS f ON f.id = a.observation_id JOIN page AS p ON p.id = f.page_id "
        "WHERE a.rule = ? AND a.message_id IS NOT NULL ORDER BY a.id DESC LIMIT ?",
        (rule, _NEWS),
    )
    return [
        (
            key,
            LastChange(
                seq=number, page_id=page_id, url=url, title=title, kind=kind, at=at,
                version_id=version_id, moved_to=None, no_content_since=None,
                resemblance=resemblance, blocks_added=added, blocks_removed=removed, kinds=kinds,
            ),
        )
        for key, number, page_id, url, title, kind, at, version_id, resemblance, added, removed,
        kinds in rows
    ]  # fmt: skip


async def _blocks(made: Documents, it: LastChange) -> Sequence[AlignedBlock]:
    """Return the blocks of a change; empty if the bytes of a version are not stored."""
    async with page.snapshot(made.path) as db:
        versions = await page.versions(db, it.page_id)
    after = [each for each in versions if each.version_id == it.version_id]
    before = [
        each for each in versions if each.significant and each.version_id < (it.version_id or 0)
    ]
    if not after or not before:
        return ()
    numbers = str(before[-1].number), str(after[0].number)
    with suppress(UnknownPage):
        found = await difference(
            made, typed=it.url, before=numbers[0], after=numbers[1], noise=True
        )
        return [each for each in found.blocks if each.change != "kept"]
    return ()


# -- Atom --------------------------------------------------------------------


def _feed(name: str, epoch: str, path: str, told: Sequence[_Entry]) -> ET.Element:
    feed = ET.Element("feed", xmlns="http://www.w3.org/2005/Atom")
    _add(feed, "id", uuid5(NAMESPACE_URL, f"freshet:{epoch}{path.removeprefix(_ATOM)}").urn)
    _add(feed, "title", f"Changes in {name}")
    _add(feed, "updated", iso(told[0].change.at if told else 0.0))
    _add(ET.SubElement(feed, "author"), "name", "Freshet")
    ET.SubElement(feed, "link", rel="self", type="application/atom+xml", href=path)
    return feed


def _add_entry(feed: ET.Element, it: _Entry, blocks: Sequence[AlignedBlock]) -> None:
    change = it.change
    entry = ET.SubElement(feed, "entry")
    _add(entry, "id", uuid5(NAMESPACE_URL, f"freshet:{it.name}").urn)
    _add(entry, "title", plain(change.title or "") or change.url)
    _add(entry, "updated", iso(change.at))
    ET.SubElement(entry, "link", href=change.url)
    if change.version_id is not None:
        href = f"{PAGES}/{quote(change.url, safe='')}?format=html"
        ET.SubElement(entry, "link", rel="related", type="text/html", href=href)
    _add(entry, "summary", _summary(change, blocks))
    if blocks:
        shown = "".join(map(_html, blocks[:_BLOCKS]))
        left = len(blocks) - _BLOCKS
        shown += f"<p>{counted(left, 'block', 'further')}</p>" if left > 0 else ""
        _add(entry, "content", shown).set("type", "html")


def _add(parent: ET.Element, tag: str, text: str) -> ET.Element:
    element = ET.SubElement(parent, tag)
    element.text = text
    return element


def _html(block: AlignedBlock) -> str:
    """Return a block that differs as HTML, with insertions and deletions marked."""
    if block.change == "edited":
        said = "".join(
            _marked(run.before, "del") + _marked(run.after, "ins")
            if not run.is_kept
            else escape(plain_ends(run.after))
            for run in shortened(block.runs, _AROUND)
        )
        return f"<p>{said}</p>"
    text = block.text if len(block.text) <= _BLOCK_CHARS else f"{block.text[:_BLOCK_CHARS]}…"
    element = {"added": "ins", "removed": "del"}.get(block.change, "em")
    return f"<p>{_marked(text, element)}</p>"


def _marked(text: str, element: str) -> str:
    return f"<{element}>{escape(plain_ends(text))}</{element}>" if text else ""


def plain_ends(text: str) -> str:
    """Return printable words with the blanks at their ends."""
    before, after = text[:1].isspace(), text[-1:].isspace() and len(text) > 1
    return f"{' ' * before}{plain(text)}{' ' * after}"


_WORDS: Final = {
    "new": "New", "changed": "Changed", "refreshed": "Refreshed", "gone": "Gone",
    "moved": "Moved to {}",
    "noindex": "No longer to be indexed", "robots": "Forbidden by robots.txt",
    "withdrawn": "Taken back: it was no content", "forgotten": "Forgotten",
}  # fmt: skip


def _summary(change: LastChange, blocks: Sequence[AlignedBlock]) -> str:
    words = _WORDS.get(change.kind, plain(change.kind)).format(change.moved_to or "another page")
    if blocks:
        return f"{words}: {plain(in_one_line(blocks, _SUMMARY_WIDTH))}"
    numbers = {"added": change.blocks_added, "removed": change.blocks_removed}
    parts = [f"{counted(count, 'block')} {how}" for how, count in numbers.items() if count]
    parts += [each for each in change.channels if each not in TEXT_CHANNELS or not parts]
    is_told = parts and change.kind in {"changed", REFRESHED}
    return f"{words}: {', '.join(parts)}" if is_told else words
