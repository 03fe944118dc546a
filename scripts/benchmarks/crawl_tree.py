"""The pages of the crawl benchmark: real documentation, copied, and edited for the recrawl."""

from __future__ import annotations

import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

#: Debian packages and where they put their pages; all in all some 6,100.
PACKAGES = {
    "python3.11-doc": Path("/usr/share/doc/python3.11/html"),
    "postgresql-doc-15": Path("/usr/share/doc/postgresql-doc-15/html"),
    "libstdc++-12-doc": Path("/usr/share/doc/gcc-12-base/libstdc++"),
}
QUICK_PACKAGE = "postgresql-doc-15"

_PAGE_ENDINGS = frozenset({".html", ".htm", ".xhtml", ".txt"})
_END_OF_TEXT = re.compile(rb"</(?:p|li|td|dd|pre|body)>", re.IGNORECASE)
_EDIT = b" Edited for the recrawl, round %d."
_OLD_EDIT = re.compile(rb" Edited for the recrawl, round \d+\.")


class NoTree(Exception):
    """The pages are not there; the message says how to get them."""


@dataclass(frozen=True, slots=True)
class Tree:
    """Copied sites, each a directory, and their pages."""

    sites: tuple[Path, ...]
    pages: tuple[Path, ...]

    def summary(self) -> dict[str, object]:
        """What there is to crawl."""
        return {
            "sites": [site.name for site in self.sites],
            "files": len(self.pages),
            "megabytes": round(sum(page.stat().st_size for page in self.pages) / 1e6, 1),
        }


def sources(chosen: Sequence[Path], *, quick: bool) -> dict[str, Path]:
    """The directories to copy, by name of the site: those chosen, or the packages'.

    Raises:
        NoTree: one is missing, or has no index.html to begin at.
    """
    names = [QUICK_PACKAGE] if quick else list(PACKAGES)
    found = {f"{n}-{d.resolve().name}": d for n, d in enumerate(chosen, 1)} or {
        name: PACKAGES[name] for name in names
    }
    missing = [str(place) for place in found.values() if not (place / "index.html").exists()]
    if missing:
        advice = "name others with --tree" if chosen else f"apt-get install {' '.join(names)}"
        raise NoTree(f"no index.html in {', '.join(missing)}: {advice}")
    return found


def copied(sites: dict[str, Path], directory: Path) -> Tree:
    """The pages of the sites, copied, so that they can be edited."""
    for name, source in sites.items():
        for page in _pages(source):
            target = directory / name / page.relative_to(source)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(page, target)
    return opened([directory / name for name in sites])


def opened(sites: Sequence[Path]) -> Tree:
    """The sites that stand in these directories."""
    return Tree(tuple(sites), tuple(page for site in sites for page in _pages(site)))


def _pages(site: Path) -> list[Path]:
    files = (path for path in sorted(site.rglob("*")) if path.suffix.lower() in _PAGE_ENDINGS)
    return [path for path in files if path.is_file()]


def edited(page: bytes, number: int) -> bytes:
    """The page with a sentence more in its text; an earlier edit gives way to this one."""
    page = _OLD_EDIT.sub(b"", page)
    ends = list(_END_OF_TEXT.finditer(page))
    # In the middle, where the content is; the first and the last paragraphs may be frame.
    place = ends[(len(ends) - 1) // 2].start() if ends else len(page)
    return page[:place] + _EDIT % number + page[place:]


def edit(tree: Tree, share: float, number: int) -> list[Path]:
    """Edit that share of the pages, others in each round; those that were edited."""
    chosen = Random(number).sample(tree.pages, round(share * len(tree.pages)))
    for page in chosen:
        page.write_bytes(edited(page.read_bytes(), number))
    return chosen
