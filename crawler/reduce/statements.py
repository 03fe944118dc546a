"""Prices, availability and dates that a page states for machines and does not show.

They are read in the terms of schema.org, from JSON-LD, microdata and RDFa. Each thing becomes an
element behind the page, so that every view of the page has it: it is compared, and it is in the
document. What readers see already is left out.
"""

from __future__ import annotations

import json
import re
from calendar import month_abbr, month_name
from collections.abc import Iterable, Iterator, Mapping
from html import escape, unescape
from itertools import chain
from typing import Any, Final

from freshet.crawler.reduce.numbers import NUMBER, PRICE, value_of
from freshet.crawler.reduce.tree import UNSEEN, Tree, is_calm
from freshet.crawler.reduce.tree_parser import tree_of

#: Bounds on the data that is read, and on the statements of a page.
_MOST_NODES: Final = 20_000
_MOST_BYTES: Final = 2**20
_MOST_TOLD: Final = 50
_LONGEST_NAME: Final = 200
_LONGEST_DATE: Final = 40
#: A price is smaller.
_MOST: Final = 1e12
#: Characters around a number that may have its currency.
_AROUND: Final = 12

#: Properties that are read. A price may have a lower and an upper bound.
_PRICES: Final = (("price",), ("lowPrice", "highPrice"), ("minPrice", "maxPrice"))
_TERMS: Final = ("availability", "eventStatus")
#: Moments that people arrange; those at which a page was made or a price ends move by themselves.
_DATES: Final = (
    *("startDate", "endDate", "doorTime", "previousStartDate", "releaseDate"),
    *("availabilityStarts", "availabilityEnds", "applicationDeadline"),
)
_TELLING: Final = "|".join(
    (*chain.from_iterable(_PRICES), *_TERMS, *_DATES, "validThrough")
).encode()
_TOLD: Final = re.compile(_TELLING)
#: Scripts with JSON-LD, and attributes that name a property; both begin with a part found fast.
_SCRIPT: Final = re.compile(rb"ld\+json.*?(?:</s|</S|\Z)", re.DOTALL)
_PROPERTY: Final = re.compile(rb"prop(?:erty)?\s*=\s*[^<>]{0,80}?(?:%b)" % _TELLING)
#: What leads to other things than the page's.
_ELSEWHERE: Final = frozenset(
    "isRelatedTo isSimilarTo isAccessoryOrSparePartFor isConsumableFor review reviews comment "
    "mentions citation shippingDetails hasMerchantReturnPolicy superEvent".split()
)
#: What holds unless something else is stated.
_USUAL: Final = frozenset({"event scheduled"})
_CAMEL: Final = re.compile(r"(?<=[a-z])(?=[A-Z])")
_END: Final = re.compile("[/#:]")
_PLAIN: Final = re.compile(r"\d+(?:\.\d+)?")
_DIGITS: Final = re.compile(r"\d+(?:[.,]\d+)*")
#: Cents may be raised, without a mark before them.
_CENTS: Final = re.compile(r"(\d+) (\d\d)(?!\d)")
_MOMENT: Final = re.compile(r"(\d{4})-(\d\d)-(\d\d)(?:[T ](\d\d):(\d\d))?")
#: The start of JSON-LD after a comment, and its trailing commas.
_BEGINS: Final = re.compile(r"[\[{]")
_TRAILING: Final = re.compile(r",(?=\s*[}\]])")


def with_statements(html: bytes) -> bytes:
    """Return a page in UTF-8 with its statements for machines appended as elements."""
    scripts = (found[0] for found in _SCRIPT.finditer(html))
    is_telling = any(map(_TOLD.search, scripts)) or _PROPERTY.search(html)
    if not is_telling or len(html) > _MOST_BYTES or not is_calm(html):
        return html
    tree = tree_of(html)
    told = statements(tree)
    return html + "".join(f"<stated-fact>{escape(it)}</stated-fact>" for it in told).encode()


def statements(tree: Tree) -> list[str]:
    """Return the statements that a page does not show, a line for each thing."""
    items = [*_linked_data(tree), _marked(tree, "itemscope", "itemtype", "itemprop")]
    items.append(_marked(tree, "typeof", "typeof", "property"))
    found = dict[str, None]()
    shown: _Shown | None = None
    for name, parts in _things(items):
        shown = shown or _Shown(tree)
        if told := [part for part in parts if part not in shown]:
            found[": ".join(filter(None, (name, ", ".join(told))))] = None
        if len(found) == _MOST_TOLD:
            break
    return [*found]


