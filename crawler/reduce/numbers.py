"""Numbers and prices as people write them, for alert rules and for the prices of a page."""

import re
import unicodedata
from collections.abc import Sequence
from itertools import islice, pairwise
from math import inf, isfinite
from typing import Final

from freshet.crawler.reduce.blocks import compared

#: Groups of three after a blank, or digits with points, commas and apostrophes in between. A digit
#: is first, so that long texts without one are searched fast.
NUMBER: Final = re.compile(r"\d(?:\d{0,2}(?: \d{3})+(?!\d)(?:[.,]\d+)?|\d*(?:[.,'’]\d+)*)")
#: Signs of currencies, and separate words.
_CURRENCY: Final = (
    r"[$£¥¢\u20a0-\u20cf\u5186\u5143\uc6d0]|(?<![^\W\d_])(?:USD|EUR|GBP|JPY|CNY|CHF|AUD|NZD|CAD|"
    r"SEK|NOK|DKK|ISK|PLN|CZK|HUF|RON|BGN|TRY|RUB|UAH|INR|BRL|MXN|ZAR|ILS|KRW|SGD|HKD|THB|AED|SAR|"
    r"Kč|zł|kr|Ft|lei|лв|руб|грн|Rs|TL|Fr|Euro|Dollars?)(?![^\W\d_])"  # noqa: RUF001 - roubles
)
#: A number with a currency behind or before it; ``29,-`` and ``29.–`` have no cents.
PRICE: Final = re.compile(
    rf"(?:{_CURRENCY})\.?\s{{0,3}}(?P<behind>{NUMBER.pattern})"
    rf"|(?P<before>{NUMBER.pattern})(?:[.,]?[-–—])?\s{{0,3}}(?:{_CURRENCY})",
    re.IGNORECASE,
)
_GROUPS: Final = re.compile(r"\d{1,3}(?:[.,]\d{2,3})*[.,]\d{3}")


def value_of(said: str) -> float | None:
    """Return the value of a number as people write it, None if it is a date, a version or such.

    Of a point and a comma the last is the decimal mark. One of them alone before exactly
    three digits groups them, unless a lone 0 or more than three digits precede it.

    >>> [value_of(said) for said in ("1,234.50", "1.234,50", "1 234", "1.234", "0.125", "9.99")]
    [1234.5, 1234.5, 1234.0, 1234.0, 0.125, 9.99]
    >>> value_of("26.11.2026")
    """
    parts = _parts(said)
    if parts is None:
        return None
    value = float(f"{re.sub('[.,]', '', parts[0])}.{parts[1] or 0}")
    return value if isfinite(value) else None


def _parts(said: str) -> tuple[str, str] | None:
    """Return the digits before and after the decimal mark of a number, None if it is not one."""
    plain = re.sub("[ '’]", "", said)
    is_grouped = len(plain) < len(said)
    marks = re.sub("[^.,]", "", plain)
    if not marks:
        return plain, ""
    whole, _, rest = plain.rpartition(marks[-1])
    if len(set(marks)) == 1 and not is_grouped:
        if _GROUPS.fullmatch(plain) and whole != "0":
            return plain, ""
        return (whole, rest) if len(marks) == 1 else None
    groups = marks[:-1]
    is_odd = marks[-1] in groups or (groups and not _GROUPS.fullmatch(whole))
    return None if is_odd else (whole, rest)


# -- a number in a text --------------------------------------------------------

#: The hyphen of a range ("10-20") is not a minus.
_MINUS: Final = re.compile(r"(?<!\w)[-\u2212]")
_MOST_NUMBERS: Final = 10_000


def normal(text: str) -> str:
    """Return a text as alert rules compare it.

    >>> normal("  Sold   OUT ")
    'sold out'
    """
    if not text.isascii():
        text = unicodedata.normalize("NFKC", compared(text))
    return " ".join(text.casefold().split())


def joined(blocks: Sequence[str]) -> str:
    """Return blocks of text as alert rules compare them, a line each."""
    return "\n".join(map(normal, blocks))


def number_in(text: str, before: str = "", behind: str = "") -> float | None:
    """Return the first number between two texts, or None; no number spans two blocks.

    ``text`` is of :func:`joined` blocks.

    >>> number_in(joined(["Was: 12 EUR", "Now: 9,50 EUR"]), "now:", "EUR")
    9.5
    """
    before, behind = map(normal, (before, behind))
    flat = text.replace("\n", " ")
    if (begin := flat.find(before)) < 0:
        return None
    found = islice(NUMBER.finditer(text, begin + len(before)), _MOST_NUMBERS)
    numbers = [
        (*it.span(), -value if _MINUS.match(text, max(it.start() - 1, 0)) else value)
        for it in found
        if (value := value_of(it[0])) is not None
    ]
    numbers.append((len(text), 0, inf))
    return next(
        (value for (_, start, value), (end, _, _) in pairwise(numbers)
         if flat.find(behind, start, end + len(behind)) >= 0), None,
    )  # fmt: skip
