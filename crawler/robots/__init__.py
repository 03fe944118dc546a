"""robots.txt by RFC 9309, and the robots directives of pages.

:func:`allowed` checks one URL against one file; a crawl uses a :class:`~.cache.RobotsCache`.
"""

import codecs
import math
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Final, NamedTuple

from freshet.crawler.fetch.bounds import SITEMAPS
from freshet.storage.entries import RobotsRecord, RobotsStanding
from freshet.storage.records import FetchResult

# -- rules -------------------------------------------------------------------

_UNRESERVED = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
_NOT_NORMAL = re.compile(rb"%[0-9A-Fa-f]{2}|[^A-Za-z0-9._~:/?#\[\]@!&'()+,;=-]")
_NOT_NORMAL_ASCII = re.compile(rb"%[0-9A-Fa-f]{2}|[^A-Za-z0-9._~:/?#\[\]@!&'()+,;=\x80-\xff-]")
#: Number of characters at the end of a rule's longest part that index the rule.
_END = 4
_BEFORE_PATH = re.compile(r"(?:[A-Za-z][A-Za-z0-9+.-]*:)?(?://)?[^/?#]*")


@dataclass(frozen=True, slots=True)
class _Rule:
    """One Allow or Disallow line; ``parts`` are the normal octets between its asterisks.

    ``line`` counts from 1; ``text`` is the line in its usual form.
    """

    allow: bool
    parts: tuple[str, ...]
    anchored: bool
    text: str
    line: int

    @property
    def is_prefix(self) -> bool:
        """Return whether the pattern has no special characters."""
        return len(self.parts) == 1 and not self.anchored

    @property
    def rank(self) -> int:
        """Return the rank; the matching rule with the highest rank decides.

        Rules are ranked by the pattern's number of octets, then Allow above Disallow.
        """
        octets = sum(map(len, self.parts)) + len(self.parts) - 1 + self.anchored
        return 2 * octets + self.allow

    def matches(self, path: str) -> bool:
        """Match each part at its leftmost place: linear, because no part has to be moved right."""
        head, *rest = self.parts
        if not path.startswith(head):
            return False
        if not rest:
            return not self.anchored or path == head
        *middle, tail = rest
        at = len(head)
        for part in middle:
            at = path.find(part, at)
            if at < 0:
                return False
            at += len(part)
        if self.anchored:
            return path.endswith(tail) and at <= len(path) - len(tail)
        return path.find(tail, at) >= 0


class UsageLine(NamedTuple):
    """A line of robots.txt on how the pages at its path may be used.

    ``path`` is a rule, or None if the line applies to all pages; ``text`` is the line in its usual
    form.
    """

    name: str
    value: str
    text: str
    path: _Rule | None

    @property
    def length(self) -> int:
        """Return the rank of the path, -1 without one: the longest path takes precedence."""
        return -1 if self.path is None else self.path.rank

    def holds_for(self, paths: Iterable[str]) -> bool:
        """Return whether the line applies to a page with one of these normal paths."""
        return self.path is None or any(map(self.path.matches, paths))


