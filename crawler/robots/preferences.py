"""Preferences: the uses of its pages that a site allows or forbids.

The following are read, as of 2026-12-01:

- ``Content-Usage``, header and line of robots.txt: draft-ietf-aipref-attach-04 and
  draft-ietf-aipref-vocab (the editors' copy of 2026-08-20, whose categories are ``train-ai`` and
  ``search``), a dictionary of RFC 9651;
- ``Content-Signal``, likewise: Cloudflare's Content Signals Policy (contentsignals.org);
- ``tdm-reservation``, header, ``meta``, and ``/.well-known/tdmrep.json``: TDM Reservation
  Protocol, final report of 2024;
- ``noai``, ``noimageai``, ``noarchive``, ``nosnippet``, ``max-snippet`` of X-Robots-Tag and
  ``meta`` robots.

*Invariant.* A use is forbidden if one statement forbids it, else allowed if one allows it, else
unknown (aipref-vocab, *Combining Preferences*). A page's ``tdm-reservation`` overrides the
header's, as its protocol requires.
"""

import json
import logging
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Any, Final, Literal, NamedTuple, TypeAlias, get_args

from freshet.crawler.robots import UsageLine, directives_for, line_for
from freshet.storage.errors import StoreError

log = logging.getLogger(__name__)

#: A use of a page. ``ai-input``: in answers of a model; ``ai-train``: training of a model; ``tdm``:
#: text and data mining (includes training).
Use: TypeAlias = Literal[
    "search", "ai-input", "ai-train", "tdm", "images-ai", "snippet", "archive"
]  # fmt: skip
USES: Final = get_args(Use)
#: Source of a statement; ``file`` is ``/.well-known/tdmrep.json``.
Place: TypeAlias = Literal["robots", "file", "header", "page"]


_PLACES: Final[dict[Place, str]] = {
    "robots": "robots.txt", "file": "tdmrep.json", "header": "header", "page": "page",
}  # fmt: skip


class Preference(NamedTuple):
    """A statement: whether a use is ``allowed``, its source and its text."""

    use: Use
    allowed: bool
    place: Place
    text: str

    @property
    def where(self) -> str:
        """Return the name of the source for users."""
        return _PLACES[self.place]


# -- grammars --------------------------------------------------------------------

#: Labels of aipref-vocab; other labels are ignored, as it requires.
_LABELS: Final[dict[str, Use]] = {"train-ai": "ai-train", "search": "search"}
_ALLOWS: Final = {"y": True, "n": False}
#: A bare item, parameters, and a member of a dictionary of RFC 9651 (section 3.2).
_BARE: Final = (
    r"(?:\"(?:[ !#-\[\]-~]|\\[\"\\])*\"|[A-Za-z*][!#$%&'*+.^_`|~:/0-9A-Za-z-]*|:[A-Za-z0-9+/=]*:"
    r"|\?[01]|@?-?[0-9]{1,15}(?:\.[0-9]{1,3})?|%\"[ -~]*\")"
)
_KEY: Final = r"[a-z*][a-z0-9_.*-]*"
_PARAMETERS: Final = rf"(?:; *{_KEY}(?:={_BARE})?)*"
_MEMBER: Final = re.compile(
    rf"({_KEY})(?:=({_BARE}|\( *(?:{_BARE}{_PARAMETERS}(?: +|(?=\))))*\)))?{_PARAMETERS}"
)
_COMMA: Final = re.compile(r"[ \t]*,[ \t]*")


def usage(value: str) -> dict[Use, bool]:
    """Parse a ``Content-Usage`` value; return by use whether it is allowed, {} if malformed."""
    members, at = dict[str, str | None](), 0
    value = value.strip(" \t")
    while at < len(value):
        found = _MEMBER.match(value, at)
        if found is None:
            return {}
        # The last value of a repeated key counts.
        members[found[1]] = found[2]
        comma = _COMMA.match(value, found.end())
        if found.end() < len(value) and (comma is None or comma.end() == len(value)):
            return {}
        at = len(value) if comma is None else comma.end()
    pairs = ((_LABELS[key], _ALLOWS.get(it or "")) for key, it in members.items() if key in _LABELS)
    return {use: allowed for use, allowed in pairs if allowed is not None}


_SIGNALS: Final[dict[str, Use]] = {
    "search": "search", "ai-input": "ai-input", "ai-train": "ai-train",
}  # fmt: skip
_ANSWERS: Final = {"yes": True, "no": False}


