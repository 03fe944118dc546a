"""Numbers as people write them, for alert rules and for the prices of a page."""

import re
from math import isfinite
from typing import Final

#: Groups of three after a blank, or digits with points, commas and apostrophes in between. A digit
#: comes first: long texts without one are passed over fast.
NUMBER: Final = re.compile(r"\d(?:\d{0,2}(?: \d{3})+(?!\d)(?:[.,]\d+)?|\d*(?:[.,'’]\d+)*)")
_GROUPS: Final = re.compile(r"\d{1,3}(?:[.,]\d{2,3})*[.,]\d{3}")


def value_of(said: str) -> float | None:
    """Return the value of a number as people write it, None if it is a date, a version or such.

    Of a point and a comma the last is the decimal mark. One of them alone that stands before
    exactly three digits groups them, unless a lone 0 or more than three digits come before it.

    >>> [value_of(said) for said in ("1,234.50", "1.234,50", "1 234", "1.234", "0.125", "9.99")]
    [1234.5, 1234.5, 1234.0, 1234.0, 0.125, 9.99]
    >>> value_of("26.11.2026")
    """
    plain = re.sub("[ '’]", "", said)
    is_grouped = len(plain) < len(said)
    marks = re.sub("[^.,]", "", plain)
    whole, _, rest = plain.rpartition(marks[-1:] or ".")
    if not marks:
        whole, rest = plain, ""
    elif len(set(marks)) == 1 and not is_grouped:
        if _GROUPS.fullmatch(plain) and whole != "0":
            whole, rest = plain, ""
        elif len(marks) > 1:
            return None
    elif marks[-1] in marks[:-1] or (marks[:-1] and not _GROUPS.fullmatch(whole)):
        return None
    value = float(f"{re.sub('[.,]', '', whole)}.{rest or 0}")
    return value if isfinite(value) else None
