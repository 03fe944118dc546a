"""``freshet shards``: change the number of shards of a store, check them, and move one of them.

Offline: all stores are locked meanwhile. After every transaction the same command can continue;
``before`` in ``shards.toml`` keeps crawls and daemons away until it has ended.
"""

import asyncio
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import lru_cache, partial
from pathlib import Path
from sqlite3 import Connection
from typing import Annotated, Final, TypeAlias, cast

import typer

from freshet.crawler.cli.options import DEFAULT_DB, ConfigFile, Json, read_settings, store_of
from freshet.crawler.extensions.shards import moving
from freshet.crawler.extensions.shards.moving import DomainCounts
from freshet.crawler.run.terminal import (
    INTERRUPTED,
    Cell,
    Tell,
    counted,
    fail,
    print_json,
    progress_bars,
    say,
    show_line,
    show_list,
    told_in_one_line,
)
from freshet.storage.backup import Progress, back_up
from freshet.storage.database import (
    SHARDS_FILE,
    as_json,
    held,
    open_store,
    opened,
    store_errors,
    sync,
    transact,
)
from freshet.storage.errors import StoreError
from freshet.storage.shards import Shards
from freshet.storage.stores import is_folder, require_there
from freshet.storage.tables.runs import lease_of, take_lease

#: Pages of one transaction, unless a domain has more.
_BATCH: Final = 5_000
#: Files that SQLite and Freshet keep beside a store.
_STORES: Final = "[0-9][0-9][0-9][0-9].db"
_BESIDE: Final = ("-wal", "-shm", "-journal", ".lock")

#: Returns the domain of an origin.
Place: TypeAlias = Callable[[str], str]

