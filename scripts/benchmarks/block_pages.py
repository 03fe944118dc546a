"""Block pages and error pages of public repositories, by halves.

``block_pages.toml`` names the repositories and says how to clone them. None of their pages is
copied here. Debian's packages squid-langpack and apache2-data, unpacked in the same folder, add the
error pages of two servers in many languages to the half ``fit``.
"""

from __future__ import annotations

import json
import re
import subprocess
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from html import escape
from pathlib import Path
from typing import Final

#: Pages of a repository: some have one for each status.
_MOST: Final = 25
_MOST_NAMED: Final = 6
_NAMED: Final = re.compile(
    r"(?:.*[-_.])?(?:40\d|41\d|42\d|451|5[012]\d|maint|maintenance(?:_?page)?|offline|forbidden|"
    r"denied|accessdenied|blocked|unavailable|not[-_]?found|site_down|error|errorpage|block_?page)"
    r"(?:[-_.].*)?\.html?",
    re.I,
)
_INDEX: Final = re.compile(r"index.*\.html?", re.I)
_NO_PAGE: Final = re.compile(r"node_modules|vendor/|/docs?/|example|_site/|test", re.I)
_UNFILLED: Final = re.compile(r"<\?php|\{\{|\{%|<%|\$\{|layout:")
_LANGUAGES: Final = "en de fr es it nl sv pl pt ru tr zh-cn ja".split()
_SQUID: Final = (
    "ERR_ACCESS_DENIED ERR_CANNOT_FORWARD ERR_CONNECT_FAIL ERR_DNS_FAIL ERR_INVALID_URL "
    "ERR_READ_TIMEOUT ERR_ZERO_SIZE_OBJECT ERR_CACHE_ACCESS_DENIED ERR_TOO_BIG".split()
)
_APACHE: Final = {
    "NOT_FOUND": 404, "FORBIDDEN": 403, "GONE": 410, "INTERNAL_SERVER_ERROR": 500,
    "SERVICE_UNAVAILABLE": 503, "UNAUTHORIZED": 401, "BAD_GATEWAY": 502,
}  # fmt: skip
_STATUSES: Final = ("403", "404", "429", "500", "503")
_STATUS: Final = re.compile(r"(?<!\d)([45]\d\d)(?!\d)")
_CHARSET: Final = re.compile(rb"charset=[\"']?([\w-]+)")
_KINDS: Final = {
    "404": "soft_404", "410": "soft_404", "401": "login_wall", "403": "rate_limited_page",
                 "429": "rate_limited_page", "451": "rate_limited_page"}  # fmt: skip


@dataclass(frozen=True, slots=True)
class BlockPage:
    """A page; ``kind`` is None where its name does not tell."""

    half: str
    author: str
    name: str
    html: str
    kind: str | None = None


def read_blocks(folder: Path) -> Iterator[BlockPage]:
    """Yield the pages of those repositories and packages that the folder has."""
    listed = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
    for half in ("fit", "report", "new", "scripted"):
        for name in listed[half]:
            for path, html in _pages(folder, name, listed["skip"]):
                yield BlockPage(half, name, path, html, _kind_of(path))
    for half in ("named", "strangers"):
        for name in listed[half]:
            for path, html in _by_name(folder, name):
                yield BlockPage(half, name, path, html, _kind_of(path))
    for path, html in _pages(folder, listed["censors"], listed["skip"]):
        half = "fit" if ord(path[1]) % 2 else "report"
        yield BlockPage(half, f"censor {path[:2]}", path, html, "rate_limited_page")
    yield from _phrases(folder, listed["phrases"])
    yield from _squid(folder)
    yield from _apache(folder)


def _kind_of(name: str) -> str | None:
    if "captcha" in name or "challenge" in name:
        return "captcha"
    found = _STATUS.findall(name)
    return _KINDS.get(found[-1], "error_page") if found else None


def _git(folder: Path, name: str) -> Path | None:
    """Return the git directory of a repository, None if it is not there."""
    for root in (folder / name.replace("/", "+"), folder / name):
        for path in (root, root / "repo", root / ".git", root / "repo" / ".git"):
            if (path / "HEAD").is_file():
                return path
    return None


