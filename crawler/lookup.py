"""Lookup in a store: the page of a URL, a version of it, its document, and differences."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from difflib import SequenceMatcher
from typing import Final

from aiosqlite import Connection as Reader

from freshet.crawler.admission.site_lists import seeds_from_arguments
from freshet.crawler.clock import calendar
from freshet.crawler.compare.diff import AlignedBlock, align, counts
from freshet.crawler.compare.history import PageMemory
from freshet.crawler.compare.layout import Layout
from freshet.crawler.documents import Documents, StoredDocument, UnknownPage, read_text
from freshet.crawler.reduce.markup import Blocks
from freshet.crawler.reduce.parser_process import Parser, ParserLost
from freshet.crawler.tally import UsageError
from freshet.crawler.urls import canonical, origin
from freshet.storage.queries import page
from freshet.storage.queries.page import KnownUrl, OtherName, StoredVersion
from freshet.storage.records import PageHistory
from freshet.storage.tables import changefeed, observations

# -- pages -------------------------------------------------------------------
_NEAREST: Final = 3


def spellings(text: str) -> list[str]:
    """Return the canonical URLs that ``text`` may mean: without a scheme https, then http.

    Raises:
        UsageError: the text is not a URL.
    """
    sites = seeds_from_arguments([text])
    for problem in sites.problems:
        raise UsageError(f"{problem.text}: {problem.message}")
    seed = sites.seeds[0]
    urls = [seed.url] if seed.fallback_url is None else [seed.url, seed.fallback_url]
    return [canonical(url) for url in urls]


async def known(db: Reader, typed: str) -> KnownUrl:
    """Return what the store knows of a URL as it was typed.

    Raises:
        UsageError: it is not a URL.
        UnknownPage: the store does not know it; the message names the nearest URLs.
    """
    urls = spellings(typed)
    found = await page.find(db, urls)
    if found is None:
        raise UnknownPage(unknown(typed, await nearest(db, urls[0])))
    return found


async def final(db: Reader, typed: str) -> KnownUrl | OtherName:
    """Return the page that a URL stands for, also through redirects; raises as :func:`known`."""
    found = await known(db, typed)
    return found.alias or found


async def nearest(db: Reader, url: str) -> list[str]:
    """Return the known URLs on the host of ``url``, http and https, that are most like it."""
    schemes = [f"{scheme}{url[url.index(':') :]}" for scheme in ("https", "http")]
    near = [
        known
        for spelling in schemes
        for known in await page.neighbours(db, str(origin(spelling)), spelling)
    ]
    return sorted(near, key=lambda known: -_similarity(known, url))[:_NEAREST]


def unknown(url: str, near: Sequence[str]) -> str:
    """Return the message about a URL that the store does not know."""
    if not near:
        return f"{url} is not known, nor any other URL on that host"
    return f"{url} is not known; the nearest on that host: {', '.join(near)}"


def _similarity(one: str, other: str) -> float:
    """Return the similarity from 0 to 1, whatever the schemes."""
    return SequenceMatcher(
        None, one.partition(":")[2], other.partition(":")[2], autojunk=False
    ).ratio()


# -- versions ----------------------------------------------------------------


def version_of(
    stored: list[StoredVersion], counted: list[StoredVersion], wanted: str
) -> StoredVersion:
    """Return a version by number, from the end of those that count if negative, or of a date.

    Raises:
        UsageError: ``wanted`` is no such number, or neither a number nor a date.
        UnknownPage: the page had no version then.
    """
    numbers = f"1 to {len(stored)}, or from the end -1 to -{len(counted)}"
    if wanted.removeprefix("-").isdecimal():
        number = int(wanted)
        among = stored if number > 0 else counted
        if not 1 <= abs(number) <= len(among):
            raise UsageError(f"version {wanted}: accepted are {numbers}")
        return among[number - 1 if number > 0 else number]
    try:
        at = datetime.fromisoformat(wanted).astimezone().timestamp()
    except (ValueError, OverflowError) as error:
        raise UsageError(
            f"version {wanted}: accepted are {numbers}, or a date such as 2026-03-31T12:00"
        ) from error
    then = [version for version in counted if version.at <= at]
    if not then:
        first = calendar(stored[0].at).astimezone()
        raise UnknownPage(f"version {wanted}: the first is of {first:%Y-%m-%d %H:%M:%S}")
    return then[-1]


async def document(
    db: Reader, documents: Documents, typed: str, wanted: str | None = None
) -> StoredDocument:
    """Return the document of a page: of its last significant version, or of the one wanted.

    Raises:
        UsageError: the URL or the version is none.
        UnknownPage: the store does not have it.
    """
    it = await final(db, typed)
    stored = await page.versions(db, it.page_id)
    if not stored:
        raise UnknownPage(f"{it.url}: the store has no content of it")
    if wanted is None:
        version_id = await changefeed.document_of(db, it.page_id) or stored[-1].version_id
    else:
        counted = [each for each in stored if each.significant]
        version_id = version_of(stored, counted, wanted).version_id
    try:
        (found,) = (await documents.read(db, [version_id])).values()
    except ParserLost as error:
        raise UnknownPage(
            f"{typed}: its text could not be made now ({error}); try again"
        ) from error
    return found


# -- differences -------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class VersionDifference:
    """Two versions of a page, aligned; ``volatile`` are positions in the later one."""

    url: str
    before: StoredVersion
    after: StoredVersion
    blocks: tuple[AlignedBlock, ...]
    volatile: frozenset[int] = frozenset()

    def is_volatile(self, block: AlignedBlock) -> bool:
        """Return whether the block stands at a slot that differs at every visit."""
        return block.after in self.volatile

    @property
    def is_empty(self) -> bool:
        """True if no block of main text differs."""
        return all(block.change == "kept" for block in self.blocks)

    def around_changes(self, context: int) -> Iterator[AlignedBlock | int]:
        """Yield all changes with unchanged blocks around them, and the number of those between."""
        near: set[int] = set()
        for place, block in enumerate(self.blocks):
            if block.change != "kept":
                near.update(range(place - context, place + context + 1))
        left_out = 0
        for place, block in enumerate(self.blocks):
            if place in near:
                if left_out:
                    yield left_out
                left_out = 0
                yield block
            else:
                left_out += 1
        if left_out:
            yield left_out

    def as_json(self) -> dict[str, object]:
        """Return the difference as JSON values; unchanged blocks are only counted."""
        return {
            "url": self.url,
            "before": asdict(self.before),
            "after": asdict(self.after),
            "counts": counts(self.blocks),
            "blocks": [
                asdict(b) | {"volatile": self.is_volatile(b)}
                for b in self.blocks
                if b.change != "kept"
            ],
        }


def volatile_blocks(history: PageHistory, blocks: Blocks) -> frozenset[int]:
    """Return the positions of the blocks at slots that differ at every visit."""
    if history.memory is None:
        return frozenset()
    volatile = PageMemory.from_bytes(history.memory).volatile
    items = Layout(blocks.places, blocks.places).items()
    return frozenset(i for i, item in enumerate(items) if not volatile.isdisjoint(item.slots))


async def difference(
    db: Reader,
    parser: Parser,
    typed: str,
    before: str | None = None,
    after: str | None = None,
    *,
    noise: bool = False,
) -> VersionDifference:
    """Compare two versions of a page; without names the last significant one with that before it.

    Raises:
        UsageError: the URL or a version is none.
        UnknownPage: the store does not have them, or their bytes.
    """
    it = await final(db, typed)
    stored = await page.versions(db, it.page_id)
    old, new = _chosen(it.url, stored, (before, after), noise=noise)
    texts = [await read_text(db, parser, it.url, each) for each in (old, new)]
    history = await observations.load(db, it.page_id)
    volatile = volatile_blocks(history, texts[1]) if history is not None else frozenset()
    blocks = align(texts[0].texts, texts[1].texts)
    return VersionDifference(it.url, old, new, blocks, volatile)


def _chosen(
    url: str, stored: list[StoredVersion], wanted: tuple[str | None, str | None], *, noise: bool
) -> tuple[StoredVersion, StoredVersion]:
    counted = stored if noise else [each for each in stored if each.significant]
    if len(stored) < 2:
        had = "one version" if stored else "no version"
        raise UnknownPage(f"{url}: has {had} in the store; a diff needs two")
    if None in wanted and len(counted) < 2:
        raise UnknownPage(
            f"{url}: has not changed significantly; --all compares its {len(stored)} versions"
        )
    before, after = wanted
    last = counted[-1] if after is None else version_of(stored, counted, after)
    if before is not None:
        return version_of(stored, counted, before), last
    earlier = [each for each in counted if each.number < last.number]
    return (earlier or [last])[-1], last