# -- where it is stated --------------------------------------------------------


def _linked_data(tree: Tree) -> Iterator[Any]:
    """Yield the data of JSON-LD; data with damage beyond an extra comma is skipped."""
    for script in tree.named("script"):
        if "ld+json" not in (tree.attribute_of(script, "type") or "").lower():
            continue
        text = tree.text_of(script)
        for each in (text, _mended(text)):
            try:
                yield json.loads(each, strict=False)
            except (ValueError, RecursionError):
                continue
            break


def _mended(text: str) -> str:
    """Return JSON without a comment around it and without trailing commas."""
    begins = _BEGINS.search(text)
    ends = max(text.rfind("]"), text.rfind("}")) + 1
    return _TRAILING.sub("", text[begins.start() : ends]) if begins else ""


def _marked(tree: Tree, scope: str, kind: str, named: str) -> dict[str, list[Any]]:
    """Return the things and properties that attributes of elements mark, as JSON-LD has them.

    ``scope``, ``kind`` and ``named`` are the attributes of a thing, of its type and of a property.
    """
    scopes = set(tree.saying(scope))
    page: dict[str, list[Any]] = {}
    around = [(len(tree), page)]
    for node in sorted(scopes.union(tree.saying(named))):
        while around[-1][0] <= node:
            around.pop()
        said, holder = tree.attributes(node), around[-1][1]
        value: Any
        if node in scopes:
            value = {"@type": _ends(said.get(kind, ""))}
            around.append((tree.end[node], value))
        else:
            value = _value(tree, node, said)
        for name in _ends(said.get(named, "")) or [""]:
            holder.setdefault(name, []).append(value)
    return page


def _ends(said: str) -> list[str]:
    """Return the last parts of names, such as those behind a prefix."""
    return [_END.split(name)[-1] for name in said.split()]


def _value(tree: Tree, node: int, said: Mapping[str, str]) -> str:
    values = (said.get(name) for name in ("content", "datetime", "resource", "href"))
    return next((it for it in values if it is not None), None) or tree.text_of(node)


# -- statements ----------------------------------------------------------------


def _things(items: Iterable[Any]) -> Iterator[tuple[str, list[str]]]:
    """Yield the name of each thing with statements, and the statements, in document order."""
    pending: list[tuple[Any, str, str]] = [([*items], "", "")]
    left = _MOST_NODES
    while pending and (left := left - 1):
        value, name, currency = pending.pop()
        if isinstance(value, dict):
            name = _words(value.get("name"))[:_LONGEST_NAME] or name
            currency = _words(value.get("priceCurrency"))[:_LONGEST_DATE] or currency
            if parts := [*_parts(value, currency)]:
                yield name, parts
        pending += [(each, name, currency) for each in reversed([*_inside(value)])]


def _inside(value: Mapping[str, Any] | list[Any]) -> Iterator[Any]:
    """Yield the other things that one has, or that a list has."""
    named = value.items() if isinstance(value, dict) else (("", each) for each in value)
    for name, each in named:
        if isinstance(each, dict | list) and name not in _ELSEWHERE:
            yield each


def _parts(thing: Mapping[str, Any], currency: str) -> Iterator[str]:
    for names in _PRICES:
        prices = [price for name in names if (price := _price(thing.get(name)))]
        if prices:
            yield f"{'–'.join(dict.fromkeys(prices))} {currency}".rstrip()
    for term in map(_term, map(thing.get, _TERMS)):
        if term and term not in _USUAL:
            yield term
    is_job = "JobPosting" in _each(thing.get("@type"))
    for name in (*_DATES, "validThrough") if is_job else _DATES:
        if moment := _moment(thing.get(name)):
            yield f"{_CAMEL.sub(' ', name).lower()} {moment}"


def _each(said: Any) -> list[Any]:
    return said if isinstance(said, list) else [said]


def _words(said: Any) -> str:
    first = next(iter(_each(said)), None)
    return " ".join(unescape(first).split()) if isinstance(first, str) else ""


def _price(said: Any) -> str:
    """Return a price in one spelling, whichever the page has; a lone point is a decimal mark."""
    first = next(iter(_each(said)), None)
    if isinstance(first, int | float) and not isinstance(first, bool):
        return _spelled(first)
    if (found := NUMBER.search(_words(first))) is None:
        return ""
    value = float(found[0]) if _PLAIN.fullmatch(found[0]) else value_of(found[0])
    return "" if value is None else _spelled(value)


def _spelled(value: float) -> str:
    if not abs(value) < _MOST:
        return ""
    if value == int(value):
        return str(int(value))
    return f"{value:.2f}" if round(value, 2) == value else str(value)