class _Rules:
    """Index of rules that needs few comparisons per path.

    Rules without special characters are prefixes: one dictionary look-up for each distinct length,
    longest first. The other rules are tried by rank while they outrank the prefix that was found,
    and only if the path contains their longest part. They are indexed by the last characters of
    that part, so few of thousands are tried.
    """

    __slots__ = ("_lengths", "_prefixes", "_wildcards")

    def __init__(self, rules: Iterable[_Rule]) -> None:
        ranked = sorted(rules, key=lambda rule: rule.rank)
        self._prefixes = {rule.parts[0]: rule for rule in ranked if rule.is_prefix}
        self._lengths = sorted({len(prefix) for prefix in self._prefixes}, reverse=True)
        patterns = {(rule.parts, rule.anchored): rule for rule in ranked if not rule.is_prefix}
        self._wildcards: dict[str, list[tuple[int, str, _Rule]]] = {}
        for rule in sorted(patterns.values(), key=lambda rule: rule.rank, reverse=True):
            needle = max(rule.parts, key=len)
            same_end = self._wildcards.setdefault(needle[-_END:], [])
            same_end.append((rule.rank, needle, rule))

    def deciding(self, path: str) -> _Rule | None:
        """Return the rule that decides on a normal path, or None if no rule matches."""
        prefixes = (self._prefixes.get(path[:length]) for length in self._lengths)
        best = next(filter(None, prefixes), None)
        best_rank = -1 if best is None else best.rank
        for end in self._ends_in(path):
            for rank, needle, rule in self._wildcards[end]:
                if rank <= best_rank:
                    break
                if needle in path and rule.matches(path):
                    best, best_rank = rule, rank
                    break
        return best

    def _ends_in(self, path: str) -> Iterable[str]:
        if len(self._wildcards) < len(path):
            return [end for end in self._wildcards if end in path]
        starts = range(len(path) + 1)
        parts = {path[i : i + size] for size in range(_END + 1) for i in starts}
        return sorted(self._wildcards.keys() & parts)


def _read_rule(allow: bool, pattern: bytes, line: int) -> _Rule | None:
    """Return the rule of a line, or None if its pattern cannot match any path.

    A pattern begins with ``/`` (by the grammar) or ``*`` (by an example of the RFC).
    """
    if not pattern.startswith((b"/", b"*")):
        return None
    literals = pattern.removesuffix(b"$").split(b"*")
    text = f"{'Allow' if allow else 'Disallow'}: {pattern.decode('utf-8', 'replace')}"
    return _Rule(allow, tuple(map(_normal, literals)), pattern.endswith(b"$"), text, line)


def line_for(name: str, path: str, value: str, text: str, number: int) -> UsageLine | None:
    """Return a line for the pages at a path, or None if the pattern cannot match any path."""
    rule = _read_rule(True, path.encode("utf-8", "replace"), number)
    return None if rule is None else UsageLine(name, value, text, rule)


def decisive(lines: Iterable[UsageLine], url: str) -> list[UsageLine]:
    """Return the lines for the page at a URL: for each name, all with the longest path."""
    paths = readings(url)
    found = [line for line in lines if line.holds_for(paths)]
    longest: dict[str, int] = {}
    for line in found:
        longest[line.name] = max(line.length, longest.get(line.name, line.length))
    return [line for line in found if line.length == longest[line.name]]


def _usage_line(name: str, value: bytes, line: int) -> UsageLine:
    """Parse a usage line, whose value may begin with a path."""
    path, usage = b"", value
    if value.startswith(b"/"):
        path, _, usage = value.partition(b" ") if b" " in value else value.partition(b"\t")
    rule = _read_rule(True, path, line) if path else None
    return UsageLine(name, _text(usage.strip()), f"{name}: {_text(value)}", rule)


def readings(url: str) -> list[str]:
    """Return the normal path and query of a URL: one reading, or two if the URL is not a URI.

    Octets outside ASCII may be sent percent-encoded (as the RFC requires) or raw (as in Google's
    tests). The second reading leaves them raw, so it does not match rules with such octets.
    """
    before = _BEFORE_PATH.match(url)
    path = url[before.end() if before else 0 :].partition("#")[0]
    octets = (path if path.startswith("/") else f"/{path}").encode("utf-8", "surrogatepass")
    escaped = _normal(octets)
    return [escaped] if path.isascii() else [escaped, _normal(octets, _NOT_NORMAL_ASCII)]


def _normal(octets: bytes, not_normal: re.Pattern[bytes] = _NOT_NORMAL) -> str:
    """Return octets in normal form for comparison, a character for each octet. Idempotent.

    Escaped unreserved octets are unescaped, octets that are not allowed in a URI are escaped, and
    escapes are in upper case. ``*`` and ``$`` are also escaped, so that they are not taken for the
    special characters of a pattern.
    """
    return not_normal.sub(_normal_octet, octets).decode("latin-1")


