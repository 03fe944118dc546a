"""``freshet shards``: change the number of shards of a store, check them, and move one of them.

Offline: all stores are locked meanwhile. Every transaction leaves what the same command goes on
from; ``before`` in ``shards.toml`` keeps crawls and daemons away until it has ended.
"""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from pathlib import Path
from sqlite3 import Connection
from typing import Annotated, Final, TypeAlias

import typer

from freshet.crawler.cli.options import DEFAULT_DB, ConfigFile, Json, read_settings, store_of
from freshet.crawler.terminal import (
    INTERRUPTED,
    Tell,
    counted,
    fail,
    print_json,
    progress_bars,
    say,
    show_line,
    show_list,
    size,
    told_in_one_line,
)
from freshet.storage import moving
from freshet.storage.database import (
    SHARDS_FILE,
    StoreError,
    as_json,
    held,
    open_store,
    opened,
    store_errors,
    sync,
    transact,
)
from freshet.storage.maintenance import Progress, back_up
from freshet.storage.moving import Contents
from freshet.storage.shards import Shards, is_sharded, lease_of, take_lease

#: Pages of one transaction, unless a domain has more.
_BATCH: Final = 5_000
#: Files that SQLite and Freshet keep beside a store.
_BESIDE: Final = ("-wal", "-shm", "-journal", ".lock")

#: Returns the domain of an origin.
Place: TypeAlias = Callable[[str], str]

shards_command = typer.Typer(
    help="Change the number of shards of a store, check them, and move one of them.",
    no_args_is_help=True,
)

Folder = Annotated[
    Path,
    typer.Option(
        "--db",
        metavar="DIR",
        help="The folder of the sharded store; else FRESHET_DB, or db in freshet.toml.",
        callback=store_of,
    ),
]
Count = Annotated[int, typer.Argument(metavar="N", min=1, max=1_000, help="Shards from then on.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show what would move; change nothing.")]


@shards_command.callback()
def _group() -> None:
    """Change the number of shards of a store, check them, and move one of them."""


@shards_command.command("split")
def split(
    count: Count,
    db: Folder = DEFAULT_DB,
    dry_run: DryRun = False,
    config: ConfigFile = None,
    json: Json = False,
) -> None:
    """Raise the number of shards: whole domains move to the new ones.

    With the number that there is, domains move that stand in a wrong shard, as after a change of
    politeness.groups. Stop the daemon before. After Ctrl-C, a full disk or a crash the same command
    goes on.
    """
    _change(db, "split", count, dry_run=dry_run, config=config, json=json)


@shards_command.command("merge")
def merge(
    count: Count,
    db: Folder = DEFAULT_DB,
    dry_run: DryRun = False,
    config: ConfigFile = None,
    json: Json = False,
) -> None:
    """Lower the number of shards: the domains of the last ones move, and their files are deleted.

    Stop the daemon before. After Ctrl-C, a full disk or a crash the same command goes on.
    """
    _change(db, "merge", count, dry_run=dry_run, config=config, json=json)


def _change(
    db: Path, verb: str, count: int, *, dry_run: bool, config: Path | None, json: bool
) -> None:
    place = _place(config)
    with _goes_on(), progress_bars() as tell:
        shards = _shards(db)
        old = shards.count if shards.before is None else shards.before
        if (shards.before, shards.count) != (old, count):
            shards.require_settled()
        if (count < old) if verb == "split" else (count > old):
            other = "merge" if verb == "split" else "split"
            fail(f"{db}: it has {counted(old, 'shard')}; `freshet shards {other} {count}`", 2)
        new = Shards(db, count, shards.epoch + (shards.before is None), old)
        if dry_run:
            moves = _planned(new, place)
            domains, pages = len(moves), sum(moves.values())
            words = f"{counted(domains, 'domain')} with {counted(pages, 'page')} would move"
            told: Mapping[str, object] = {"shards": count, "domains": domains, "pages": pages}
        else:
            total, domains = _arrange(new, place, tell)
            words = (
                f"{counted(total.pages, 'page')}, {counted(total.observations, 'observation')} in "
                f"{counted(domains, 'domain')}: the same before and after; "
                f"{db} has {counted(count, 'shard')}"
            )
            told = {"shards": count, "domains": domains} | _as_json(total)
    if json:
        print_json(told)
    else:
        show_line(words, "" if dry_run else "green")


@contextmanager
def _goes_on() -> Iterator[None]:
    with told_in_one_line():
        try:
            yield
        except KeyboardInterrupt:
            fail("interrupted; the same command goes on", INTERRUPTED)


def _place(config: Path | None) -> Place:
    from freshet.crawler.network import domain_of  # noqa: PLC0415 - slow to import

    groups = read_settings(config, {})[0].politeness.groups
    return lru_cache(65_536)(partial(domain_of, groups=groups))