shards_command = typer.Typer(
    help="Split, merge, verify or move the shards of a store.", no_args_is_help=True
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


@shards_command.command("split")
def split(
    count: Count,
    db: Folder = DEFAULT_DB,
    dry_run: DryRun = False,
    config: ConfigFile = None,
    json: Json = False,
) -> None:
    """Raise the number of shards: whole domains move to the new ones.

    With the present number, only domains in a wrong shard move, for instance after a change of
    politeness.groups. Stop the daemon first. After Ctrl-C, a full disk or a crash, run the same
    command to continue.
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

    Stop the daemon first. After Ctrl-C, a full disk or a crash, run the same command to continue.
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
    from freshet.crawler.run.network import domain_of  # noqa: PLC0415 - slow to import

    groups = read_settings(config, {})[0].politeness.groups
    return lru_cache(65_536)(partial(domain_of, groups=groups))


def _shards(db: Path) -> Shards:
    if not is_folder(db):
        raise StoreError(
            f"{db}: it is not the folder of a sharded store: there is no {SHARDS_FILE}; "
            "`freshet shards split` makes one"
        )
    return Shards.read(db)


def _as_json(total: DomainCounts) -> dict[str, object]:
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
    moves = Counter[str]()
    for shard, path in enumerate(_paths(new)[: new.before]):
        with opened(path, "ro") as db:
            for _, domain, pages in _misplaced(db, shard, new, place):
                moves[domain] += pages
    return moves


def _paths(new: Shards) -> list[Path]:
    """Return all stores of a split or merge, if those that it begins with are there."""
    old = new.before or new.count
    most = max(new.count, old)
    # Those of a merge that ended before it had deleted them.
    while new.path(most).exists():
        most += 1
    for shard in range(old):
        _require_shard(new.path(shard), shard)
    return [new.path(shard) for shard in range(most)]


@contextmanager
def _all_held(new: Shards) -> Iterator[list[Path]]:
    """Lock all stores, print the plan, and make the new stores."""
    paths = _paths(new)
    with ExitStack() as stack:
        for path in (new.folder / SHARDS_FILE, *paths[: new.before]):
            stack.enter_context(held(path, "shards"))
        new.write()
        for shard, path in list(enumerate(paths))[new.before :]:
            # A store that was interrupted while it was made is completed.
            asyncio.run(_made(path))
            stack.enter_context(held(path, "shards"))
            _require_shard(path, shard)
            with opened(path) as db:
                moving.found(db, shard, paths[0])
        yield paths


def _arrange(new: Shards, place: Place, tell: Tell) -> tuple[DomainCounts, int]:
    """Bring every domain into its shard; return what all hold, and the number of domains."""
    with _all_held(new) as paths:
        before = _total(paths, place, partial(tell, "counting"))
        for shard, path in enumerate(paths):
            _move(new, shard, place, partial(tell, f"moving from {path.name}"))
            if shard >= new.count:
                with opened(paths[shard % new.count]) as db, moving.attached(db, path):
                    transact(partial(moving.copy, hosts={}, outgoing=True), db)
        after = _total(paths, place, partial(tell, "comparing"))
        if after != before:
            raise StoreError(
                f"{new.folder}: {before[0].pages:,} pages before and {after[0].pages:,} after, or "
                "other contents of them; no file was deleted: `freshet shards verify` shows more"
            )
        replace(new, before=None).write()
        for path in paths[new.count :]:
            with opened(path, "ro") as db:
                is_empty = not moving.real_hosts(db)
            if is_empty:
                _delete(path.resolve())
                path.unlink(missing_ok=True)
    return after


async def _made(path: Path) -> None:
    await (await open_store(path, owner="shards")).close()


def _require_shard(path: Path, shard: int) -> int:
    """Return how often a shard was taken; raises StoreError if it is another one, or not there."""
    require_there(path)
    with opened(path, "ro") as db:
        number, epoch = lease_of(db) or (shard, 0)
    if number != shard:
        raise StoreError(f"{path}: it is the store of shard {number}; rename it back")
    return epoch


def _total(
    paths: list[Path], place: Place, tell: Callable[[float], None]
) -> tuple[DomainCounts, int]:
    """Return the sums over the stores; a domain that is whole in two of them counts once."""
    total, seen = DomainCounts(), dict[str, DomainCounts]()
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
    """Move the pages of a shard that belong to others, some thousand at a time."""
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

    def theirs() -> dict[str, DomainCounts]:
        known = there.execute(some("id", "origin", "origin"), (as_json(list(domains)),))
        same = {host: domains[origin] for host, origin in known}
        return {d: it for d, it in moving.contents(there, same).items() if it.pages}

    has = theirs()
    if lacking := {host: domain for host, domain in hosts.items() if domain not in has}:
        transact(partial(moving.copy, hosts=lacking), there)
    has = theirs()
    for domain, found in mine.items():
        if has.get(domain) != found:
            raise StoreError(_differ(path, domain))
    transact(partial(moving.remove, hosts=hosts), here)


def _delete(path: Path, but: str = "") -> None:
    """Delete a store, and what lies beside it, but not a file of the name ``but``."""
    for file in (path, *(path.with_name(f"{path.name}{ending}") for ending in _BESIDE)):
        if file.name != but:
            file.unlink(missing_ok=True)


# -- verify ------------------------------------------------------------------


@shards_command.command("verify")
def verify(db: Folder = DEFAULT_DB, config: ConfigFile = None, json: Json = False) -> None:
    """Check that every shard is there and sound, and every page in one shard, the right one.

    Nothing is changed. While a daemon runs its last visits may be missing. Ends with 1 if something
    is wrong.
    """
    problems, rows = _checked(db, _place(config))
    if json:
        print_json({"shards": rows, "problems": problems})
    else:
        cells = [tuple(cast("Cell", each) for each in row.values()) for row in rows]
        show_list(f"Shards of {db}", list(rows[0]) if rows else (), cells)
        for problem in problems:
            say("wrong:", "red", problem)
        if not problems:
            show_line("every page is in one shard, the right one", "green")
    if problems:
        raise typer.Exit(1)


def _checked(db: Path, place: Place) -> tuple[list[str], list[dict[str, object]]]:
    """Return the problems of the shards of a folder, and a row of counts for each shard."""
    problems, rows, first = list[str](), list[dict[str, object]](), dict[str, Path]()
    with told_in_one_line(), progress_bars() as tell:
        shards = _shards(db)
        extra = [path for path in sorted(db.glob(_STORES)) if path not in shards.paths()]
        problems += [f"{path}: it is of no shard; delete it, if nobody needs it" for path in extra]
        try:
            shards.require_settled()
        except StoreError as error:
            problems = [str(error)]
        for shard, path in enumerate(shards.paths()):
            tell("checking", shard / shards.count)
            try:
                hosts, found = _verified(shards, shard, place)
            except StoreError as error:
                problems.append(str(error))
                continue
            problems += _strays(shards, shard, found)
            problems += _twice(shards, path, hosts, first)
            total = sum(found.values(), DomainCounts())
            rows.append({"shard": shard, "domains": len(found)} | _as_json(total)
                        | {"bytes": path.stat().st_size})  # fmt: skip
    return problems, rows


def _strays(shards: Shards, shard: int, found: Mapping[str, DomainCounts]) -> Iterator[str]:
    """Yield that a shard has domains of other shards."""
    if away := [domain for domain in sorted(found) if shards.of(domain) != shard]:
        pages = counted(sum(found[domain].pages for domain in away), "page")
        yield (
            f"{shards.path(shard)}: {counted(len(away), 'domain')} with {pages} belong to other "
            f"shards, such as {away[0]} to {shards.of(away[0])}; {_again(shards)} moves them"
        )


def _twice(
    shards: Shards, path: Path, hosts: Iterable[str], first: dict[str, Path]
) -> Iterator[str]:
    """Yield a problem if a shard has hosts with pages in another; ``first`` has their paths."""
    if both := [host for host in hosts if first.setdefault(host, path) != path]:
        yield (
            f"{path}: {counted(len(both), 'host')} with pages in another shard, too, such "
            f"as {both[0]} in {first[both[0]]}; {_again(shards)} deletes one of two equals"
        )


def _again(shards: Shards) -> str:
    return f"`freshet shards split {shards.count} --db {shards.folder}`"


def _verified(
    shards: Shards, shard: int, place: Place
) -> tuple[list[str], dict[str, DomainCounts]]:
    """Return the hosts of a sound store, and its counts by domain."""
    path = shards.path(shard)
    _require_shard(path, shard)
    with opened(path, "ro") as db:
        (damage,) = db.execute("PRAGMA quick_check(1)").fetchone()
        if damage != "ok":
            raise StoreError(f"{path}: it is damaged: {damage}; restore a backup")
        stubs = "SELECT id FROM page WHERE held_back = 'shard'"
        sql = f"SELECT count(*) FROM outgoing WHERE page_id NOT IN ({stubs})"
        if count := db.execute(sql).fetchone()[0]:
            why = f"{counted(count, 'page')} in outgoing that no other shard has to know"
            raise StoreError(f"{path}: {why}; restore a backup")
        hosts = moving.real_hosts(db)
        found = moving.contents(db, {host: place(origin) for host, origin, _ in hosts})
        return [origin for _, origin, _ in hosts], found


# -- move --------------------------------------------------------------------


@shards_command.command("move")
def move(
    shard: Annotated[int, typer.Argument(metavar="SHARD", min=0, help="Its number, from 0 on.")],
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="Where it shall lie.")],
    db: Folder = DEFAULT_DB,
    json: Json = False,
) -> None:
    """Move the store of a shard into another folder, and leave a symbolic link in its place.

    Processes that had it open can no longer write. After Ctrl-C, a full disk or a crash, run the
    same command to continue.
    """
    from freshet.crawler.cli.backup import copying  # noqa: PLC0415 - slow to import

    with _goes_on():
        shards = _shards(db)
        shards.require_settled()
        if shard >= shards.count:
            fail(f"{db}: it has the shards 0 to {shards.count - 1}; name one of them", 2)
        if folder.resolve() == db.resolve():
            fail(f"{folder}: it is the folder of the store itself; name another", 2)
        path = shards.path(shard)
        _require_shard(path, shard)
        target = folder.resolve() / path.name
        real = path.resolve()
        if real != target:
            with store_errors(path), held(path, "shards"), copying() as tell:
                elsewhere = replace(shards, folder=target.parent)
                if not list(target.parent.glob(_STORES)):
                    elsewhere.write()
                elif _shards(target.parent) != elsewhere:
                    raise StoreError(
                        f"{folder}: its {SHARDS_FILE} is of another store; name another folder"
                    )
                total = _copied(path, real, target, shard, tell)
                link, is_moved_again = path.with_name(f".{path.name}.link"), path.is_symlink()
                link.unlink(missing_ok=True)
                link.symlink_to(target)
                link.replace(path)
                sync(path.parent)
                _delete(real, but="" if is_moved_again else real.name)
        else:
            total = _whole(target)
    if json:
        print_json({"shard": shard, "path": str(target)} | _as_json(total))
    else:
        words = f"{counted(total.pages, 'page')}, {counted(total.observations, 'observation')}"
        show_line(f"shard {shard} is in {target}: {words}, the same as before", "green")


def _copied(path: Path, real: Path, target: Path, shard: int, tell: Progress) -> DomainCounts:
    """Copy a shard unless the copy with the higher lease is there; compare the two."""
    taken = [_require_shard(real, shard), _require_shard(target, shard) if target.exists() else 0]
    if taken[1] <= taken[0]:
        mark = partial(take_lease, shard=shard)
        back_up(real, target, replace=target.exists(), progress=tell, mark=mark)
    tell("comparing", 0.0)
    total = _whole(real)
    if _whole(target) != total:
        raise StoreError(f"{target}: it holds other pages than {path}; delete one of the two")
    return total


def _whole(path: Path) -> DomainCounts:
    return _total([path], lambda _: "", lambda _: None)[0]
