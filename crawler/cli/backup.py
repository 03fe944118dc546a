"""``freshet backup`` and ``freshet restore``: copy the store, even while it is written."""

import re
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from freshet.crawler.cli.options import DEFAULT_DB, Db, Json
from freshet.crawler.run.terminal import (
    counted,
    err,
    fail,
    moment,
    print_json,
    show_line,
    size,
    told_in_one_line,
)
from freshet.storage import backup as backups
from freshet.storage.backup import BackupCopy, Progress, back_up
from freshet.storage.stores import is_folder


# -- copying -----------------------------------------------------------------
@contextmanager
def copying() -> Iterator[Progress]:
    """Show the progress of a copy on a terminal."""
    with err.status("copying") as status:

        def show(what: str, share: float) -> None:
            status.update(f"{what} {share:.0%}" if share else what)

        yield show


def copied_words(copied: BackupCopy, now: float) -> str:
    """Describe a copy: ``12.3 MB, 400 pages, 2,000 observations until 2026-…; sound``."""
    until = "" if copied.newest_at is None else f" until {moment(copied.newest_at, now)}"
    return (
        f"{size(copied.size_bytes)}, {counted(copied.pages, 'page')}, "
        f"{counted(copied.observations, 'observation')}{until}; sound"
    )


def _file_in(target: Path, db: Path, keep: int) -> Path:
    """Return the file or shard folder to write; exit if ``target`` does not name one."""
    is_one = is_folder(db) and (is_folder(target) or (target / backups.PARTIAL).exists())
    if target.is_dir() and not is_one:
        time_of_copy = datetime.fromtimestamp(time.time(), UTC)
        return target / f"{db.stem}-{time_of_copy:%Y%m%dT%H%M%SZ}{db.suffix}"
    if keep:
        fail(f"--keep {keep}: TARGET must be a folder, and {target} is not one", 2)
    if not target.suffix and not target.exists() and not is_folder(db):
        fail(f"{target}: there is no such folder; make it, or name a file, as {target}.db", 2)
    return target


def backup_command(
    target: Annotated[
        Path,
        typer.Argument(
            metavar="TARGET",
            help="A file, or a folder in which files are named by time; see below.",
        ),
    ],
    db: Db = DEFAULT_DB,
    keep: Annotated[
        int,
        typer.Option(
            metavar="N",
            min=0,
            help="In a folder: keep the newest N backups, delete the others. 0: keep all.",
        ),
    ] = 0,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing TARGET.")] = False,
    json: Json = False,
) -> None:
    """Copy the store, even while it is written; check the copy.

    The copy contains everything that was committed before it began. It appears only when it is
    complete, checked and on the disk; an interrupted backup leaves an older one in place. `freshet
    restore` restores it.

    The backup of a sharded store is a folder: TARGET itself, or, if TARGET exists and is not a
    backup of shards, a folder in it that is named by time.
    """
    file = _file_in(target, db, keep)
    with told_in_one_line():
        with copying() as progress:
            copied = back_up(db, file, replace=force, progress=progress)
        deleted = _rotated(file, db, keep) if keep else []
    if json:
        found = asdict(copied) | {"path": str(file), "deleted": [str(each) for each in deleted]}
        print_json(found)
        return
    show_line(f"{file}: {copied_words(copied, time.time())}", "green")
    if deleted:
        show_line(f"{counted(len(deleted), 'older backup')} deleted")


def _rotated(made: Path, db: Path, keep: int) -> list[Path]:
    """Delete older backups of this store beside the new one, and return them."""
    # Sort by file time: the clock may have been wrong when a file was named.
    name = re.compile(rf"{re.escape(db.stem)}-\d{{8}}T\d{{6}}Z{re.escape(db.suffix)}")
    others = [each for each in made.parent.iterdir() if name.fullmatch(each.name) and each != made]
    others = [each for each in others if is_folder(each) or not is_folder(made)]
    try:
        others.sort(key=lambda each: (each.stat().st_mtime_ns, each.name))
        old = others[: max(0, len(others) + 1 - keep)]
        for each in old:
            shutil.rmtree(each) if each.is_dir() else each.unlink()
    except OSError as error:
        why = f"{error.strerror}; delete it yourself"
        fail(f"{error.filename}: an older backup cannot be deleted: {why}")
    return old


# -- restore -----------------------------------------------------------------
def restore_command(
    backup: Annotated[
        Path, typer.Argument(metavar="BACKUP", help="A backup made by `freshet backup`.")
    ],
    db: Db = DEFAULT_DB,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing store.")] = False,
    json: Json = False,
) -> None:
    """Restore a backup to --db, after checking it.

    A store does not depend on its path or machine. A crawl or daemon resumes from it as after a
    kill. A store of an older Freshet is migrated then.
    """
    with told_in_one_line(), copying() as progress:
        copied = backups.restore(backup, db, replace=force, progress=progress)
    if json:
        print_json(asdict(copied) | {"path": str(db)})
        return
    show_line(f"{db}: {copied_words(copied, time.time())}", "green")