def _term(said: Any) -> str:
    """Return the words of a term of schema.org, such as https://schema.org/InStock."""
    first = next(iter(_each(said)), None)
    said = _words(first.get("@id") if isinstance(first, dict) else first)
    name = _END.split(said)[-1]
    is_term = name.isascii() and name.isalpha() and len(name) <= _LONGEST_DATE
    return _CAMEL.sub(" ", name).lower() if is_term else ""


def _moment(said: Any) -> str:
    """Return a date, with the minute unless it is midnight; else the text if it has digits."""
    text = _words(said)
    if (found := _MOMENT.match(text)) is not None:
        day, minute = "-".join(found.groups()[:3]), ":".join(filter(None, found.groups()[3:]))
        return day if minute in {"", "00:00"} else f"{day} {minute}"
    return text if any(map(str.isdigit, text)) and len(text) <= _LONGEST_DATE else ""


# -- visible text --------------------------------------------------------------


class _Shown:
    """The visible text of a page, for the question whether it contains a statement."""

    def __init__(self, tree: Tree) -> None:
        begin, end = tree.body, tree.end[tree.body]
        rows = zip(*(it[begin:end].tolist() for it in (tree.name, tree.place)), strict=True)
        seen = (i for i, (name, place) in enumerate(rows, begin) if not name and not place & UNSEEN)
        texts = [*map(tree.text_of, seen)]
        # Both are needed: a price may be in several elements, or beside another number.
        said = " ".join("".join(texts).split()), " ".join(" ".join(texts).split())
        moments = (tree.attribute_of(node, "datetime") or "" for node in tree.named("time"))
        self._text = " ".join((*said, *moments)).casefold()
        self._words = re.sub(r"[-\s]+", " ", self._text)
        #: The numbers, each with the text around it.
        self._numbers: dict[float | None, list[str]] = {}
        for text in said:
            for found in chain(NUMBER.finditer(text), _DIGITS.finditer(text)):
                around = text[max(0, found.start() - _AROUND) : found.end() + _AROUND]
                self._numbers.setdefault(value_of(found[0]), []).append(around)
            for found in _CENTS.finditer(text):
                self._numbers.setdefault(float(f"{found[1]}.{found[2]}"), []).append("")

    def __contains__(self, part: str) -> bool:
        """Return whether a price, the words of a term, or a named date are shown."""
        if (moment := _MOMENT.search(part)) is not None:
            return self._has_moment(moment)
        prices, _, currency = part.partition(" ")
        values = [float(it) for it in prices.split("–") if _PLAIN.fullmatch(it)]
        is_named = currency.casefold() in self._text
        if not values:
            return part in self._words
        return all(self._has_price(it, is_named=is_named) for it in values)

    def _has_price(self, value: float, *, is_named: bool) -> bool:
        """Return whether a number has a currency beside it, or cents and one elsewhere."""
        around = self._numbers.get(value, ())
        if around and value != int(value) and is_named:
            return True
        found = (it for text in around for it in PRICE.finditer(text))
        return any(value_of(it["behind"] or it["before"]) == value for it in found)

    def _has_moment(self, moment: re.Match[str]) -> bool:
        year, month, day = map(int, moment.groups()[:3])
        if not 1 <= month <= len(month_name) - 1:
            return False
        named = f"(?:{month_name[month]}|{month_abbr[month]})".casefold()
        dates = (
            f"{year}-{month:02}-{day:02}",
            rf"(?<!\d)0?{day}\D{{1,3}}0?{month}\D{{1,3}}(?:20)?{year % 100:02}(?!\d)",
            rf"(?<!\d)0?{month}/0?{day}/(?:20)?{year % 100:02}(?!\d)",
            rf"(?<!\d)0?{day}(?:st|nd|rd|th|\.)? {named}(?![a-z])",
            rf"(?<![a-z]){named}\.? 0?{day}(?!\d)",
        )
        return re.search("|".join(dates), self._text) is not None and self._has_minute(moment)

    def _has_minute(self, moment: re.Match[str]) -> bool:
        if moment[4] is None:
            return True
        hour, minute = int(moment[4]), int(moment[5])
        past = f"[:.h]{minute:02}"
        few = past if minute else f"(?:{past})?"
        half = rf"{(hour - 1) % 12 + 1}{few} ?{'ap'[hour >= 12]}\.?m"
        return re.search(rf"(?<!\d)(?:0?{hour}{past}|0?{half})", self._text) is not None