def _normal_octet(found: re.Match[bytes]) -> bytes:
    token = found[0]
    octet = int(token[1:], 16) if len(token) == 3 else token[0]
    return bytes((octet,)) if octet in _UNRESERVED else b"%%%02X" % octet


LIMIT_BYTES = 500 * 1024
DAY_S = 86_400.0

_BYTE_ORDER_MARK = re.compile(rb"\A\xef(?:\xbb\xbf?)?")
_UTF16_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_PRODUCT_TOKEN = re.compile(r"\*(?!\S)|[a-z0-9_-]+")
_SECONDS = re.compile(rb"\d+(?:\.\d*)?|\.\d+")

_USER_AGENT = frozenset({b"user-agent", b"useragent", b"user agent"})
_DISALLOW = frozenset({b"disallow", b"disalow", b"dissallow", b"dissalow"})
_CRAWL_DELAY = frozenset({b"crawl-delay", b"crawldelay", b"crawl delay"})
#: A URL, or a path without a host.
_REFERENCE = re.compile(rb"https?://|[^\s:]*[./]\S*\Z", re.IGNORECASE)
_SITEMAP = frozenset({b"sitemap", b"site-map", b"sitemaps"})
#: Names of usage lines by key (:mod:`freshet.crawler.robots.preferences`).
_USAGE = {b"content-usage": "Content-Usage", b"content-signal": "Content-Signal"}
#: Limit of sitemaps read from a file: more than are used, so that reaching the limit is noticed.
_SITEMAPS = 2 * SITEMAPS


@dataclass(frozen=True, slots=True)
class RobotsVerdict:
    """A permission or prohibition, with the deciding rule, its line (from 1) and group.

    ``rule`` and ``line`` are None if no rule matched, ``agent`` is None if no group matched.
    """

    allowed: bool
    rule: str | None = None
    line: int | None = None
    agent: str | None = None


#: The verdict of a file without rules.
_ALLOWED: Final = RobotsVerdict(allowed=True)


@dataclass(slots=True)
class _Section:
    """Successive user-agent lines, and the rules for these agents.

    All sections of a group share one ``rules`` list and one ``usage`` list, and an agent refers to
    its sections: the cost of parsing does not grow when many agents share many rules.
    """

    rules: list[_Rule]
    usage: list[UsageLine]
    delay_s: float | None = None