def _shards(db: Path) -> Shards:
    if not is_sharded(db):
        raise StoreError(
            f"{db}: it is not the folder of a sharded store: there is no {SHARDS_FILE}"
        )
    return Shards.read(db)


def _as_json(total: Contents) -> dict[str, object]:
    digest = f"{total.digest:032x}"
    return {"pages": total.pages, "observations": total.observations, "digest": digest}


# -- split and merge ---------------------------------------------------------


def _misplaced(
    db: Connection, shard: int, shards: Shards, place: Place
) -> list[tuple[int, str, int]]:
    """Return the hosts that belong to other shards: id, domain, and number of pages."""
    hosts = [(host, place(origin), pages) for host, origin, pages in moving.real_hosts(db)]
    return [each for each in hosts if shards.of(each[1]) != shard]


def _planned(new: Shards, place: Place) -> dict[str, int]:
    """Return the pages by domain that would move."""
    moves: defaultdict[str, int] = defaultdict(int)
    for shard in range(max(new.count, new.before or 0)):
        if shard < (new.before or 0) or new.path(shard).exists():
            with opened(new.path(shard), "ro") as db:
                for _, domain, pages in _misplaced(db, shard, new, place):
                    moves[domain] += pages
    return moves


def _arrange(new: Shards, place: Place, tell: Tell) -> tuple[Contents, int]:
    """Bring every domain into its shard; return what all hold, and the number of domains."""
    old, most = new.before or new.count, max(new.count, new.before or 0)
    paths = [new.path(shard) for shard in range(most)]
    for path in paths[:old]:
        if not path.exists():
            raise StoreError(f"{path}: there is no such file; restore it before its pages move")
    with ExitStack() as stack:
        for shard, path in enumerate(paths):
            if shard < old or path.exists():
                _require_number(path, shard)
        new.write()
        for path in paths:
            # An older schema is migrated, and a store made that is not there.
            asyncio.run(_migrated(path))
            stack.enter_context(held(path, "shards"))
        for shard in range(old, new.count):
            with opened(paths[shard]) as db, moving.attached(db, paths[0]):
                transact(partial(moving.found, shard=shard), db)
        before = _total(paths, place, partial(tell, "counting"))
        for shard, path in enumerate(paths):
            _move(new, shard, place, lambda d, s=shard: tell("moving", (s + d) / most))  # type: ignore[misc]
            if shard >= new.count:
                with opened(paths[shard % new.count]) as db, moving.attached(db, path):
                    transact(lambda to: moving.copy(to, {}, outgoing=True), db)
        after = _total(paths, place, partial(tell, "comparing"))
        if after != before:
            raise StoreError(
                f"{new.folder}: {before[0].pages:,} pages before and {after[0].pages:,} after, or "
                "other contents; `freshet shards verify` shows where, and nothing was deleted"
            )
        replace(new, before=None).write()
        for path in paths[new.count :]:
            with opened(path, "ro") as db:
                empty = not moving.real_hosts(db)
            if empty:
                _delete(path)
    return after


async def _migrated(path: Path) -> None:
    await (await open_store(path, owner="shards")).close()


def _require_number(path: Path, shard: int) -> None:
    with opened(path, "ro") as db:
        if (lease := lease_of(db)) is not None and lease.shard != shard:
            raise StoreError(f"{path}: it is the store of shard {lease.shard}; rename it back")


def _total(paths: list[Path], place: Place, tell: Callable[[float], None]) -> tuple[Contents, int]:
    """Return what the stores hold together: a domain that is whole in two of them counts once."""
    total, seen = Contents(), dict[str, Contents]()
    for number, path in enumerate(paths):
        tell(number / len(paths))
        with opened(path, "ro") as db:
            hosts = {host: place(origin) for host, origin, _ in moving.real_hosts(db)}
            for domain, found in moving.contents(db, hosts).items():
                if seen.setdefault(domain, found) is found:
                    total += found
                elif seen[domain] != found:
                    raise StoreError(_differ(path, domain))
    tell(1.0)
    return total, len(seen)


def _differ(path: Path, domain: str) -> str:
    return (
        f"{path}: another shard has other pages of {domain}; neither is deleted: restore the "
        "backup of one of the two"
    )


