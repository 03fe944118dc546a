#!/usr/bin/env python3
"""Write crawler/reduce/relative_times.txt: the past in all languages of Unicode's CLDR.

    .venv/bin/python scripts/relative_times.py

Its lines are patterns such as "vor 0 stunden", with 0 for any number, and words such as "gestern".
Left out are what may be a quantity ("-0 h"), and short words, which mean other things elsewhere:
"no" is "now" in one language, and an answer in others.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from unicodedata import normalize

from babel.localedata import load, locale_identifiers

from freshet.crawler.reduce.blocks import compared
from freshet.crawler.reduce.boilerplate import RELATIVE_TIMES, relative_key

_FIELDS = tuple(
    unit + width
    for unit in ("year", "quarter", "month", "week", "day", "hour", "minute", "second")
    for width in ("", "-short", "-narrow")
)
#: Words for now, yesterday, and the day before.
_WORDS = {"second": (0,), "day": (-1, -2)}
#: Arabic tells a distance by another word, too.
_BEFORE, _SINCE = "قبل ", "منذ "
#: Short words that are clear, and longer ones that are names or common words elsewhere.
_CLEAR = frozenset({"ayer", "ieri", "igår"})
_UNCLEAR = frozenset(
    "agora annun dabar eilen juster kamari karang manje nyoro parson shiga".split()
)
_LEAST_LATIN, _LEAST_OTHER, _LEAST_IDEOGRAPHS = 5, 3, 2


def patterns() -> list[str]:
    """Return the patterns, sorted, of equal ones but for white space the first."""
    # What a locale says itself: to inherit the rest for all of them takes ten times as long.
    names = sorted(locale_identifiers())
    own = [(name.partition("_")[0], load(name, merge_inherited=False)) for name in names]
    durations = {
        (language, relative_key(_written(text)))
        for language, data in own
        for text in _durations(data)
    }
    found = dict[str, str]()
    for language, data in own:
        for text in map(_written, _past(data)):
            key = relative_key(text)
            is_clear = "0" in key or _is_clear(key)
            if is_clear and (language, key) not in durations and text[0] not in "-–−+":
                found.setdefault(key, text)
    for text in [text for text in found.values() if text.startswith(_BEFORE)]:
        since = text.replace(_BEFORE, _SINCE, 1)
        found.setdefault(relative_key(since), since)
    return sorted(found.values())


def _written(text: str) -> str:
    """Return a text of CLDR as it is compared, with 0 for the number."""
    small = normalize("NFC", compared(text.replace("{0}", "0"))).lower()
    return " ".join(small.split())


def _fields(data: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    fields = data.get("date_fields", {})
    # Others stand for fields of another width.
    yield from ((it, fields[it]) for it in _FIELDS if isinstance(fields.get(it), Mapping))


def _past(data: Mapping[str, Any]) -> Iterator[str]:
    for name, field in _fields(data):
        yield from _texts(field.get("past"))
        words = field.get("relative") or {}
        yield from (words[n] for n in _WORDS.get(name.partition("-")[0], ()) if n in words)


def _durations(data: Mapping[str, Any]) -> Iterator[str]:
    for name, widths in data.get("unit_patterns", {}).items():
        if name.startswith("duration-") and isinstance(widths, Mapping):
            for forms in widths.values():
                yield from _texts(forms)
    for _, field in _fields(data):
        yield from _texts(field.get("future"))


def _texts(forms: object) -> Iterator[str]:
    """Yield the plural forms; where a locale changes a few of a width, they come with an alias."""
    for part in forms if isinstance(forms, tuple) else (forms,):
        if isinstance(part, Mapping):
            yield from (text for text in part.values() if isinstance(text, str))


def _is_clear(key: str) -> bool:
    letters = re.findall(r"\w", key)
    first = max(letters, default="")
    least = _LEAST_LATIN if first < "ɐ" else _LEAST_OTHER if first < "⺀" else _LEAST_IDEOGRAPHS
    return key in _CLEAR or (len(letters) >= least and key not in _UNCLEAR)


def main() -> None:
    """Write the file beside the words of the frame."""
    path = Path(__file__).resolve().parent.parent / "crawler" / "reduce" / RELATIVE_TIMES
    path.write_text("\n".join(patterns()) + "\n", encoding="utf-8")
    print(f"{path}: {path.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