@dataclass(frozen=True, slots=True)
class RobotsTxt:
    """A parsed robots.txt. ``sitemaps`` are URL references in the order of the file.

    They should be absolute; a relative one is resolved against the file's URL.
    ``closed`` is complete disallow and overrides the groups (section 2.3.1.4). Agents are
    identified by their product token, case-insensitively. ``size_bytes`` is the approximate size
    in memory.
    """

    sitemaps: tuple[str, ...] = ()
    closed: bool = False
    size_bytes: int = field(default=500, compare=False)
    _groups: Mapping[str, Sequence[_Section]] = field(default_factory=dict, repr=False)
    _rules: dict[str, _Rules] = field(default_factory=dict, init=False, repr=False, compare=False)

    def allows(self, user_agent: str, url: str) -> bool:
        """Return whether the agent may fetch the URL."""
        return self.verdict(user_agent, url).allowed

    def verdict(self, user_agent: str, url: str) -> RobotsVerdict:
        """Return the answer of :meth:`allows` with the deciding rule."""
        if not self._groups and not self.closed:
            return _ALLOWED
        paths = readings(url)
        if paths[0] == "/robots.txt":
            return RobotsVerdict(allowed=True)
        if self.closed:
            return RobotsVerdict(allowed=False)
        agent = self._agent(user_agent)
        if agent is None:
            return RobotsVerdict(allowed=True)
        rules = [self._rules_for(agent).deciding(path) for path in paths]
        rule = next((rule for rule in rules if rule is not None and not rule.allow), rules[0])
        if rule is None:
            return RobotsVerdict(allowed=True, agent=agent)
        return RobotsVerdict(rule.allow, rule.text, rule.line, agent)

    def usage(self, user_agent: str, url: str) -> list[UsageLine]:
        """Return the usage lines for the agent and the page at a URL.

        For each name, the lines with the longest matching path apply, as for :meth:`verdict`. If
        several lines have that length, all of these apply.
        """
        agent = self._agent(user_agent)
        sections = () if agent is None else self._groups[agent]
        # Several sections may share one list.
        lists = {id(section.usage): section.usage for section in sections if section.usage}
        return decisive((line for each in lists.values() for line in each), url) if lists else []

    def crawl_delay_s(self, user_agent: str) -> float | None:
        """Return the Crawl-delay for the agent in seconds, or None if the file has none for it."""
        agent = self._agent(user_agent)
        sections = () if agent is None else self._groups[agent]
        return max((s.delay_s for s in sections if s.delay_s is not None), default=None)

    def _agent(self, user_agent: str) -> str | None:
        """Return the name of the group to obey: the agent's, else ``*``; None without either."""
        token = _product_token(user_agent)
        if token in self._groups:
            return token
        return "*" if "*" in self._groups else None

    def _rules_for(self, agent: str) -> _Rules:
        rules = self._rules.get(agent)
        if rules is None:
            lists = {id(section.rules): section.rules for section in self._groups[agent]}
            rules = self._rules[agent] = _Rules(rule for each in lists.values() for rule in each)
        return rules


class _Reader:
    """Line parser; a rule ends the user-agent lines of its group."""

    def __init__(self) -> None:
        self.groups: dict[str, list[_Section]] = {}
        self.sitemaps: dict[str, None] = {}
        self._section = _Section([], [])
        self._group_closed = False

    def _delay(self, value: bytes) -> None:
        """Keep the longest delay; ignore a value that is not a finite number of seconds."""
        if _SECONDS.fullmatch(value) and math.isfinite(float(value)):
            self._section.delay_s = max(float(value), self._section.delay_s or 0.0)

    def take(self, number: int, line: bytes) -> None:
        key, value = _key_and_value(line)
        if key in _USER_AGENT:
            self._name_agent(_text(value))
        elif key == b"allow" or key in _DISALLOW:
            self._group_closed = True
            if rule := _read_rule(key == b"allow", value, number):
                self._section.rules.append(rule)
        elif key in _CRAWL_DELAY:
            self._delay(value)
        elif key in _USAGE:
            # A usage line does not end the user-agent lines: RFC 9309 has no such rule.
            self._section.usage.append(_usage_line(_USAGE[key], value, number))
        elif key in _SITEMAP and len(self.sitemaps) < _SITEMAPS and _REFERENCE.match(value):
            self.sitemaps[_text(value)] = None

    def _name_agent(self, value: str) -> None:
        if self._group_closed:
            self._section, self._group_closed = _Section([], []), False
        elif self._section.delay_s is not None:
            self._section = _Section(self._section.rules, self._section.usage)
        token = _product_token(value)
        if token is not None:
            self.groups.setdefault(token, []).append(self._section)


def parse(body: bytes, *, limit_bytes: int = LIMIT_BYTES) -> RobotsTxt:
    """Parse a robots.txt up to ``limit_bytes`` (section 2.5).

    The file should be UTF-8; UTF-16 with a byte order mark is accepted.
    """
    text = cut_at_line_end(body, limit_bytes)
    if text.startswith(_UTF16_MARKS):
        text = text.decode("utf-16", "replace").encode()
    text = _BYTE_ORDER_MARK.sub(b"", text, count=1)
    reader, lines = _Reader(), text.splitlines()
    for number, line in enumerate(lines, start=1):
        reader.take(number, line)
    # Measured on files of one kind of line each: up to a third too high, never too low.
    size = 500 + 350 * len(lines) + 64 * text.count(b"*") + 3 * len(text)
    return RobotsTxt(tuple(reader.sitemaps), size_bytes=size, _groups=reader.groups)