def _move(new: Shards, shard: int, place: Place, tell: Callable[[float], None]) -> None:
    """Move what stands in a shard and belongs to others, some thousand pages at a time."""
    with opened(new.path(shard)) as here:
        batches: defaultdict[int, list[tuple[int, dict[int, str]]]] = defaultdict(list)
        hosts = sorted(_misplaced(here, shard, new, place), key=lambda each: each[1])
        last = ""
        for host, domain, pages in hosts:
            of = batches[new.of(domain)]
            if not of or (of[-1][0] >= _BATCH and domain != last):
                of.append((0, {}))
            of[-1][1][host], last = domain, domain
            of[-1] = of[-1][0] + pages, of[-1][1]
        done, pages = 0, sum(each[2] for each in hosts)
        for to, some in batches.items():
            with opened(new.path(to)) as there, moving.attached(there, new.path(shard)):
                for size_of, batch in some:
                    _move_batch(here, there, batch, new.path(to))
                    done += size_of
                    tell(done / pages)


def _move_batch(here: Connection, there: Connection, hosts: dict[int, str], path: Path) -> None:
    mine = moving.contents(here, hosts)
    some = "SELECT {}, {} FROM host WHERE {} IN (SELECT value FROM json_each(?))".format
    rows = here.execute(some("origin", "id", "id"), (as_json(list(hosts)),))
    domains = {origin: hosts[host] for origin, host in rows}

    def theirs() -> dict[str, Contents]:
        known = there.execute(some("id", "origin", "origin"), (as_json(list(domains)),))
        same = {host: domains[origin] for host, origin in known}
        return {d: it for d, it in moving.contents(there, same).items() if it.pages}

    has = theirs()
    lacking = {host: domain for host, domain in hosts.items() if domain not in has}
    if lacking:
        transact(partial(moving.copy, hosts=lacking), there)
    for domain, found in theirs().items():
        if found != mine.pop(domain):
            raise StoreError(_differ(path, domain))
    if mine:
        raise StoreError(_differ(path, next(iter(mine))))
    transact(partial(moving.remove, hosts=hosts), here)


def _delete(path: Path) -> None:
    real = path.resolve()
    with store_errors(path):
        for file in (real, path, *(Path(f"{real}{ending}") for ending in _BESIDE)):
            file.unlink(missing_ok=True)


# -- verify ------------------------------------------------------------------


@dataclass(slots=True)
class ShardContents:
    """What one shard holds; ``origins`` are the hosts of its pages, with their domains."""

    total: Contents = field(default_factory=Contents)
    domains: set[str] = field(default_factory=set)
    origins: dict[str, str] = field(default_factory=dict)
    size_bytes: int = 0


@shards_command.command("verify")
def verify(db: Folder = DEFAULT_DB, config: ConfigFile = None, json: Json = False) -> None:
    """Check that every shard is there and sound, and every page in one shard, the right one.

    Nothing is changed. While a daemon runs its last visits may be missing. Ends with 1 if something
    is wrong.
    """
    place, problems = _place(config), list[str]()
    held_by: dict[int, ShardContents] = {}
    with told_in_one_line(), progress_bars() as tell:
        shards = _shards(db)
        try:
            shards.require_settled()
        except StoreError as error:
            problems.append(str(error))
        paths = shards.paths()
        paths += [p for p in sorted(db.glob("[0-9][0-9][0-9][0-9].db")) if p not in paths]
        for shard, path in enumerate(paths):
            tell("checking", shard / len(paths))
            if path != shards.path(shard):
                problems.append(f"{path}: it is of no shard; delete it, if it is not needed")
                continue
            try:
                held_by[shard] = _verified(shards, shard, place, problems)
            except StoreError as error:
                problems.append(str(error))
        problems += _doubled(shards, held_by)
    rows = [
        (n, it.total.pages, it.total.observations, len(it.domains), it.size_bytes, it.total.digest)
        for n, it in held_by.items()
    ]
    if json:
        names = ("shard", "pages", "observations", "domains", "bytes", "digest")
        told = [dict(zip(names, (*row[:5], f"{row[5]:032x}"), strict=True)) for row in rows]
        print_json({"shards": told, "problems": problems})
    else:
        show_list(
            f"Shards of {db}",
            ("shard", "pages", "observations", "domains", "size", "digest"),
            [(*row[:4], size(row[4]), f"{row[5]:032x}") for row in rows],
        )
        for problem in problems:
            say("wrong:", "red", problem)
        if not problems:
            show_line("every page is in one shard, the right one", "green")
    if problems:
        raise typer.Exit(1)


