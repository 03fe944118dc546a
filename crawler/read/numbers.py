"""A number of a page over its versions: a price, or the number in an element or behind a text."""

from collections.abc import Sequence
from dataclasses import dataclass

from aiosqlite import Connection as Reader

from freshet.crawler.errors import UnknownPage, UsageError
from freshet.crawler.read.documents import read_text
from freshet.crawler.reduce.numbers import joined, number_in
from freshet.crawler.reduce.offers import Offers
from freshet.crawler.reduce.parser_process import Parser, Unparsable
from freshet.crawler.reduce.tree import SelectorHints
from freshet.storage.queries import page
from freshet.storage.queries.page import StoredVersion


@dataclass(frozen=True, slots=True)
class VersionNumber:
    """A number in a version of a page, which was fetched ``at`` a time.

    ``source`` is "stated" of a price in the page's data (schema.org, Open Graph), "shown" of one
    with a currency, "text" of a number in its text, and "" without one.
    """

    version: int
    at: float
    value: float | None
    source: str


async def numbers_of(
    db: Reader, parser: Parser, url: str, page_id: int, *, within: str | None = None,
    number: str = "", most: int | None = None,
) -> list[VersionNumber]:  # fmt: skip
    """Return the number in the last ``most`` versions with stored bytes, oldest first.

    With ``within`` (a CSS selector) or ``number`` (the text around it, with ``*`` in its place) it
    is read as alert rules read it. Without both it is a price: the price in the page's structured
    data, else the likeliest one that the page shows, else the first number of its text.

    Raises:
        UsageError: the selector is not valid, or ``number`` has more than one ``*``.
    """
    hints = _place(within, number)
    kept = [it for it in await page.versions(db, page_id) if it.body_kept]
    found = []
    for it in kept if most is None else kept[-most:]:
        value, source = None, ""
        if within is None and not number:
            value, source = await _price(db, parser, url, it)
        if value is None:
            value = await _in_text(db, parser, url, it, hints=hints, number=number)
            source = "text" if value is not None else ""
        found.append(VersionNumber(it.number, it.at, value, source))
    return found


def _place(within: str | None, number: str) -> SelectorHints | None:
    """Return the selector of a number; raises UsageError where the place is not valid."""
    if number.count("*") > 1:
        raise UsageError("number: it has one *, which stands for the number")
    try:
        return None if within is None else SelectorHints((within,), strict=True)
    except ValueError as error:
        raise UsageError(f"within: {error}") from error


async def _price(
    db: Reader, parser: Parser, url: str, it: StoredVersion
) -> tuple[float | None, str]:
    """Return the price of a version, and whether it is stated or shown."""
    told = await _offers(db, parser, url, it)
    if told.stated:
        return told.stated[0], "stated"
    return (told.shown[0].value, "shown") if told.shown else (None, "")


async def place_of_price(db: Reader, parser: Parser, url: str, page_id: int) -> dict[str, str]:
    """Return ``within`` and ``number`` of an alert rule for the price of the last kept version.

    Empty if a rule would read no price there, or another one than the page's data states.
    """
    kept = [it for it in await page.versions(db, page_id) if it.body_kept]
    told = await _offers(db, parser, url, kept[-1]) if kept else Offers()
    wanted = told.stated[:1] or tuple(it.value for it in told.shown)
    for it in told.shown:
        if not it.selector or it.value not in wanted:
            continue
        hints = SelectorHints((it.selector,), strict=True)
        read = await _in_text(db, parser, url, kept[-1], hints=hints, number=it.number)
        if read == it.value:
            return {"within": it.selector, "number": it.number}
    return {}


async def _offers(db: Reader, parser: Parser, url: str, it: StoredVersion) -> Offers:
    """Return the prices of a version; empty if its bytes cannot be read."""
    body = await page.body(db, it.version_id)
    told = None if body is None else await parser.offers(body, url, it.content_type)
    return Offers() if told is None or isinstance(told, Unparsable) else told


async def _in_text(
    db: Reader, parser: Parser, url: str, it: StoredVersion, *, hints: SelectorHints | None,
    number: str,
) -> float | None:  # fmt: skip
    """Return the number in the text of a version; None also where it cannot be parsed."""
    before, _, behind = number.partition("*")
    try:
        texts: Sequence[str] = (await read_text(db, parser, url, it, hints)).texts
    except UnknownPage:
        return None
    return number_in(joined(texts), before, behind)
