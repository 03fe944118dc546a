"""What changedetection.io watches: its backup (ZIP), its data store (JSON) or a list of URLs.

Of a ZIP only the members that name watches are read, each within a bound, and nothing is written
to the disk: neither the number, the names nor the sizes of the others matter. Both layouts are
read: all watches in ``url-watches.json``, or each in a ``watch.json`` in a folder of its own.
"""

from __future__ import annotations

import json
import math
import re
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import IO, Final, TypeAlias

from freshet.crawler.importing.entries import Entry, Site, Skipped, Unreadable

#: Of JSON in all; ten thousand watches with their filters come to some 30 MB.
MAX_BYTES: Final = 64 * 1024 * 1024
#: Members of a ZIP; a year of hourly snapshots of a hundred pages.
_MAX_MEMBERS: Final = 1_000_000
_PACKED: Final = frozenset({zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED})
_STORE: Final = "url-watches.json"
_WATCH: Final = re.compile(r"[0-9a-fA-F-]{8,64}/watch\.json")
_HISTORY: Final = re.compile(r"([0-9a-fA-F-]{8,64})/history\.txt")
_UNIT_DAYS: Final = {
    "weeks": 7.0, "days": 1.0, "hours": 1 / 24, "minutes": 1 / 1_440, "seconds": 1 / 86_400,
}  # fmt: skip
_RAW: Final = "source:"

_Watch: TypeAlias = Mapping[str, object]

#: What a watch may say for which there is no place in a site list.
_LOST: Final[Mapping[str, Callable[[_Watch], bool]]] = {
    "filters by CSS or XPath (see parse.include)": lambda w: _any(w, "include_filters css_filter"),
    "elements left out (see parse.ignore)": lambda w: _any(w, "subtractive_selectors"),
    "conditions on the text": lambda w: _any(
        w, "trigger_text ignore_text text_should_not_be_present extract_text conditions"
    ),
    "headers, method, body or proxy": lambda w: (
        _any(w, "headers body proxy") or w.get("method") not in {None, "", "GET"}
    ),
    "a browser that runs JavaScript": lambda w: (
        _any(w, "browser_steps webdriver_js_execute_code")
        or str(w.get("fetch_backend", "")).startswith(("html_webdriver", "extra_browser"))
    ),
    "prices and stock": lambda w: w.get("processor") not in {None, "", "text_json_diff"},
    "notifications": lambda w: _any(w, "notification_urls"),
    "tags": lambda w: _any(w, "tags tag"),
    "hours of the day": lambda w: bool(_mapping(w.get("time_schedule_limit")).get("enabled")),
}


def read_zip(file: IO[bytes]) -> list[Entry]:
    """The watches of a backup.

    Raises:
        Unreadable: it is no such backup, is damaged, or unpacks to too much.
    """
    try:
        with zipfile.ZipFile(file) as archive:
            names = archive.namelist()
            if len(names) > _MAX_MEMBERS:
                raise Unreadable(f"a ZIP with more than {_MAX_MEMBERS:,} members")
            return list(_watches(_members(archive, names), _kept(names)))
    except (zipfile.BadZipFile, zlib.error, struct.error, EOFError, ValueError) as error:
        raise Unreadable(f"a damaged ZIP: {error}") from error
    except (NotImplementedError, RuntimeError) as error:
        # How zipfile says that a member is encrypted, or packed in a way that it does not know.
        raise Unreadable(f"a ZIP that cannot be unpacked: {error}") from error


def read_json(data: bytes) -> list[Entry]:
    """The watches of a data store, or the one of a ``watch.json``.

    Raises:
        Unreadable: it is no such file.
    """
    if len(data) > MAX_BYTES:
        raise Unreadable(f"larger than {MAX_BYTES // 1024**2} MiB")
    found = _parsed(data)
    watching = found.get("watching")
    if isinstance(watching, Mapping):
        return list(_watches(watching.items(), frozenset()))
    if "url" in found:
        return list(_watches([(str(found.get("uuid", "1")), found)], frozenset()))
    raise Unreadable('JSON without "watching": it is no data store of changedetection.io')