def _shown(git: Path, *arguments: str) -> bytes:
    command = ("git", "-c", "core.quotepath=off", "-C", str(git), *arguments)
    return subprocess.run(command, capture_output=True, check=True).stdout


def _listed(git: Path) -> list[str]:
    return _shown(git, "ls-tree", "-r", "-z", "--name-only", "HEAD").decode().split("\0")


def _pages(folder: Path, name: str, skip: list[str]) -> Iterator[tuple[str, str]]:
    git = _git(folder, name)
    if git is None:
        return
    names = [each for each in _listed(git) if each.endswith((".html", ".htm"))]
    for path in [each for each in names if not any(part in each for part in skip)][:_MOST]:
        html = _decoded(_shown(git, "show", f"HEAD:{path}"))
        if len(html) > 60 and "<?php" not in html and "{{" not in html:
            yield path, html


def _by_name(folder: Path, name: str) -> Iterator[tuple[str, str]]:
    """Yield the pages that their names tell to be block pages, else the indexes of a collection."""
    git = _git(folder, name)
    if git is None:
        return
    listed = [path for path in _listed(git) if not _NO_PAGE.search(path)]
    files = [(path, path.rpartition("/")[2]) for path in listed]
    named = [path for path, file in files if _NAMED.match(file)]
    texts = set[str]()
    for path in named or [path for path, file in files if _INDEX.match(file)]:
        html = _decoded(_shown(git, "show", f"HEAD:{path}"))
        # One text for several statuses counts once.
        text = re.sub(r"<[^>]*>|\d+", "", html)
        if len(html) > 60 and not _UNFILLED.search(html) and text not in texts:
            texts.add(text)
            yield path, html
            if len(texts) == _MOST_NAMED:
                return


def _decoded(body: bytes) -> str:
    found = _CHARSET.search(body[:2000])
    try:
        return body.decode(found[1].decode() if found else "utf-8", "replace")
    except LookupError:
        return body.decode("latin-1")


def _phrases(folder: Path, name: str) -> Iterator[BlockPage]:
    """Yield pages as the framework makes them of its phrases: a status and a few words."""
    git = _git(folder, name)
    for path in [] if git is None else _listed(git):
        language, _, file = path.removeprefix("locales/").partition("/")
        if git is None or file != "php.json" or "_" in language:
            continue
        half = "fit" if sha256(language.encode()).digest()[0] % 2 else "report"
        said = json.loads(_shown(git, "show", f"HEAD:{path}"))
        for status in _STATUSES:
            words = escape(said[status])
            html = (
                f'<html lang="{language}"><head><title>{words}</title></head><body>'
                f"<div><div>{status}</div><div>{words}</div></div></body></html>"
            )
            kind = _KINDS.get(status, "error_page")
            yield BlockPage(half, f"framework {half}", f"{language}/{status}", html, kind)


def _squid(folder: Path) -> Iterator[BlockPage]:
    for language in _LANGUAGES:
        for name in _SQUID:
            path = folder / "squid-langpack" / language / name
            if path.is_file():
                html = path.read_text("utf-8", "replace").replace("%U", "{{path}}")
                html = re.sub(r"%[a-zA-Z]", "", html)
                yield BlockPage("fit", "squid", f"{language}/{name}", html, "error_page")


def _apache(folder: Path) -> Iterator[BlockPage]:
    for name, status in _APACHE.items():
        path = folder / "apache2-data" / f"HTTP_{name}.html.var"
        parts = (
            path.read_text("utf-8", "replace").split("Content-language: ") if path.is_file() else ()
        )
        for part in parts[1:]:
            language, body = part.split(None, 1)[0], part.partition("Body:")[2].partition("\n")[2]
            title = re.search(r'var="TITLE" value="([^"]*)"', body)
            text = re.sub(
                r"<!--#else -->.*?<!--#endif -->|<!--.*?-->|\n-{8,}.*", "", body, flags=re.S
            )
            html = (
                f'<html lang="{language}"><head><title>{title[1] if title else ""}</title></head>'
                f"<body><h1>{title[1] if title else ''}</h1><p>{text}</p><h2>Error {status}</h2>"
                "<address><a href='/'>{{host}}</a><br><span>Apache</span></address></body></html>"
            )
            kind = _KINDS.get(str(status), "error_page")
            yield BlockPage("fit", "apache", f"{language}/{name}", html, kind)
