"""``freshet restore``: a backup becomes a store, here or on another machine."""

from __future__ import annotations

import time
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from freshet.crawler.commands.console import print_json
from freshet.crawler.commands.copying import copied_words, copying
from freshet.crawler.commands.display import show_line
from freshet.crawler.commands.options import DEFAULT_DB, Db, Json
from freshet.crawler.commands.running import told_in_one_line
from freshet.storage import maintenance


def restore_command(
    backup: Annotated[Path, typer.Argument(metavar="BACKUP", help="What `freshet backup` made.")],
    db: Db = DEFAULT_DB,
    force: Annotated[bool, typer.Option("--force", help="Replace a store that is there.")] = False,
    json: Json = False,
) -> None:
    """Make a backup the store at --db: checked first, and never where something is writing.

    A store does not depend on its path or machine. A crawl or a daemon goes on from it as from a
    store that it was killed on; one of an older Freshet is migrated then.
    """
    with told_in_one_line(), copying() as progress:
        copied = maintenance.restore(backup, db, replace=force, progress=progress)
    if json:
        print_json(asdict(copied) | {"path": str(db)})
        return
    show_line(f"{db}: {copied_words(copied, time.time())}", "green")