def read_list(data: bytes) -> list[Entry]:
    """The URLs of a list, one a line; what stands behind one are its tags."""
    if len(data) > MAX_BYTES:
        raise Unreadable(f"larger than {MAX_BYTES // 1024**2} MiB")
    found: list[Entry] = []
    for number, line in enumerate(data.decode("utf-8-sig", "replace").splitlines(), 1):
        url, *tags = line.split(maxsplit=1)[:2] if line.strip() else [""]
        if url and not url.startswith("#"):
            found.append(Site(f"line {number}", url, lost=("tags",) if tags else ()))
    return found


def _members(archive: zipfile.ZipFile, names: Iterable[str]) -> Iterator[tuple[str, object]]:
    """The watches of a ZIP with their ids, all of them read within the bound."""
    left, found = MAX_BYTES, False
    for name in names:
        if name != _STORE and not _WATCH.fullmatch(name):
            continue
        found = True
        if archive.getinfo(name).compress_type not in _PACKED:
            # Others may ask for any amount of memory.
            raise Unreadable(f"a ZIP in which {name} is packed otherwise than deflated")
        with archive.open(name) as member:
            # What a header says of sizes is not believed.
            data = member.read(left + 1)
        left -= len(data)
        if left < 0:
            raise Unreadable(f"a ZIP whose watches unpack to more than {MAX_BYTES // 1024**2} MiB")
        content = _parsed(data)
        if name == _STORE:
            yield from _mapping(content.get("watching")).items()
        else:
            yield name.partition("/")[0], content
    if not found:
        raise Unreadable(f"a ZIP without {_STORE} or watch.json: no backup of changedetection.io")


def _kept(names: Iterable[str]) -> frozenset[str]:
    """The ids of watches of which there are snapshots."""
    return frozenset(found[1] for name in names if (found := _HISTORY.fullmatch(name)))


def _parsed(data: bytes) -> Mapping[str, object]:
    try:
        found = json.loads(data)
    except (ValueError, RecursionError) as error:
        reason = "nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise Unreadable(f"not JSON: {reason}") from error
    if not isinstance(found, dict):
        raise Unreadable("JSON, but no object")
    return found


def _watches(watches: Iterable[tuple[str, object]], kept: frozenset[str]) -> Iterator[Entry]:
    for number, (uuid, watch) in enumerate(watches, 1):
        where = f"watch {number}"
        if not isinstance(watch, Mapping) or not isinstance(watch.get("url"), str):
            yield Skipped(where, str(uuid), "it has no URL")
            continue
        yield _watch(where, watch, has_history=uuid in kept)


def _watch(where: str, watch: _Watch, *, has_history: bool) -> Entry:
    url = str(watch["url"]).strip()
    if watch.get("paused") is True:
        return Skipped(where, url, "paused")
    if "{{" in url or "{%" in url:
        return Skipped(where, url, "a template, not a URL")
    lost = [words for words, holds in _LOST.items() if holds(watch)]
    if url.startswith(_RAW):
        url = url.removeprefix(_RAW)
        lost.append("the source code instead of the text")
    if has_history:
        lost.append("snapshots")
    title = watch.get("title")
    name = title if isinstance(title, str) else ""
    return Site(where, url, name, _days(watch), tuple(lost))


def _days(watch: _Watch) -> float | None:
    """The interval that the watch itself asks for."""
    if watch.get("time_between_check_use_default") is True:
        return None
    said = _mapping(watch.get("time_between_check"))
    total = sum(days * _number(said.get(unit)) for unit, days in _UNIT_DAYS.items())
    return total if 0 < total < math.inf else None


def _number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return 0.0
    try:
        return max(0.0, float(value)) if math.isfinite(value) else 0.0
    except OverflowError:
        return 0.0


def _mapping(value: object) -> Mapping[str, object]:
    return value if isinstance(value, dict) else {}


def _any(watch: _Watch, names: str) -> bool:
    return any(watch.get(name) for name in names.split())
