"""Crawler traps: session ids, calendars, endless depth and combinations.

One URL never proves a trap; many of one shape do. A sign therefore names the *shape* that a URL
has in common with its kin, and the number of URLs of that shape that are crawled on a host. A
shape leaves out the part that a trap varies, so a trap has few shapes. URLs are
counted and not refused outright, because a calendar and a forum that hands out session ids
have content too.
"""

import re
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from functools import lru_cache
from typing import Final, Literal
from urllib.parse import unquote_plus

from freshet.crawler.fetch.bounds import LruCache
from freshet.crawler.urls import is_session, without_fragment
from freshet.storage.entries import DATES

_Parameters = Sequence[tuple[str, str]]

#: The cause of endless URLs.
TrapKind = Literal["session", "calendar", "query", "path"]
#: The reason why a page must show something new to count: its kind is endless.
Proof = Literal["dated", "combined"]


@dataclass(frozen=True, slots=True)
class TrapLimits:
    """Bounds of endless depth, and of the URLs of one shape that are crawled on one host.

    ``max_url_length`` is in characters; a sequence of segments that occurs ``max_repeats``
    times in a row, or a segment that occurs more often than that, is endless depth. URLs of
    one path with more than ``max_parameters`` share a shape; from ``min_combined`` values that
    recur a URL is one of many combinations (:class:`Combinations`). The other numbers are URLs
    of one shape.
    """

    max_url_length: int = 2048
    max_path_segments: int = 32
    max_repeats: int = 3
    max_session_urls: int = 50
    max_calendar_urls: int = 400
    max_query_urls: int = 5000
    max_parameters: int = 8
    min_combined: int = 2


@dataclass(frozen=True, slots=True)
class TrapSign:
    """A URL's bounded shape: the first ``cap`` URLs of it on a host are crawled."""

    kind: TrapKind
    shape: str
    cap: int


# A URL is read for its sign, its values and its ending.
@lru_cache(maxsize=64)
def place_of(url: str) -> tuple[str, str, str]:
    """Return the site, the path and the query of a URL without a fragment."""
    head, _, query = url.partition("?")
    site, slash, rest = head.partition("://")[2].partition("/")
    return site, slash + rest, query


def classify(
    url: str, limits: TrapLimits, today: Callable[[], date] | None = None
) -> TrapSign | None:
    """Return the sign that an http or https URL bears, None for an ordinary one.

    A calendar is endless in two directions: the days before ``today`` (only called for a calendar)
    have a separate shape, so that past years without an event leave room for future ones.

    ``url`` is resolved; the shape starts with its path. A session id beside a calendar or
    another query takes the shape and the cap of these, so that both together are bounded.
    """
    _, path, query = place_of(without_fragment(url) if "#" in url else url)
    path = path or "/"
    segments = path.removeprefix("/").removesuffix("/").split("/")
    if why := _endless(url, segments, limits):
        return TrapSign("path", f"/{segments[0][:40]}/… ({why})", 0)
    plain, parameters, session = _without_session(path, _parameters(query))
    sign = _calendar(plain, parameters, limits, today) or _query(plain, parameters, limits)
    if not session:
        return sign
    shape, cap = (sign.shape, sign.cap) if sign else (plain, limits.max_session_urls)
    return TrapSign("session", f"{shape} ({session})", cap)


#: Scripts make pages of their parameters: a pattern has only the names.
_SCRIPT = re.compile(r".+\.(?:php\d?|phtml|aspx?|jspx?|cgi|pl|py|do|action|cfm|dll)", re.IGNORECASE)
_SHAPE = re.compile(r"(?P<path>.*?)(?P<rest>(?:\?| \().*)?", re.DOTALL)


def pattern_of(sign: TrapSign) -> str | None:
    """Return the pattern of a URL with this sign; None if no URL of it is crawled.

    Coarser than the shape, so that ``/article/17?print`` and ``/article/18?print`` share one:
    segments with digits are alike, and so are the last ones of a directory. Those of calendars end
    with :data:`~freshet.storage.entries.DATES`.
    """
    if not sign.cap:
        return None
    found = _SHAPE.fullmatch(sign.shape)
    path, rest = (found["path"], found["rest"] or "") if found else (sign.shape, "")
    *directories, last = path.removesuffix("/").split("/")
    end = "/" if path.endswith("/") else ""
    segments = list(map(_plain, directories))
    if not _SCRIPT.fullmatch(last):
        last = "*" if len(directories) > 1 else _plain(last)
    dates = DATES if sign.kind == "calendar" else ""
    return "/".join((*segments, last)) + end + rest + dates


