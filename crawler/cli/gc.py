"""``freshet gc``: delete data beyond the limits of [store], and shrink the file."""

import time
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Annotated, Final, TypeAlias

import typer

from freshet.config.settings import StoreSettings
from freshet.crawler.cli import options
from freshet.crawler.cli.options import DEFAULT_DB, ConfigFile, Db, Json, read_settings
from freshet.crawler.run.terminal import err, fail, print_json, show_line, show_list, size
from freshet.crawler.run.upkeep import retention_of
from freshet.storage import maintenance
from freshet.storage.database import open_store, owner_of
from freshet.storage.entries import summed
from freshet.storage.maintenance import DeletedRows, Retention, Space
from freshet.storage.tables import observations

#: A smaller free share of the file is not returned: new data will use the space.
_VACUUM_FROM: Final = 0.1


#: Deleted rows, and the file's space before and after; None if nothing was deleted.
_Outcome: TypeAlias = tuple[list[DeletedRows], Space | None, Space | None]


def gc_command(
    db: Db = DEFAULT_DB,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Show what would be deleted, even while a daemon runs."),
    ] = False,
    vacuum: Annotated[
        bool | None,
        typer.Option(
            "--vacuum/--no-vacuum",
            help="Return free space to the file system; default: if it is a tenth of the file.",
        ),
    ] = None,
    config: ConfigFile = None,
    json: Json = False,
) -> None:
    """Delete what the settings in [store] do not keep.

    A daemon does this every day, and a crawl when it ends; this command does it at once and shrinks
    the file. The data from which change rates are learnt are never deleted.
    """
    settings, _ = read_settings(config, {})
    keep = retention_of(settings.store)
    if dry_run:
        doomed = partial(maintenance.doomed, retention=keep, now=time.time())
        counted, down = options.read_each(db, doomed)
        found: list[_Outcome] = [(rows, None, None) for rows in counted]
    else:
        for path in options.stores_at(db).paths:
            if path == db or path.exists():
                _require_idle(path)
        with err.status("Deleting"):
            found, down = options.read_each(db, partial(_collect, keep=keep, vacuum=vacuum))
    outcome = _merged(found)
    if json:
        rows, before, after = outcome
        print_json(
            {
                "rows": [asdict(each) for each in rows],
                "before": before and asdict(before),
                "after": after and asdict(after),
            }
            | down
        )
    else:
        _print(outcome, settings.store, db)


def _merged(found: list[_Outcome]) -> _Outcome:
    """Return the outcomes of all shards, added up."""
    by_rule = zip(*(rows for rows, _, _ in found), strict=True)
    rows = [summed(some, what=some[0].what, table=some[0].table) for some in by_rule]
    before = [space for _, space, _ in found if space is not None]
    after = [space for _, _, space in found if space is not None]
    return rows, summed(before) if before else None, summed(after) if after else None


def _require_idle(db: Path) -> None:
    if not db.exists():
        fail(f"{db}: there is no such file; --db names the store")
    if (owner := owner_of(db)) is not None:
        does = "; it deletes the same every day" if owner.name == "daemon" else ""
        fail(
            f"{db}: a freshet {owner.name} (process {owner.process}) is writing it{does}. "
            "Stop it first, or use --dry-run"
        )


async def _collect(db: Path, keep: Retention, vacuum: bool | None) -> _Outcome:
    database = await open_store(db, owner="gc")
    try:
        before = await maintenance.space(database)
        rows = await maintenance.prune(database, keep, time.time(), whole=True)
        await database.write(observations.drop_unused)
        after = await maintenance.space(database)
        is_large = after.free_bytes >= _VACUUM_FROM * after.size_bytes
        if vacuum or (vacuum is None and is_large and after.free_bytes):
            await maintenance.compact(database)
            after = await maintenance.space(database)
        return rows, before, after
    finally:
        await database.close()


def _print(outcome: _Outcome, store: StoreSettings, db: Path) -> None:
    rows, before, after = outcome
    kept = _kept(store)
    show_list(
        f"{'To be deleted' if before is None else 'Deleted'} from {db}",
        ("what", "kept", "table", "rows", "bytes"),
        [
            (each.what, kept[each.what], each.table, each.rows, f"{each.size_bytes:,}")
            for each in rows
        ],
    )
    if before is not None and after is not None:
        was, now = before.size_bytes, after.size_bytes
        changed = f"{size(was)} before, {size(now)} now" if was != now else size(now)
        show_line(f"file: {changed}, {size(after.free_bytes)} of it free", "green")


def _kept(store: StoreSettings) -> dict[str, str]:
    """Return the retention of each kind of data, in words."""
    links, alerts = _age(store.link_age_days), _age(store.alert_age_days)
    gone = f"; of gone pages {store.gone_body_age_days:g} d" if store.gone_body_age_days else ""
    return {
        "bodies": f"newest {store.bodies_per_page} of a page, {store.body_age_days:g} d{gone}",
        "sketches": f"newest {store.sketches_per_page} of a page"
        if store.sketches_per_page
        else "all",
        "failures": _age(store.failure_age_days),
        "removed links": links,
        "removed links, off site": links,
        "alerts sent": alerts,
        "messages sent": alerts,
        "reported deletions": _age(store.deletion_age_days),
    }


def _age(days: float) -> str:
    return f"{days:g} d" if days else "for ever"