def _verified(shards: Shards, shard: int, place: Place, problems: list[str]) -> ShardContents:
    path = shards.path(shard)
    it = ShardContents()
    with opened(path, "ro") as db:
        _require_number(path, shard)
        it.size_bytes = path.stat().st_size
        for (line,) in db.execute("PRAGMA quick_check(1)").fetchall():
            if line != "ok":
                problems.append(f"{path}: it is damaged: {line}; restore a backup")
                return it
        hosts = moving.real_hosts(db)
        it.origins = {origin: place(origin) for _, origin, _ in hosts}
        found = moving.contents(db, {host: it.origins[origin] for host, origin, _ in hosts})
        for each in found.values():
            it.total += each
        it.domains = set(found)
        if away := [domain for domain in sorted(found) if shards.of(domain) != shard]:
            pages = sum(found[domain].pages for domain in away)
            problems.append(
                f"{path}: {counted(len(away), 'domain')} with {counted(pages, 'page')} "
                f"belong to other shards, such as {away[0]} to {shards.of(away[0])}; "
                f"`freshet shards split {shards.count} --db {shards.folder}` moves them"
            )
        sql = (
            "SELECT count(*) FROM outgoing AS o LEFT JOIN page AS p ON p.id = o.page_id "
            "WHERE p.held_back IS NOT 'shard'"
        )
        if count := db.execute(sql).fetchone()[0]:
            problems.append(
                f"{path}: {counted(count, 'page')} in outgoing that no other shard has to know; "
                "restore a backup"
            )
    return it


def _doubled(shards: Shards, held_by: Mapping[int, ShardContents]) -> Iterator[str]:
    first: dict[str, int] = {}
    for shard, it in held_by.items():
        both = [origin for origin in it.origins if first.setdefault(origin, shard) != shard]
        if both:
            yield (
                f"{shards.path(shard)}: {counted(len(both), 'host')} with pages in another shard, "
                f"too, such as {both[0]} in {first[both[0]]}; `freshet shards split "
                f"{shards.count} --db {shards.folder}` deletes one of two that are equal"
            )


# -- move --------------------------------------------------------------------


@shards_command.command("move")
def move(
    shard: Annotated[int, typer.Argument(metavar="SHARD", min=0, help="Its number, from 0 on.")],
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="Where it shall lie.")],
    db: Folder = DEFAULT_DB,
    json: Json = False,
) -> None:
    """Move the store of a shard into another folder, and leave a symbolic link in its place.

    Whoever had it open can write nothing any more. After Ctrl-C, a full disk or a crash the same
    command goes on.
    """
    from freshet.crawler.cli.backup import copying  # noqa: PLC0415 - slow to import

    with _goes_on():
        shards = _shards(db)
        shards.require_settled()
        if shard >= shards.count:
            fail(f"{db}: it has the shards 0 to {shards.count - 1}", 2)
        path, target = shards.path(shard), folder.resolve() / shards.path(shard).name
        real = path.resolve()
        if not path.exists():
            raise StoreError(f"{path}: there is no such file; restore a backup of it")
        if real != target:
            with store_errors(path), held(path, "shards"), copying() as tell:
                _require_number(path, shard)
                elsewhere = replace(shards, folder=folder.resolve())
                if not is_sharded(folder):
                    elsewhere.write()
                elif Shards.read(folder.resolve()) != elsewhere:
                    raise StoreError(f"{folder}: its {SHARDS_FILE} is of another store")
                total = _copied(path, real, target, shard, tell)
                link = path.with_name(f".{path.name}.link")
                link.unlink(missing_ok=True)
                link.symlink_to(target)
                link.replace(path)
                sync(path.parent)
                for file in (real, *(Path(f"{real}{ending}") for ending in _BESIDE)):
                    if file != path:
                        file.unlink(missing_ok=True)
        else:
            total = _whole(target)
    if json:
        print_json({"shard": shard, "path": str(target)} | _as_json(total))
    else:
        words = f"{counted(total.pages, 'page')}, {counted(total.observations, 'observation')}"
        show_line(f"shard {shard} is in {target}: {words}, the same as before", "green")


def _copied(path: Path, real: Path, target: Path, shard: int, tell: Progress) -> Contents:
    """Copy a shard unless the copy with the higher lease is there; compare the two."""
    taken = [_epoch(real, shard), _epoch(target, shard) if target.exists() else 0]
    if taken[1] <= taken[0]:
        mark = partial(take_lease, shard=shard)
        back_up(real, target, replace=target.exists(), progress=tell, mark=mark)
    tell("comparing", 0.0)
    total = _whole(real)
    if _whole(target) != total:
        raise StoreError(f"{target}: it holds other pages than {path}; delete one of the two")
    return total


def _epoch(path: Path, shard: int) -> int:
    with opened(path, "ro") as db:
        lease = lease_of(db)
    if lease is not None and lease.shard != shard:
        raise StoreError(f"{path}: it is the store of shard {lease.shard}")
    return 0 if lease is None else lease.epoch


def _whole(path: Path) -> Contents:
    with opened(path, "ro") as db:
        hosts = dict.fromkeys((host for host, _, _ in moving.real_hosts(db)), "")
        return moving.contents(db, hosts).get("", Contents())