def _parameters(query: str) -> _Parameters:
    """Return names and values, decoded; a part without '=' is the value of the empty name."""
    if not query:
        return []
    pairs = (unquote_plus(p).partition("=") for p in query.split("&"))
    return [(name, value) if equals else ("", name) for name, equals, value in pairs]


def _endless(url: str, segments: Sequence[str], limits: TrapLimits) -> str | None:
    if len(url) > limits.max_url_length:
        return f"longer than {limits.max_url_length} characters"
    if len(segments) > limits.max_path_segments:
        return f"more than {limits.max_path_segments} segments"
    return "repeated segments" if _repeats(segments, limits.max_repeats) else None


def _repeats(segments: Sequence[str], times: int) -> bool:
    """Return whether segments repeat as they do where a relative link leads ever deeper.

    Numbers may: ``/000/000/012/`` is a usual partition of files.
    """
    if len(segments) - len(set(segments)) < times - 1:
        return False
    counts = Counter(s for s in segments if not s.isdecimal())
    if counts and max(counts.values()) > times:
        return True
    return any(_in_a_row(segments, n, times) for n in range(1, len(segments) // times + 1))


def _in_a_row(segments: Sequence[str], length: int, times: int) -> bool:
    """Return whether a sequence of ``length`` segments occurs ``times`` times in a row."""
    equal, words = 0, False
    for one, next_one in zip(segments, segments[length:], strict=False):
        equal, words = (equal + 1, words or not one.isdecimal()) if one == next_one else (0, False)
        if words and equal >= length * (times - 1):
            return True
    return False


_PATH_PARAMETER = re.compile(r";([^;=/]+)=([^;/]+)")
#: ASP.NET without cookies: ``/(S(lit3py55t21z5v55vlm25s55))/page.aspx``.
_ASP_SEGMENT = re.compile(r"/\((?:[A-Z]\([^()/]+\))+\)(?=/|$)")


def _without_session(path: str, parameters: _Parameters) -> tuple[str, _Parameters, str]:
    """Return the URL without its session id, and the id's name or ""."""
    names = [name for name, value in parameters if is_session(name, value)]
    if names:
        parameters = [p for p in parameters if not is_session(*p)]
    if ";" in path:
        for match in list(_PATH_PARAMETER.finditer(path)):
            if is_session(match[1], match[2]):
                names.append(match[1])
                path = path.replace(match[0], "")
    if "(" in path and _ASP_SEGMENT.search(path):
        path = _ASP_SEGMENT.sub("", path)
        names.append("asp.net_sessionid")
    return path, parameters, names[0].lower() if names else ""


#: A calendar's cap is used up long before it leaves these years; identifiers do leave them.
_YEAR, _MONTH, _DAY = r"(?:19|2[01])\d\d", r"(?:0?[1-9]|1[0-2])", r"(?:0?[1-9]|[12]\d|3[01])"
_PATH_DATE = re.compile(rf"/{_YEAR}(?:/{_MONTH}(?:/{_DAY})?|-{_MONTH}(?:-{_DAY})?)/?$")
_DATE = re.compile(rf"{_YEAR}([-/]?){_MONTH}(?:\1{_DAY})?(?:[T ]\d.*)?")
_UNIX_TIME = re.compile(r"\d{9,10}")
_SMALL_NUMBER = re.compile(r"\d{1,2}")
_WORD = re.compile(r"[A-Za-z_]{0,16}")


def _name(*long: str, short: str) -> re.Pattern[str]:
    """Return a parameter's name: one that ends so, or a short one alone or after a separator."""
    return re.compile(rf"(?:.*(?:{'|'.join(long)})|(?:.*[-_.\[])?(?:{short}))\]?", re.IGNORECASE)


_DATE_NAME = _name("date", "month", "day", "week", "time", short="d|m|ym|ymd|cal")
_YEAR_NAME = _name("year", short="y|yr|yyyy")
_MONTH_NAME = _name("month", short="m|mo|mon|mm")
_PART_NAME = _name("month", "day", "week", short="m|mo|mon|mm|d|dd|w|wk")


def _dates_beside_words(parameters: _Parameters) -> Collection[str] | None:
    """Return the parameters with a date or a part of one; None if others are not words."""
    signs = (_is_whole_date, _is_year, _is_part)
    dates = {name for name, value in parameters if any(sign(name, value) for sign in signs)}
    are_words = all(name in dates or _WORD.fullmatch(value) for name, value in parameters)
    return dates if are_words else None


def _calendar(
    path: str, parameters: _Parameters, limits: TrapLimits, today: Callable[[], date] | None
) -> TrapSign | None:
    """Return a sign where only a date distinguishes the URL from its kin.

    A date in the path ends it: the rest of ``/2026/11/21/title`` is an article. Beside
    a date, a query has at most words, such as the choice of a view.
    """
    dated_path = _PATH_DATE.search(path)
    if not dated_path and not (parameters and _is_date(parameters)):
        return None
    dates = _dates_beside_words(parameters)
    if dates is None:
        return None
    when = _when(dated_path[0] if dated_path else "", parameters)
    is_past = today is not None and _is_past(when, today())
    if dated_path:
        path = path[: dated_path.start()] + re.sub(r"\d+", "#", dated_path[0])
    names = {f"{name}=#" if name in dates else name for name, _ in parameters}
    shape = _shape(path, names) + " (past)" * is_past
    return TrapSign("calendar", shape, limits.max_calendar_urls)


def _is_past(when: tuple[int, ...], today: date) -> bool:
    return when < (today.year, today.month, today.day)[: len(when)]


def _when(path: str, parameters: _Parameters) -> tuple[int, ...]:
    """Return the year, month and day in the URL of a calendar's page, None for missing ones."""
    if path:
        return tuple(int(number) for number in re.findall(r"\d+", path))
    for name, value in parameters:
        if _is_whole_date(name, value):
            if _UNIX_TIME.fullmatch(value):
                at = datetime.fromtimestamp(int(value), UTC)
                return at.year, at.month, at.day
            day = value.partition("T")[0].partition(" ")[0]
            return tuple(int(number) for number in re.findall(r"\d{4}|\d\d?", day))
    years = [int(value) for name, value in parameters if _is_year(name, value)]
    parts = {name.lower(): int(value) for name, value in parameters if _is_part(name, value)}
    months = [value for name, value in parts.items() if _MONTH_NAME.fullmatch(name)]
    return (*years[:1], *months[:1])


def _is_date(parameters: _Parameters) -> bool:
    """Return whether the parameters name at least a month: in one value, or a year and a part."""
    whole = any(_is_whole_date(name, value) for name, value in parameters)
    return whole or (
        any(_is_year(name, value) for name, value in parameters)
        and any(_is_part(name, value) for name, value in parameters)
    )


def _is_whole_date(name: str, value: str) -> bool:
    if found := _DATE.fullmatch(value):
        # Digits alone may be an identifier; the name decides.
        return bool(found[1]) or bool(_DATE_NAME.fullmatch(name))
    return bool(_UNIX_TIME.fullmatch(value) and _DATE_NAME.fullmatch(name))


def _is_year(name: str, value: str) -> bool:
    return bool(_YEAR_NAME.fullmatch(name) and re.fullmatch(_YEAR, value))


def _is_part(name: str, value: str) -> bool:
    return bool(_PART_NAME.fullmatch(name) and _SMALL_NUMBER.fullmatch(value))


def _query(path: str, parameters: _Parameters, limits: TrapLimits) -> TrapSign | None:
    """Return a sign for any query: the set of its names, with the numbers in them left out.

    Many parameters have too many subsets: all sets of one path are one shape.
    """
    if not parameters:
        return None
    names = {re.sub(r"\d+", "#", name) for name, _ in parameters}
    if len(names) > limits.max_parameters:
        shape = f"{path}?… (more than {limits.max_parameters} parameters)"
        return TrapSign("query", shape, limits.max_query_urls)
    return TrapSign("query", _shape(path, names), limits.max_query_urls)


def _shape(path: str, names: Collection[str]) -> str:
    return f"{path}?{'&'.join(sorted(names))}" if names else path


# -- combinations ------------------------------------------------------------
# ``/shop/red/large`` and ``/shop?colour=red&size=large`` are combinations of values that also occur
# in other URLs; their number is the product of the values, and unbounded if any value can be added
# to any URL. ``/product?id=17`` and ``/shop/red/shirt-17`` have a value that occurs only there. A
# value *recurs* if it was seen beside two different rests: for a pair in a query the rest is the
# URL without it, for a segment of a path the part before it. A rest has no versions and no
# languages: the same names occur under each of them, and without one for the default; each is a
# separate page (``/docs/2.1/intro/graphs``, ``/docs/latest/intro/graphs`` and
# ``/docs/intro/graphs``). Nothing in the path of a file is a value
# (``/docs/draft-7/intro/graphs.html``), as not all versions can be known by their names. Of what
# combines the content decides the worth (:mod:`crawler.admission.copies`).

#: Values that are kept, those seen last, at some 150 bytes each.
_VALUES: Final = 65_536
#: Stands in place of a rest's hash for a value that was seen beside two.
_RECURS: Final = 0
#: Most pairs of a query with their names in the pattern.
_NAMED: Final = 2

#: Segments that name a version or a language (ISO 639-1) of what is below, and names of files.
_EDITION: Final = re.compile(
    r"(?:v|version|release|r)?[-_.]?\d+(?:[._]\d+|\.x)+[-_.]?[a-z]*\d*|v\d+|latest|stable|current|next"
    r"|master|main|trunk|head|dev|devel|development|edge|nightly|snapshot|unstable|lts|legacy|old"
    r"|(?:a[abefkmrsvyz]|b[aeghimnors]|c[aehorsuvy]|d[aevz]|e[elnostu]|f[afijory]|g[adlnuv]"
    r"|h[aeiortuyz]|i[adegikostu]|j[av]|k[agijklmnoruvwy]|l[abginotuv]|m[ghiklnrsty]"
    r"|n[abdeglnorvy]|o[cjmrs]|p[ailst]|qu|r[mnouw]|s[acdegiklmnoqrstuvw]|t[aeghiklnorstwy]"
    r"|u[grkz]|v[eio]|w[ao]|xh|y[io]|z[ahu])(?:[-_][a-z]{2,4})?",
    re.IGNORECASE,
)
_FILE: Final = re.compile(r"\.(?:x?html?|md|txt|pdf)$", re.IGNORECASE)

#: A value, and the rest beside it, as hashes that are not kept beyond the run.
_Value = tuple[int, int]


@dataclass(frozen=True, slots=True)
class UrlParts:
    """The parts of a URL: segments of the path and pairs of the query, in order."""

    segments: tuple[str, ...]
    values: tuple[_Value, ...]
    pairs: tuple[_Value, ...]

    @property
    def size(self) -> int:
        """Return how many there are."""
        return len(self.segments) + len(self.pairs)


def _parts(url: str) -> UrlParts:
    """Return the parts of a canonical URL."""
    site, path, query = place_of(url)
    segments = tuple([each for each in path.split("/") if each])
    pairs = tuple(query.split("&")) if query else ()
    in_query = tuple(
        (hash((site, "?", pair)), hash((path, (*pairs[:n], *pairs[n + 1 :]))) or 1)
        for n, pair in enumerate(pairs)
    )
    return UrlParts(segments, _values(site, segments), in_query)


def _values(site: str, segments: Sequence[str]) -> tuple[_Value, ...]:
    """Return the values in a path, without files: their folder may be under several others."""
    if segments and _FILE.search(segments[-1]):
        return ()
    plain: list[str] = []
    rests = []
    for each in segments:
        rests.append(hash((tuple(plain), site)) or 1)
        if not _EDITION.fullmatch(each):
            plain.append(each)
    return tuple((hash((site, each)), rest) for each, rest in zip(segments, rests, strict=True))


class Combinations:
    """The combinations among the URLs of one run; memory is bounded.

    ``least`` values must recur in one URL; 0 switches the rule off. A forgotten value
    looks new, hence a combination like an ordinary URL.
    """

    def __init__(self, least: int) -> None:
        self._least = least
        self._rests: LruCache[int, int] = LruCache(_VALUES)

    def note(self, url: str) -> UrlParts | None:
        """Note a canonical URL; return its parts, or None if it has too few."""
        if not self._least or not (size := (parts := _parts(url)).size):
            return None
        for value, beside in (*parts.values, *parts.pairs):
            # A recurring value stays one.
            is_first = self._rests.get(value) in {None, beside}
            self._rests[value] = beside if is_first else _RECURS
        return parts if size >= self._least else None

    def _run(self, parts: UrlParts) -> int | None:
        """Count the recurring segments at the end of the path of a combination; None of others.

        It is one if enough values of the URL recur, and all values of its query.
        """
        for value, _ in parts.pairs:
            if self._rests.get(value) != _RECURS:
                return None
        run = 0
        for value, _ in reversed(parts.values):
            if self._rests.get(value) != _RECURS:
                break
            run += 1
        return run if run + len(parts.pairs) >= self._least else None

    def is_combined(self, parts: UrlParts | None) -> bool:
        """Return whether a URL is a combination."""
        return parts is not None and self._run(parts) is not None

    def pattern(self, parts: UrlParts | None) -> str | None:
        """Return the pattern of a combination: the path without recurring parts; else None.

        Also None if only a query of few parameters recurs: their names are more precise.
        """
        run = None if parts is None else self._run(parts)
        if parts is None or run is None:
            return None
        if not run and len(parts.pairs) <= _NAMED:
            return None
        kept = parts.segments[: len(parts.segments) - run]
        path = "".join(f"/{_plain(each)}" for each in kept)
        return f"{path}{'/…' if run else ''}{'?…' if parts.pairs else ''} (recurring values)"


def _plain(segment: str) -> str:
    return "#" if any(c.isdigit() for c in segment) else segment