def allowed(robots_txt: bytes, user_agent: str, url: str) -> bool:
    """Return whether a robots.txt allows the agent (a product token) to fetch the URL."""
    return parse(robots_txt).allows(user_agent, url)


def cut_at_line_end(body: bytes, limit_bytes: int = LIMIT_BYTES) -> bytes:
    """Return the complete lines within ``limit_bytes``: a truncated rule is a different rule."""
    if len(body) <= limit_bytes:
        return body
    end = limit_bytes + 1
    return body[: max(body.rfind(b"\n", 0, end), body.rfind(b"\r", 0, end), 0)]


def standing(status: int | None, failure: str | None) -> RobotsStanding:
    """Interpret the answer to a request for robots.txt (section 2.3.1).

    ``status`` is the last hop's. ``failure`` is a word for a failure without a status or after it
    (time-out, reset, truncated body …). A 3xx status means a sixth redirect or an invalid target:
    the file is unavailable, so everything is allowed (section 2.3.1.2). The RFC does not mention
    429; it counts as unreachable, as a server that limits requests has not allowed all of them.
    """
    if failure is not None or status is None or status == 429:
        return "unreachable"
    if 200 <= status < 300:
        return "parsed"
    return "allow_all" if 300 <= status < 500 else "unreachable"


def record_of(result: FetchResult, now: float, max_bytes: int = LIMIT_BYTES) -> RobotsRecord:
    """Return the record of a fetched robots.txt."""
    # A truncated body has the status 200, which must not count as success. A success without
    # content is a file without rules.
    is_read = result.outcome in ("fetched", "skipped")
    broken = not is_read and (result.status or 0) < 300
    state = standing(result.status, result.reason if broken else None)
    body = cut_at_line_end(result.body, max_bytes) if state == "parsed" else b""
    why = (result.detail or result.reason) if state == "unreachable" else None
    return RobotsRecord(state, now, body, why)


def is_fresh(record: RobotsRecord, now: float, max_age_s: float = DAY_S) -> bool:
    """Return whether the record may be used without a new request (section 2.4: for 24 hours).

    Always False for an unreachable file and for the old copy used in its place: back-off, not age,
    determines the time of the next request.
    """
    reachable = record.standing != "unreachable" and record.stale_since is None
    return reachable and now - record.fetched_at < max_age_s


def after_fetch(
    previous: RobotsRecord | None,
    new: RobotsRecord,
    now: float,
    stale_max_age_s: float = 30 * DAY_S,
) -> RobotsRecord:
    """Return the record to keep: the new one, or the old copy while the file is unreachable.

    A copy fetched more than ``stale_max_age_s`` ago is replaced by complete disallow
    (section 2.3.1.4). A kept copy records since when and why the file is unreachable.
    """
    if new.standing != "unreachable" or previous is None:
        return new
    too_old = now - previous.fetched_at > stale_max_age_s
    if previous.standing == "unreachable" or too_old:
        return new
    since = now if previous.stale_since is None else previous.stale_since
    return replace(previous, stale_since=since, reason=new.reason)


def in_force(record: RobotsRecord | None, agent: str = "*") -> RobotsTxt:
    """Return the rules of a record, indexed for the agent; this is slow, so keep the result."""
    if record is None or record.standing != "parsed":
        return RobotsTxt(closed=record is None or record.standing == "unreachable")
    file = parse(record.body, limit_bytes=len(record.body))
    file.allows(agent, "/")
    return file