def signals(value: str) -> dict[Use, bool]:
    """Parse a ``Content-Signal`` value; return by use whether it is allowed; ignore other words."""
    pairs = (each.partition("=") for each in value.lower().split(","))
    found = ((_SIGNALS.get(name.strip()), _ANSWERS.get(it.strip())) for name, _, it in pairs)
    return {use: allowed for use, allowed in found if use is not None and allowed is not None}


_GRAMMARS: Final = {"Content-Usage": usage, "Content-Signal": signals}
#: Path of a site's TDM reservations, and the largest number of rules read from it.
TDM_FILE: Final = "/.well-known/tdmrep.json"
_MOST_RULES: Final = 1_000


def reservations(body: bytes) -> list[UsageLine]:
    """Return the lines of a TDM reservations file; an empty list if it is malformed."""
    try:
        rules = json.loads(body)
    except (ValueError, RecursionError):
        return []
    found = list[UsageLine | None]()
    for number, rule in enumerate(rules[:_MOST_RULES] if isinstance(rules, list) else ()):
        path, flag = (rule.get(key) for key in _OF_RULE) if isinstance(rule, dict) else _NO_RULE
        if isinstance(path, str) and (value := str(flag)) in _RESERVED:
            text = f"tdm-reservation {value} for {path}"
            found.append(line_for(TDM_FILE, path, value, text, number))
    return [line for line in found if line is not None]


_OF_RULE: Final = ("location", "tdm-reservation")
_NO_RULE: Final = (None, None)
#: Uses that a directive forbids.
_FORBIDDING: Final[dict[str, tuple[Use, ...]]] = {
    "noai": ("ai-train", "ai-input"), "noimageai": ("images-ai",),
    "nosnippet": ("snippet",), "noarchive": ("archive",), "nocache": ("archive",),
}  # fmt: skip
_MAX_SNIPPET: Final = re.compile(r"max-snippet\s*[:=]\s*(-?\d+)")
_RESERVED: Final[dict[str, bool]] = {"1": False, "0": True}
#: Form of a ``tdm-reservation`` ``meta`` element among the directives of a page.
_TDM_META: Final = re.compile(r"tdm-reservation:\s*([01])\s*")


# -- statements ------------------------------------------------------------------


def of_lines(lines: Iterable[UsageLine], place: Place) -> Iterator[Preference]:
    """Yield the statements of lines of robots.txt or of the TDM reservations file."""
    for line in lines:
        if line.name == TDM_FILE:
            yield from _mining(_RESERVED[line.value], place, line.text)
            continue
        for use, allowed in _GRAMMARS[line.name](line.value).items():
            yield Preference(use, allowed, place, line.text)


def of_response(values: Callable[[str], Sequence[str]], agent: str) -> Iterator[Preference]:
    """Yield the statements of response headers; ``values`` returns the values of a header name."""
    # Lines of one header are combined into one list (RFC 9110, section 5.3).
    for name, read in _GRAMMARS.items():
        for use, allowed in read(value := ", ".join(values(name))).items():
            yield Preference(use, allowed, "header", f"{name}: {value}")
    for flag in values("tdm-reservation")[:1]:
        if (is_free := _RESERVED.get(flag.strip())) is not None:
            yield from _mining(is_free, "header", f"tdm-reservation: {flag.strip()}")
    for item in directives_for(values("X-Robots-Tag"), agent, is_header=True):
        yield from _of_directive(item, "header", "X-Robots-Tag")


def of_page(contents: Collection[str], agent: str) -> Iterator[Preference]:
    """Yield the statements of a page's ``meta`` elements."""
    for content in contents:
        if (found := _TDM_META.fullmatch(content)) is not None:
            yield from _mining(_RESERVED[found[1]], "page", f"meta tdm-reservation: {found[1]}")
    for item in directives_for(contents, agent, is_header=False):
        yield from _of_directive(item, "page", "meta robots")


def _mining(allowed: bool, place: Place, text: str) -> Iterator[Preference]:
    yield Preference("tdm", allowed, place, text)
    # Training is one kind of mining: forbidden mining forbids it, allowed mining does not allow it.
    if not allowed:
        yield Preference("ai-train", False, place, text)


