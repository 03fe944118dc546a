"""Adding sites to a site list, of which what is there stays as it is.

Invariant: the new list begins with the bytes of the old one, and reading it gives every site that
was added. Consequence: adding the same sites again adds nothing.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from freshet.crawler.admission.sites import Header, csv_header, read_sites, seeds_from_arguments
from freshet.crawler.importing.entries import Entry, Site, Skipped, Unreadable
from freshet.crawler.urls import canonical

_NAME_COLUMNS = ("name", "title", "note", "comment")
#: Of a table that is begun.
_COLUMNS = ("url", "importance", "name")
_LONGEST_NAME = 120


@dataclass(frozen=True, slots=True)
class Merged:
    """A list with further sites.

    Attributes:
        data: the whole new list.
        sites: all that the entries name, each once, in their order.
        added: those of them that it had not.
        skipped: entries that give no site.
    """

    data: bytes
    sites: tuple[Site, ...]
    added: tuple[Site, ...]
    skipped: tuple[Skipped, ...]


def merged(old: bytes, name: str, entries: Iterable[Entry]) -> Merged:
    """Add what ``entries`` name to a list, which may be empty; ``name`` is the list's.

    Raises:
        Unreadable: the old list is none that lines can be added to.
    """
    had = _had(old, name)
    sites: dict[str, Site] = {}
    skipped: list[Skipped] = []
    for entry in entries:
        refused = entry if isinstance(entry, Skipped) else _refused(entry)
        if refused is not None:
            skipped.append(refused)
        elif isinstance(entry, Site):
            sites.setdefault(page(entry.url), entry)
    added = tuple(site for url, site in sites.items() if url not in had)
    data = _with(old, name, added) if added else old
    return Merged(data, tuple(sites.values()), added, tuple(skipped))


def page(url: str) -> str:
    """The canonical URL of a site that was not skipped."""
    return canonical(seeds_from_arguments([url]).seeds[0].url)


def _had(old: bytes, name: str) -> set[str]:
    """The canonical URLs of a list; where a line has no scheme, both."""
    if old.lstrip().startswith(b"<"):
        raise Unreadable("XML: lines can be added to a text or CSV only")
    found = read_sites(old, name)
    for problem in found.problems:
        # Of a line that is no site, the beginning is told; of a whole that is no list, nothing.
        if not problem.text or (_is_table(name) and csv_header(old) is None):
            raise Unreadable(problem.message)
    return {
        canonical(url)
        for seed in found.seeds
        for url in (seed.url, seed.fallback_url)
        if url is not None
    }


def _refused(site: Site) -> Skipped | None:
    """Why a site is none, if it is not."""
    for problem in seeds_from_arguments([site.url]).problems:
        return Skipped(site.where, site.url, problem.message)
    return None


def _with(old: bytes, name: str, added: Sequence[Site]) -> bytes:
    newline = "\r\n" if b"\r\n" in old else "\n"
    text = "".join(f"{line}{newline}" for line in _lines(old, name, added))
    data = old + (newline.encode() if old and not old.endswith((b"\n", b"\r")) else b"")
    data += text.encode()
    has = {canonical(seed.url) for seed in read_sites(data, name).seeds}
    if lost := [site.url for site in added if page(site.url) not in has]:
        raise Unreadable(f"{lost[0]} cannot be added: the last line is not a whole one")
    return data


def _lines(old: bytes, name: str, added: Sequence[Site]) -> Iterable[str]:
    header = csv_header(old)
    if header is not None:
        yield from (_row(header, site) for site in added)
    elif _is_table(name):
        header = Header("\t" if name.lower().endswith(".tsv") else ",", _COLUMNS)
        yield header.delimiter.join(header.columns)
        yield from (_row(header, site) for site in added)
    else:
        for site in added:
            named = _one_line(site.name)
            yield f"{site.url}  # {named}" if named else site.url


def _is_table(name: str) -> bool:
    return name.lower().endswith((".csv", ".tsv"))


def _row(header: Header, site: Site) -> str:
    cells = ["" for _ in header.columns]
    cells[header.url] = site.url
    for column in _NAME_COLUMNS:
        if column in header.columns:
            cells[header.columns.index(column)] = _one_line(site.name)
            break
    line = io.StringIO()
    csv.writer(line, delimiter=header.delimiter, lineterminator="").writerow(cells)
    return line.getvalue()


def _one_line(name: str) -> str:
    """A name that ends no line, begins no comment, and steers no terminal."""
    words = "".join(c if c.isprintable() else " " for c in name).split()
    return " ".join(words).lstrip("#").strip()[:_LONGEST_NAME]
