#!/usr/bin/env python3
"""Write crawler/reduce/relative_times.txt: the past in all languages of Unicode's CLDR.

    .venv/bin/python scripts/relative_times.py [--libraries FOLDER]

Its lines are patterns such as "vor 0 stunden", with 0 for any number, and words such as "gestern".
Left out are what may be a quantity ("-0 h"), and short words, which mean other things elsewhere:
"no" is "now" in one language, and an answer in others.

FOLDER has the npm packages moment and date-fns, each in a folder of its name. What they write, and
CLDR does not ("vor einer Stunde", "gestern um 10:22"), goes to another file; that takes node.
"""

import argparse
import json
import re
import subprocess
from collections.abc import Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any
from unicodedata import normalize

from babel.localedata import load, locale_identifiers

from freshet.crawler.reduce.blocks import compared
from freshet.crawler.reduce.boilerplate import (
    LIBRARY_TIMES,
    RELATIVE_TIMES,
    relative_key,
    with_noughts,
)

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


#: Prints two lists: moments of the past as libraries write them, and quantities and the future.
_SCRIPT = """
const fs = require('fs'), moment = require('./moment'), fns = require('./date-fns');
const past = [], other = [], DAY = 864e5, now = new Date(2026, 2, 5, 23, 30);
for (const file of fs.readdirSync('./moment/locale')) {
  const name = file.replace(/[.]js$/, '');
  if (name === 'x-pseudo' || name === 'tlh' || name === 'tzl') continue;  // invented
  require('./moment/locale/' + file);
  for (const unit of ['seconds', 'minutes', 'hours', 'days', 'weeks', 'months', 'years'])
    for (const n of [1, 2, 3, 5, 11, 21, 22, 25]) for (const limits of [{}, {s: 1, ss: 1, w: 4}]) {
      const some = moment.duration(-n, unit).locale(name);
      past.push(some.humanize(true, limits));
      other.push(some.humanize(false, limits), some.abs().humanize(true, limits));
    }
  for (const hour of [3, 10, 14, 19]) for (const days of [0, 1])
    past.push(moment(now).locale(name).subtract(days, 'days').hour(hour).calendar(now));
}
for (const [name, locale] of Object.entries(require('./date-fns/locale'))) {
  for (const days of [3e-5, 2e-4, 4e-4, 1e-3, .003, .05, .13, 1, 3, 8, 35, 99, 370, 500, 700, 1500])
    for (const tell of [fns.formatDistance, fns.formatDistanceStrict])
      for (const [addSuffix, sign, to] of [[true, -1, past], [true, 1, other], [false, 1, other]])
        to.push(tell(new Date(+now + sign * days * DAY), now,
                     {locale, addSuffix, includeSeconds: true}));
}
console.log(JSON.stringify([past, other]));
"""


def _with_shorter(text: str) -> Iterator[str]:
    """Yield a text, and one with a clock without its comma and what follows the clock, too."""
    yield text
    words, clock, _ = text.partition("0:0")
    if clock and len(words.strip(" ,")) > 2:  # shorter ones say nothing
        yield words + clock
        yield words.replace(",", "") + clock


def of_libraries(folder: Path) -> list[str]:
    """Return what moment and date-fns write of the past, and CLDR does not, sorted."""
    told = subprocess.run(
        ["node", "-"], input=_SCRIPT, capture_output=True, check=True, cwd=folder, text=True
    )
    past, other = ([with_noughts(_written(it)) for it in some] for some in json.loads(told.stdout))
    known = {relative_key(text) for text in (*patterns(), *other)}
    found = dict[str, str]()
    for text in chain.from_iterable(map(_with_shorter, past)):
        key = relative_key(text)
        if key not in known and ("0" in key or _is_clear(key)) and text[0] not in "-–−+":
            found.setdefault(key, text)
    return sorted(found.values())


def main() -> None:
    """Write the files beside the words of the frame."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--libraries", type=Path, metavar="FOLDER")
    folder = parser.parse_args().libraries
    written = {RELATIVE_TIMES: patterns()}
    if folder is not None:
        written[LIBRARY_TIMES] = of_libraries(folder)
    for name, lines in written.items():
        path = Path(__file__).resolve().parent.parent / "crawler" / "reduce" / name
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        print(f"{path}: {path.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