def _of_directive(item: str, place: Place, name: str) -> Iterator[Preference]:
    for word in re.split(r"[\s;,]+", item):
        for use in _FORBIDDING.get(word, ()):
            yield Preference(use, False, place, f"{name}: {word}")
    for length in _MAX_SNIPPET.findall(item):
        yield Preference("snippet", length != "0", place, f"{name}: max-snippet:{length}")


# -- all statements of a page ----------------------------------------------------

#: Sources of ``tdm-reservation``, in ascending precedence.
_RANKS: Final = ("robots", "file", "header", "page")


def _in_force(stated: Collection[Preference]) -> list[Preference]:
    """Return the statements without reservations that a source of higher precedence overrides."""
    ranks = [_RANKS.index(it.place) for it in stated if "tdm-reservation" in it.text]
    best = max(ranks, default=0)
    return [
        it for it in stated if "tdm-reservation" not in it.text or _RANKS.index(it.place) == best
    ]


def resolved(stated: Collection[Preference]) -> dict[Use, bool]:
    """Return by use whether it is allowed; unknown uses are missing."""
    found: dict[Use, bool] = {}
    for use, allowed, _, _ in _in_force(stated):
        found[use] = allowed and found.get(use, True)
    return {use: found[use] for use in USES if use in found}


def forbidding(stated: Collection[Preference], uses: Collection[str]) -> Preference | None:
    """Return the first statement that forbids one of these uses, or None."""
    return next((it for it in _in_force(stated) if not it.allowed and it.use in uses), None)


def as_text(stated: Iterable[Preference]) -> str:
    """Return statements in the store's text form; "" if there are none."""
    rows = sorted(set(stated))
    return json.dumps(rows, ensure_ascii=False, separators=(",", ":")) if rows else ""


def as_json(stated: Collection[Preference]) -> dict[Use, Any]:
    """Return by use whether it is allowed, and all statements on it."""
    in_force = _in_force(stated)
    return {
        use: {
            "allowed": allowed,
            "statements": [f"{it.where}: {it.text}" for it in in_force if it.use == use],
        }
        for use, allowed in resolved(stated).items()
    }


def in_words(stated: Collection[Preference]) -> Iterator[tuple[Use, str]]:
    """Yield each known use with a text: allowed or forbidden, and by which statements."""
    for use, found in as_json(stated).items():
        answer = "allowed" if found["allowed"] else "forbidden"
        yield use, f"{answer} ({'; '.join(found['statements'])})"


def from_text(text: str | None) -> tuple[Preference, ...]:
    """Return the statements that :func:`as_text` wrote.

    Raises:
        StoreError: The text is damaged or was edited.
    """
    try:
        rows = json.loads(text) if text else []
    except (ValueError, RecursionError):
        rows = None
    if not isinstance(rows, list) or not all(map(_is_statement, rows)):
        raise StoreError(
            "the store holds preferences of a page that Freshet did not write"
            f" ({str(text)[:60]!r}); the page's next visit reads them again"
        )
    return tuple(Preference(*row) for row in rows)


def _is_statement(row: object) -> bool:
    """Return whether a JSON value is a statement."""
    match row:
        case [str(use), bool(), str(place), str()]:
            return use in USES and place in _PLACES
    return False


def _last_statements(text: str | None) -> tuple[Preference, ...]:
    """Return the statements of the last visit; an empty tuple if they are damaged."""
    try:
        return from_text(text)
    except StoreError as error:
        log.warning("%s", error)
        return ()


def restated(
    last: str | None,
    agent: str,
    *,
    robots: Iterable[UsageLine] | None = None,
    reserved: Iterable[UsageLine] | None = None,
    headers: Callable[[str], Sequence[str]] | None = None,
    contents: Collection[str] | None = None,
) -> str | None:
    """Return the new statements of a page in text form, or None if they equal the ``last`` ones.

    ``robots`` are the lines of the robots.txt in force, ``reserved`` the lines of the TDM
    reservations file. ``headers`` returns the values of a header name. ``contents`` are from the
    page's ``meta`` elements. A source that is None keeps its last statements.
    """
    read: dict[Place, Iterable[Preference] | None] = {
        "robots": None if robots is None else of_lines(robots, "robots"),
        "file": None if reserved is None else of_lines(reserved, "file"),
        "header": None if headers is None else of_response(headers, agent),
        "page": None if contents is None else of_page(contents, agent),
    }
    stated = [it for it in _last_statements(last) if read[it.place] is None]
    stated += [it for some in read.values() if some is not None for it in some]
    text = as_text(stated)
    return None if text == (last or "") else text
