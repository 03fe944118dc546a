"""Site lists and host addresses as they are given on the command line."""

from __future__ import annotations

import sys
from pathlib import Path

from freshet.crawler.admission.sites import Seed, SiteList, read_sites, seeds_from_arguments
from freshet.crawler.commands.console import fail, say
from freshet.crawler.errors import CrawlError


def read_again(arguments: list[str], file: str | None) -> list[Seed]:
    """The seeds of the arguments and the file as they are now.

    Raises:
        CrawlError: the file cannot be read, a line of it is bad, or there is nothing in it.
    """
    found = list(seeds_from_arguments(arguments).seeds)
    if file is None or file == "-":
        return found
    try:
        site_list = read_sites(Path(file).read_bytes(), file)
    except OSError as error:
        raise CrawlError(f"{file}: {error.strerror}") from error
    for problem in site_list.problems:
        raise CrawlError(f"{file}:{problem.line}: {problem.message}")
    if not site_list.seeds:
        raise CrawlError(f"{file}: there is no usable line in it")
    return [*found, *site_list.seeds]


def overrides(pairs: list[str] | None) -> dict[str, str] | None:
    """Host names with their addresses, of ``HOST:ADDRESS`` each; ends the program otherwise."""
    if not pairs:
        return None
    split = [pair.partition(":") for pair in pairs]
    if bad := next((p for p, (h, _, a) in zip(pairs, split, strict=True) if not h or not a), None):
        fail(f"--resolve {bad}: expected HOST:ADDRESS, such as example.org:127.0.0.1", 2)
    return {host: address for host, _, address in split}


def given_seeds(arguments: list[str], file: str | None, *, strict: bool) -> list[Seed]:
    """The seeds of the arguments and the file; ends the program where nothing can be used."""
    lists = [seeds_from_arguments(arguments)]
    if file is not None:
        lists.append(read_sites(_read(file), file))
    for site_list in lists:
        _report_problems(site_list, file or "", strict=strict)
    found = [seed for site_list in lists for seed in site_list.seeds]
    if (arguments or file is not None) and not found:
        fail("there is no usable line in the site list", 2)
    return found


def _read(file: str) -> bytes:
    try:
        return sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
    except OSError as error:
        fail(f"--sites {file}: {error.strerror}", 2)


def _report_problems(site_list: SiteList, file: str, *, strict: bool) -> None:
    for problem in site_list.problems:
        where = f"{file}:{problem.line}: " if file else ""
        message = f"{where}{problem.message}"
        if strict:
            fail(message, 2)
        say("skipped", "yellow", message)