def _key_and_value(line: bytes) -> tuple[bytes, bytes]:
    content = line.partition(b"#")[0]
    key, colon, value = content.partition(b":")
    if not colon:
        words = content.split()
        key, value = words if len(words) == 2 else (b"", b"")
    return key.strip().lower(), value.strip()


def _text(value: bytes) -> str:
    return value.decode("utf-8", "replace")


@lru_cache(64)
def _product_token(text: str) -> str | None:
    match = _PRODUCT_TOKEN.match(text.strip().lower())
    return match[0] if match else None


# -- directives --------------------------------------------------------------
#
# Robots directives of pages: ``meta`` robots and the X-Robots-Tag header.
#
# No standard exists; words and grammar follow the documentation of the large crawlers
# (developers.google.com/search/docs/crawling-indexing/robots-meta-tag): words separated by commas,
# a few with a value after a colon; in the header, a crawler's name and a colon precede the words
# for that crawler alone.

_WEEKDAY = r"(?:mon|tues?|wed(?:nes)?|thu(?:rs)?|fri|sat(?:ur)?|sun)(?:day)?"
# Blanks and names are matched possessively, to exclude backtracking.
_ITEM = re.compile(
    rf"\s*+(?:[^,:]*+:\s*+)?unavailable_after\s*+:\s*+(?:{_WEEKDAY}\s*+,)?[^,]*+|[^,]++",
    re.IGNORECASE,
)
_UNAVAILABLE_AFTER = "unavailable_after"
_WITH_VALUE = frozenset(
    {_UNAVAILABLE_AFTER, "max-snippet", "max-image-preview", "max-video-preview"}
)
_EVERYBODY = frozenset({"*", "robots"})
#: A directive with its value. The value is not a directive; for previews it may be "none".
_VALUED = re.compile(r"\bmax-[\w-]+\s*+[:=]\s*+[^\s;]*+")


@dataclass(frozen=True, slots=True)
class Directives:
    """Directives of a page."""

    nofollow: bool = False
    noindex: bool = False
    noarchive: bool = False


_NO_DIRECTIVES = Directives()


def parse_directives(
    values: Collection[str], user_agent_token: str, *, is_header: bool
) -> Directives:
    """Return the directives for this crawler, including the directives for all crawlers.

    ``values`` are the contents of the ``meta`` elements for all crawlers or for this one, or
    (``is_header``) the X-Robots-Tag fields, in which a crawler's name applies up to the next name
    or the end of the field. A permission never overrides a prohibition.
    """
    words: set[str] = set()
    for item in directives_for(values, user_agent_token, is_header=is_header):
        words.update(re.split(r"[\s;]+", _VALUED.sub(" ", item)))
    if not words:
        return _NO_DIRECTIVES
    return Directives(
        nofollow=not words.isdisjoint({"nofollow", "none"}),
        noindex=not words.isdisjoint({"noindex", "none"}),
        noarchive=not words.isdisjoint({"noarchive", "nocache"}),
    )


def directives_for(
    values: Collection[str], user_agent_token: str, *, is_header: bool
) -> Iterator[str]:
    """Yield the comma-separated items for this crawler, in lower case, without dates."""
    for value in values:
        addressed = _for_agent(value, user_agent_token) if is_header else _items(value)
        for item in addressed:
            if item.partition(":")[0].strip().lower() != _UNAVAILABLE_AFTER:
                yield item.lower()


def _items(value: str) -> Iterator[str]:
    """Return the comma-separated items; a date keeps the comma after its day of the week."""
    return (item.strip() for item in _ITEM.findall(value))


def _for_agent(value: str, token: str) -> Iterator[str]:
    ours = True
    for item in _items(value):
        name, _, rest = (part.strip() for part in item.partition(":"))
        # An unknown directive usually has a number as its value: its name is no crawler's.
        if name.lower() not in _WITH_VALUE and rest[:1].isalpha():
            ours = name.lower() in _EVERYBODY | {token.lower()}
            yield from (rest,) if ours else ()
        elif ours:
            yield item
