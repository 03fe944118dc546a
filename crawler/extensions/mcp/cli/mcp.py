"""``freshet mcp``: a store for assistants, by the Model Context Protocol."""

from pathlib import Path
from typing import Annotated

import typer

from freshet.crawler.cli.options import DEFAULT_DB, ConfigFile, Db, read_settings
from freshet.crawler.errors import CrawlError
from freshet.crawler.read.store import Store
from freshet.crawler.run.terminal import told_in_one_line


def mcp_command(
    db: Db = DEFAULT_DB,
    listen: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS:PORT",
            help="Answer over HTTP there; else on standard input and output. Beyond loopback only "
            "with operation.token.",
        ),
    ] = None,
    allow_actions: Annotated[
        bool, typer.Option("--allow-actions", help="Let assistants ask for visits, and add sites.")
    ] = False,
    sites_file: Annotated[
        Path | None,
        typer.Option(
            "--sites", metavar="FILE", help="The daemon's site list, to which sites are added."
        ),
    ] = None,
    config: ConfigFile = None,
) -> None:
    """Let assistants read the store, by the Model Context Protocol.

    They search, read pages and their passages, and learn what changed and when a page is visited
    next. Over HTTP the address ends in /mcp, with the token of `freshet serve`.
    """
    given = {} if listen is None else {"operation.listen": listen}
    settings, _ = read_settings(config, given)
    with told_in_one_line():
        # The SDK is an extra.
        from freshet.crawler.extensions.mcp import serving  # noqa: PLC0415

        if sites_file is not None and not allow_actions:
            raise CrawlError("--sites: sites are added with --allow-actions only")
        with Store(db, config=config) as store:
            acting = serving.ActionTools(db, settings, sites_file) if allow_actions else None
            serving.serve(store, settings, acting, over_http=listen is not None)
