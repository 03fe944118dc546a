"""``freshet backup``: a copy of the store, whether or not something is writing it."""

from __future__ import annotations

import re
import time
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Final

import typer

from freshet.crawler.commands.console import fail, print_json
from freshet.crawler.commands.copying import copied_words, copying
from freshet.crawler.commands.display import counted, show_line
from freshet.crawler.commands.options import DEFAULT_DB, Db, Json
from freshet.crawler.commands.running import told_in_one_line
from freshet.storage.maintenance import back_up

_STAMP: Final = "%Y%m%dT%H%M%SZ"


def backup_command(
    target: Annotated[
        Path, typer.Argument(metavar="TARGET", help="A file, or a folder: the name has the time.")
    ],
    db: Db = DEFAULT_DB,
    keep: Annotated[
        int,
        typer.Option(min=0, help="In a folder: how many to keep; older ones are deleted. 0: all."),
    ] = 0,
    force: Annotated[bool, typer.Option("--force", help="Replace TARGET if it is there.")] = False,
    json: Json = False,
) -> None:
    """Copy the store while a crawl or a daemon writes it, and check the copy.

    It has all that was committed when it began. It appears when it is whole, checked and on the
    disk; a backup that is broken off leaves what was there before. `freshet restore` puts it back.
    """
    folder = target if target.is_dir() else None
    if keep and folder is None:
        fail(f"--keep {keep}: needs a folder as TARGET, and {target} is none", 2)
    file = target if folder is None else folder / _name(db, time.time())
    with told_in_one_line():
        with copying() as progress:
            copied = back_up(db, file, replace=force, progress=progress)
        deleted = _rotated(folder, db, keep) if folder is not None and keep else []
    if json:
        found = asdict(copied) | {"path": str(file), "deleted": [str(each) for each in deleted]}
        print_json(found)
        return
    show_line(f"{file}: {copied_words(copied, time.time())}", "green")
    if deleted:
        show_line(f"{counted(len(deleted), 'older backup')} deleted")


def _name(db: Path, now: float) -> str:
    return f"{db.stem}-{datetime.fromtimestamp(now, UTC):{_STAMP}}{db.suffix}"


def _rotated(folder: Path, db: Path, keep: int) -> list[Path]:
    """Delete all backups of this store in a folder but the newest; which those were."""
    name = re.compile(rf"{re.escape(db.stem)}-\d{{8}}T\d{{6}}Z{re.escape(db.suffix)}")
    backups = sorted(each for each in folder.iterdir() if name.fullmatch(each.name))
    old = backups[: max(0, len(backups) - keep)]
    try:
        for each in old:
            each.unlink()
    except OSError as error:
        fail(f"{error.filename}: an older backup cannot be deleted: {error.strerror}")
    return old
