"""The Allow and Disallow lines of one agent, and which of them decides over a path.

RFC 9309, sections 2.2.2 and 2.2.3: the longest match by octets wins, Allow before
Disallow; ``*`` is any run of characters, ``$`` the end; both sides are compared in one
normal spelling. Reserved characters keep the form in which they came (RFC 3986, section
2.2): ``/`` and ``%2F`` differ. Differs from the RFC in that its Table 4 escapes them
within a query; public test suites do not.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

_UNRESERVED = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
_NOT_NORMAL = re.compile(rb"%[0-9A-Fa-f]{2}|[^A-Za-z0-9._~:/?#\[\]@!&'()+,;=-]")
_NOT_NORMAL_ASCII = re.compile(rb"%[0-9A-Fa-f]{2}|[^A-Za-z0-9._~:/?#\[\]@!&'()+,;=\x80-\xff-]")
_BEFORE_PATH = re.compile(r"(?:[A-Za-z][A-Za-z0-9+.-]*:)?(?://)?[^/?#]*")


@dataclass(frozen=True, slots=True)
class Rule:
    """One Allow or Disallow line; ``parts`` are the normal octets between its asterisks.

    ``line`` counts from 1, ``text`` is the line as a person would write it.
    """

    allow: bool
    parts: tuple[str, ...]
    anchored: bool
    text: str
    line: int

    @property
    def is_prefix(self) -> bool:
        """Whether the pattern has no special characters."""
        return len(self.parts) == 1 and not self.anchored

    @property
    def rank(self) -> int:
        """Of the rules that match, the one of the highest rank decides.

        In order of the pattern's octets, then Allow above Disallow.
        """
        octets = sum(map(len, self.parts)) + len(self.parts) - 1 + self.anchored
        return 2 * octets + self.allow

    def matches(self, path: str) -> bool:
        """Put each part at its leftmost place: linear, for no part ever has to move right."""
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


class Rules:
    """Rules arranged so that most of them are never looked at.

    Those without special characters are prefixes: one dictionary look-up for each
    distinct length, longest first. The others are tried by rank while they outrank the
    prefix that was found, and only where the path has their longest part somewhere.
    """

    __slots__ = ("_lengths", "_prefixes", "_wildcards")

    def __init__(self, rules: Iterable[Rule]) -> None:
        ranked = sorted(rules, key=lambda rule: rule.rank)
        self._prefixes = {rule.parts[0]: rule for rule in ranked if rule.is_prefix}
        self._lengths = sorted({len(prefix) for prefix in self._prefixes}, reverse=True)
        patterns = {(rule.parts, rule.anchored): rule for rule in ranked if not rule.is_prefix}
        self._wildcards = [
            (rule.rank, max(rule.parts, key=len), rule)
            for rule in sorted(patterns.values(), key=lambda rule: rule.rank, reverse=True)
        ]

    def deciding(self, path: str) -> Rule | None:
        """The rule that decides over a normal path, or None where none matches."""
        best = self._longest_prefix(path)
        best_rank = -1 if best is None else best.rank
        for rank, needle, rule in self._wildcards:
            if rank <= best_rank:
                break
            if needle in path and rule.matches(path):
                return rule
        return best

    def _longest_prefix(self, path: str) -> Rule | None:
        for length in self._lengths:
            rule = self._prefixes.get(path[:length])
            if rule is not None:
                return rule
        return None


def read_rule(allow: bool, pattern: bytes, line: int) -> Rule | None:
    """The rule that a line states, or None where its pattern can match no path.

    A pattern begins with ``/`` (so the grammar) or ``*`` (so an example of the RFC).
    """
    if not pattern.startswith((b"/", b"*")):
        return None
    literals = pattern.removesuffix(b"$").split(b"*")
    text = f"{'Allow' if allow else 'Disallow'}: {pattern.decode('utf-8', 'replace')}"
    return Rule(allow, tuple(map(_normal, literals)), pattern.endswith(b"$"), text, line)


def readings(url: str) -> list[str]:
    """The normal path and query of a URL: one, or two if the URL is not a URI.

    Octets outside ASCII may go on the wire escaped (as the RFC wants) or as they are (as
    Google's tests take them); the second reading leaves them, and so equals no rule.
    """
    before = _BEFORE_PATH.match(url)
    path = url[before.end() if before else 0 :].partition("#")[0]
    octets = (path if path.startswith("/") else f"/{path}").encode("utf-8", "surrogatepass")
    escaped = _normal(octets)
    return [escaped] if path.isascii() else [escaped, _normal(octets, _NOT_NORMAL_ASCII)]


def _normal(octets: bytes, not_normal: re.Pattern[bytes] = _NOT_NORMAL) -> str:
    """The one spelling in which octets are compared, a character for each octet.

    Escaped unreserved octets are unescaped, octets that no URI contains are escaped, and
    escapes are in upper case. ``*`` and ``$`` are escaped as well: as data they are then
    never taken for the special characters of a pattern. Idempotent.
    """
    return not_normal.sub(_normal_octet, octets).decode("latin-1")


def _normal_octet(found: re.Match[bytes]) -> bytes:
    token = found[0]
    octet = int(token[1:], 16) if len(token) == 3 else token[0]
    return bytes((octet,)) if octet in _UNRESERVED else b"%%%02X" % octet
