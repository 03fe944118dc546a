"""Dates in two texts that moved by the same time, like a list's dates in another time zone."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime
from itertools import chain
from typing import Final, NamedTuple
from unicodedata import normalize

_NAMES: Final = """
january february march april may june july august september october november december
janvier février mars avril mai juin juillet août septembre octobre novembre décembre
januar februar märz april mai juni juli august september oktober november dezember
enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre
gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre dicembre
janeiro fevereiro março abril maio junho julho agosto setembro outubro novembro dezembro
januari februari maart april mei juni juli augustus september oktober november december
januari februari mars april maj juni juli augusti september oktober november december
stycznia lutego marca kwietnia maja czerwca lipca sierpnia września października listopada grudnia
ledna února března dubna května června července srpna září října listopadu prosince
"""
_WEEKDAYS: Final = """
monday tuesday wednesday thursday friday saturday sunday
lundi mardi mercredi jeudi vendredi samedi dimanche
montag dienstag mittwoch donnerstag freitag samstag sonntag
lunes martes miércoles jueves viernes sábado domingo
maandag dinsdag woensdag donderdag vrijdag zaterdag zondag
"""


def _plain(word: str) -> str:
    letters = normalize("NFD", word.casefold())
    return "".join(each for each in letters if each.isalpha())


def _prefixes(text: str) -> dict[str, int]:
    """Map the names and their beginnings of three letters or more to numbers, if unambiguous."""
    found: dict[str, set[int]] = {}
    for line in text.split("\n"):
        for number, name in enumerate(line.split(), start=1):
            word = _plain(name)
            for end in range(3, len(word) + 1):
                found.setdefault(word[:end], set()).add(number)
    return {word: each.pop() for word, each in found.items() if len(each) == 1}


_MONTHS: Final = _prefixes(_NAMES)
_DAYS: Final = _prefixes(_WEEKDAYS)
_MOMENT: Final = re.compile(
    r"""(?:(?P<weekday>[^\W\d_]{3,10})[.,]*\s+(?:the\s+|den\s+|le\s+)?)?
    (?:(?P<iso>(?P<y1>\d{4})[-/.](?P<m1>\d\d?)[-/.](?P<d1>\d\d?)(?!\d))
    |(?P<figures>(?<![\d.,])(?P<a>\d\d?)(?P<sign>[-/.])\s?(?P<b>\d\d?)(?P=sign)\s?(?P<y2>\d{4}|\d\d)(?![\d.]))
    |(?P<first>(?<![\d.,])(?P<d3>\d\d?)(?:st|nd|rd|th|er|\.|º)?(?:\s+|-)(?:of\s+|de\s+|d['’])?(?P<m3>[^\W\d_]{3,12})\.?(?:,?(?:\s+|-)(?:de\s+|del\s+)?(?P<y3>\d{4}))?)
    |(?P<second>(?P<m4>[^\W\d_]{3,12})\.?\s+(?P<d4>\d\d?)(?:st|nd|rd|th)?(?![\d.:%])(?:,?\s+(?P<y4>\d{4}))?)
    |(?P<cjk>(?P<y5>\d{4})\s?[年년]\s?(?P<m5>\d\d?)\s?[月월]\s?(?P<d5>\d\d?)\s?[日일]))
    (?:(?:\s*,?\s+(?:(?:at|à|um|a\s+las|kl\.?)\s+)?|T|\s+[-–]\s+)(?P<hour>\d\d?)[:h](?P<minute>\d\d)(?::\d\d)?\s*(?P<half>[ap]\.?m\b\.?)?)?""",
    re.VERBOSE | re.IGNORECASE,
)
_DIGIT: Final = re.compile(r"\d")
_MINUTES: Final = 1_440
#: The year of a date without one.
_NO_YEAR: Final = 2_001
#: Time zones lie up to 26 hours apart, by quarters of an hour.
_FARTHEST: Final = 26 * 60
_QUARTER: Final = 15
#: One past date suffices, because past events are not postponed; else this many are needed.
_LEAST: Final = 3
_MANY: Final = 20


class _Moment(NamedTuple):
    minutes: int
    has_time: bool
    has_year: bool


def _moments(text: str, *, month_first: bool) -> tuple[str, list[_Moment]]:
    """Return a text with its dates masked, and the dates."""
    moments: list[_Moment] = []

    def masked(found: re.Match[str]) -> str:
        moment = _read(found, month_first=month_first)
        if moment is None:
            return found[0]
        moments.append(moment)
        word = found["weekday"]
        is_day = word is None or _plain(word) in _DAYS
        return "\0" if is_day else f"{word} \0"

    return _MOMENT.sub(masked, text), moments


def _read(found: re.Match[str], *, month_first: bool) -> _Moment | None:
    said = found.groupdict()
    if said["figures"]:
        day, month = (said["b"], said["a"]) if month_first else (said["a"], said["b"])
        year = said["y2"]
    else:
        number = {"iso": "1", "first": "3", "second": "4", "cjk": "5"}
        which = next(n for name, n in number.items() if said[name])
        year, month, day = said[f"y{which}"], said[f"m{which}"], said[f"d{which}"]
    in_figures = int(month) if month.isdigit() else _MONTHS.get(_plain(month))
    if in_figures is None:
        return None
    years = _NO_YEAR if year is None else int(year) + 2000 * (len(year) == 2)
    try:
        days = date(years, in_figures, int(day)).toordinal()
    except ValueError:
        return None
    hour, half = int(said["hour"] or 0), (said["half"] or "")[:1].lower()
    hour += 12 * (half == "p" and hour < 12) - 12 * (half == "a" and hour == 12)
    minutes = days * _MINUTES + 60 * hour + int(said["minute"] or 0)
    return _Moment(minutes, said["hour"] is not None, year is not None)


def may_move_alike(come: Sequence[str], rows: Iterable[str]) -> bool:
    """Return whether added texts have enough dates for :func:`moved_alike`.

    One of them has a date; others may be in the ``rows`` of its list, which are short.
    """
    by_day, by_month = map(sum, zip((0, 0), *map(_counts, come), strict=True))
    if not (by_day or by_month):
        return False
    for day, month in chain(((0, 0),), map(_counts, rows)):
        by_day += day if by_day else 0
        by_month += month if by_month else 0
        if max(by_day, by_month) >= _LEAST:
            return True
    return False


def _counts(text: str) -> tuple[int, int]:
    """Return the numbers of dates in a text, read with the day first and with the month first.

    Searching takes longer than reading, so it is done once for both.
    """
    if not _DIGIT.search(text):
        return 0, 0
    written = [*_MOMENT.finditer(text)]
    day, month = (
        sum(_read(each, month_first=month_first) is not None for each in written)
        for month_first in (False, True)
    )
    return day, month


def moved_alike(lists: Mapping[int, Sequence[tuple[str, str]]], at: float) -> set[int]:
    """Return the lists in which only the dates differ, moved by the same time.

    ``lists`` has their texts before and after. The dates of all of them move alike. Some are before
    ``at`` (Unix seconds), because past events are not postponed, or they are many. Times of day
    without a date do not count: opening hours do move alike.
    """
    found = (_moved(lists, at, month_first=each) for each in (False, True))
    return next(filter(None, found), set())


def _moved(
    lists: Mapping[int, Sequence[tuple[str, str]]], at: float, *, month_first: bool
) -> set[int]:
    found: list[tuple[_Moment, _Moment]] = []
    places = set[int]()
    for place, texts in lists.items():
        read = _dates(texts, month_first=month_first)
        if read is not None:
            places.add(place)
            found += read
    shifts = {_shift(*pair) for pair in found}
    if len(shifts) != 1 or len(found) < _LEAST:
        return set()
    (shift,) = shifts
    if not 0 < abs(shift) <= _FARTHEST or shift % _QUARTER:
        return set()
    is_telling = len(found) >= _MANY or sum(_past(found, at)) >= _LEAST
    return places if is_telling else set()


def _dates(
    texts: Sequence[tuple[str, str]], *, month_first: bool
) -> list[tuple[_Moment, _Moment]] | None:
    """Return the dates in texts before and after, None if anything else differs."""
    found: list[tuple[_Moment, _Moment]] = []
    # The differing texts are read first: mostly they decide.
    for before, after in sorted(texts, key=lambda each: each[0] == each[1]):
        if before == after and not _DIGIT.search(before):
            continue
        (old, were), (new, are) = (
            _moments(text, month_first=month_first) for text in (before, after)
        )
        if old != new:
            return None
        found += zip(were, are, strict=True)
    return found


def _shift(before: _Moment, after: _Moment) -> int:
    if before[1:] != after[1:]:
        return _FARTHEST + 1
    shift = after.minutes - before.minutes
    year = 365 * _MINUTES
    return shift if before.has_year else (shift + year // 2) % year - year // 2


def _past(found: Iterable[tuple[_Moment, _Moment]], at: float) -> Iterator[bool]:
    today = datetime.fromtimestamp(at, UTC).date().toordinal() * _MINUTES
    return (max(old.minutes, new.minutes) < today and old.has_year for old, new in found)
