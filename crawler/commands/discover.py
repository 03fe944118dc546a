"""``freshet discover``: which pages to look at again to find a site's new ones."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from freshet.crawler.commands import running
from freshet.crawler.commands.console import fail, print_json
from freshet.crawler.commands.covering import Cover, cover_of
from freshet.crawler.commands.discover_view import as_json, print_cover
from freshet.crawler.commands.options import DEFAULT_DB, Db, Json
from freshet.crawler.commands.sources.site_history import read_site
from freshet.crawler.commands.throttled import throttled
from freshet.crawler.commands.throttled_view import print_throttled, throttled_as_json
from freshet.scheduler.discovery.thesis import ALGORITHMS, BEST


def discover_command(
    site: Annotated[str, typer.Argument(metavar="SITE", help="A host or URL of the site.")],
    db: Db = DEFAULT_DB,
    algorithm: Annotated[
        str, typer.Option(metavar="NAME", help=f"What chooses: {', '.join(ALGORITHMS)}.")
    ] = BEST,
    budget: Annotated[
        int, typer.Option(metavar="K", min=1, help="Old pages that may be looked at again.")
    ] = 10,
    step: Annotated[
        float | None,
        typer.Option(
            metavar="DAYS",
            min=0.001,
            help="The steps of the past (default: a week, or a tenth of the past).",
        ),
    ] = None,
    explain: Annotated[
        bool,
        typer.Option("--explain", help="Instead: which URLs were throttled (traps), and why."),
    ] = False,
    new_sites: Annotated[
        bool, typer.Option("--new-sites", help="Find other sites that no page led to, not pages.")
    ] = False,
    json: Json = False,
) -> None:
    """Show which pages of a site reveal its new ones, and what they would have found before.

    A page reveals what it links to, and what new pages behind that link to. The past is cut into
    steps; before each the algorithm chooses by the steps before, and is judged by what came.
    """
    if algorithm not in ALGORITHMS:
        fail(f"--algorithm {algorithm}: there are {', '.join(ALGORITHMS)}", 2)
    if explain:
        _explain(db, site, json=json)
        return
    with running.told_in_one_line():
        found = running.run(_cover(db, site, step, algorithm, budget, new_sites))
    if json:
        print_json(as_json(found))
    else:
        print_cover(found)


def _explain(db: Path, site: str, *, json: bool) -> None:
    with running.told_in_one_line():
        found = running.run(throttled(db, site))
    if json:
        print_json(throttled_as_json(found))
    else:
        print_throttled(found)


async def _cover(
    db: Path, site: str, step: float | None, algorithm: str, budget: int, new_sites: bool
) -> Cover:
    history = await read_site(db, site, step, is_of_sites=new_sites)
    return cover_of(history, algorithm, budget)
