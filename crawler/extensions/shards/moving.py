"""Move domains from one store to another: what ``freshet shards split`` and ``merge`` do.

A batch of hosts is copied in one transaction of the new store, compared by digest, and deleted in
one transaction of the old store. A kill between leaves both with equal digests: then only the
deletion is left. Pages that others link to stay as stubs, held back as ``shard``.

Columns, references and owners are read from the schema; :data:`STAY` and :data:`UNDECLARED` list
the rest. New ids are given densely: a constant offset would leave gaps that grow with
every move, and would not find rows that the new store has already (hosts, stubs, runs).
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import blake2b
from importlib.resources import files
from pathlib import Path
from sqlite3 import Connection
from typing import Final, NamedTuple

from freshet.storage.database import opened, transact
from freshet.storage.errors import StoreError
from freshet.storage.extensions import index
from freshet.storage.tables import near_duplicates, observations
from freshet.storage.tables.runs import lease_of, take_lease

#: Tables that the rule of :func:`moved_tables` does not move, with the reason.
STAY: Final[Mapping[str, str]] = {
    "migration": "of the file",
    "extension": "of the file",
    "forgetting": "empty",
    "changefeed": "the store's own cursor; moved pages are told anew",
    "lease": "the store's own number",
    "pruned": "dropped in both stores; all bodies are looked at once more",
    "crawl_run": "each shard has runs; moved rows belong to the one that was under way here",
    "bound": "sums of a run",
    "no_network": "of the run that goes on",
    "outlook": "forecasts for a store",
    "capped_queue": "part of an outlook",
    "past_promotions": "sums over all pages of a store",
    "seed": "every shard has all of them; those of moved pages point to these",
    "refusal": "copied whole: every shard keeps to it",
    "site_setting": "copied whole: every shard has all of them",
    "outgoing": "copied with the stubs that are not told yet",
    "inflow": "told anew each day, by shards of other numbers; dropped in both stores",
    "body": "copied by digest with the versions",
    "dictionary": "copied with the bodies that need it; one that is left goes at the next gc",
    "alert_message": "copied with its alerts; the body goes with the last of them",
    "snapshot": "learnt from observations; dropped in both stores",
    "altered_page": "what a snapshot does not know",
    "lsh": "the index takes new observations in by itself",
    "lsh_page": "of the index",
    "lsh_group": "of the index",
    "lsh_bucket": "of the index",
    "search_index": "the next crawl or daemon indexes the moved pages",
    "search_page": "of the index",
    "search_query": "settings; copied into a new store",
    "search_asked": "counts of searches in a store",
    "search_use": "measured anew",
    "search_before": "measured anew",
    "search_quality": "measured anew",
}
#: References that no foreign key declares.
UNDECLARED: Final[Mapping[tuple[str, str], str]] = {
    ("page", "version_id"): "version",
    ("observation", "version_id"): "version",
    ("change", "version_id"): "version",
    ("change", "observation_id"): "observation",
    ("quality_change", "observation_id"): "observation",
}
#: Tables that others refer to, and the columns that identify their rows in any store.
_KEYS: Final[Mapping[str, tuple[str, ...]]] = {
    "host": ("origin",),
    "page": ("url",),
    "observation": ("at",),
    "version": ("at",),
    "claim_source": ("kind", "url"),
    "alert_message": ("key",),
    "crawl_run": (),
}
#: Tables with a unique key: equal keys mean the same row.
_SAME: Final = ("host", "page", "claim_source", "alert_message")
#: The column by which a row hangs on its owner: this one, or the first of those that a table has.
_OWNED_BY: Final = {"host": "id", "claim_source": "host_id", "site_change": "host_id"}
_OWNERS: Final = ("source_id", "page_id", "src_id", "observation_id", "host_id")
_TO: Final = "old INTEGER PRIMARY KEY, new INTEGER, moves INTEGER DEFAULT 0"
_MOVED: Final = "(SELECT old FROM temp.to_page)"
_OF_HOSTS: Final = "CROSS JOIN temp.moving AS m ON m.host_id = p.host_id"
#: By parent: the condition of the rows to delete.
_DOOMED: Final[Mapping[str, str]] = {
    "page": _MOVED,
    "host": "(SELECT host_id FROM temp.moving)",
    "observation": f"(SELECT id FROM observation WHERE page_id IN {_MOVED})",
    "claim_source": "(SELECT s.id FROM claim_source AS s JOIN temp.moving USING (host_id))",
}
_SQL: Final = (files(__package__) / "moving.sql").read_text("utf-8")
_SHARED, _COPIED, _BEFORE, _AFTER = (part.split(";\n") for part in _SQL.split("\n-- then\n"))


class MovedTable(NamedTuple):
    """A table; its rows move with their ``owner``, a column that refers to the table ``parent``."""

    name: str
    owner: str
    parent: str
    plain: tuple[str, ...]
    refs: Mapping[str, str]


@dataclass(slots=True)
class DomainCounts:
    """Counts of a domain's rows in a store, and the sum of the digests of its rows."""

    pages: int = 0
    observations: int = 0
    digest: int = 0

    def __add__(self, other: "DomainCounts") -> "DomainCounts":
        pages, observations = self.pages + other.pages, self.observations + other.observations
        return DomainCounts(pages, observations, (self.digest + other.digest) % 2**128)


def _tables(db: Connection, schema: str = "main") -> set[str]:
    sql = f"SELECT name FROM {schema}.sqlite_master WHERE type = 'table'"
    names = {row[0] for row in db.execute(sql)}
    return {n for n in names if not n.startswith(("sqlite_", "search_words"))}


def moved_tables(db: Connection) -> list[MovedTable]:
    """Return the tables with moving rows, the children of observations before these.

    Raises:
        StoreError: a table is neither of these nor in :data:`STAY`.
    """
    found = [_moved_table(db, name) for name in sorted(_tables(db) - STAY.keys())]
    order = ("observation", "claim_source", "page", "host")
    return sorted(found, key=lambda table: (table.name in order, order.index(table.parent)))


def _references(db: Connection, name: str) -> dict[str, str]:
    """Return the columns of a table that refer to others, and to which."""
    refs = {row[3]: row[2] for row in db.execute(f"PRAGMA main.foreign_key_list({name})")}
    return refs | {column: to for (table, column), to in UNDECLARED.items() if table == name}


def _moved_table(db: Connection, name: str) -> MovedTable:
    columns = [row[1] for row in db.execute(f"PRAGMA main.table_info({name})")]
    refs = _references(db, name)
    owner = _OWNED_BY.get(name) or next((column for column in _OWNERS if column in refs), None)
    if owner is None:
        raise StoreError(f"table {name} is none of Freshet's; move it to another file")
    parent = refs.get(owner, "host")
    if name in _KEYS:
        refs["id"] = name
    # Other ids are assigned again, except for showings, which are named in links to pages.
    new = {"id", "seq", "findings"} if name != "showing" else set()
    plain = tuple(c for c in columns if c not in refs and c not in new)
    return MovedTable(name, owner, parent, plain, refs)


def _rows(table: MovedTable, schema: str) -> str:
    """Return the FROM clause of the rows ``t`` of the hosts in ``temp.moving``."""
    own = f"{schema}.{table.name} AS t"
    if table.parent == "host":
        real = " AND t.held_back IS NOT 'shard'" if table.name == "page" else ""
        return f"temp.moving AS m CROSS JOIN {own} ON t.{table.owner} = m.host_id{real}"
    above = "claim_source" if table.parent == "claim_source" else "page"
    rows = f"temp.moving AS m CROSS JOIN {schema}.{above} AS p ON p.host_id = m.host_id "
    if above == "page":
        rows += "AND p.held_back IS NOT 'shard' "
    if table.parent == "observation":
        rows += f"CROSS JOIN {schema}.observation AS o ON o.page_id = p.id "
    if table.name == "showing":
        # Without an index, but short.
        return f"{own} CROSS JOIN {schema}.page AS p ON p.id = t.page_id {_OF_HOSTS}"
    alias = "o" if table.parent == "observation" else "p"
    return f"{rows}CROSS JOIN {own} ON t.{table.owner} = {alias}.id"


def _begin(db: Connection, name: str, columns: str) -> None:
    """Make a temporary table, or empty it."""
    db.execute(f"CREATE TEMP TABLE IF NOT EXISTS {name} ({columns})")
    db.execute(f"DELETE FROM temp.{name}")


def _choose(db: Connection, hosts: Mapping[int, str]) -> None:
    """Let ``temp.moving`` be these hosts with their domains."""
    _begin(db, "moving", "host_id INTEGER PRIMARY KEY, domain TEXT")
    db.executemany("INSERT INTO temp.moving VALUES (?, ?)", sorted(hosts.items()))


# -- contents of a store -----------------------------------------------------


def real_hosts(db: Connection) -> list[tuple[int, str, int]]:
    """Return the hosts with pages that are not stubs: id, origin, and number of these pages."""
    return db.execute(
        "SELECT h.id, h.origin, count(*) FROM page AS p JOIN host AS h ON h.id = p.host_id "
        "WHERE p.held_back IS NOT 'shard' GROUP BY h.id ORDER BY h.id"
    ).fetchall()


def contents(db: Connection, hosts: Mapping[int, str]) -> dict[str, DomainCounts]:
    """Return the counts by domain of these hosts, which are given with their domains."""
    _choose(db, hosts)
    found = {domain: DomainCounts() for domain in hosts.values()}
    for table in moved_tables(db):
        columns, joins = [f"t.{column}" for column in table.plain], ""
        for number, (column, to) in enumerate(sorted(table.refs.items())):
            if column != "id" and to != "crawl_run":
                joins += f" LEFT JOIN main.{to} AS r{number} ON r{number}.id = t.{column}"
                columns += [f"r{number}.{key}" for key in _KEYS[to]]
        for row in db.execute(f"SELECT m.domain, {', '.join(columns)} FROM "
                              f"{_rows(table, 'main')}{joins}"):  # fmt: skip
            it, told = found[row[0]], repr((table.name, row)).encode()
            digest = int.from_bytes(blake2b(told, digest_size=16).digest())
            it.digest = (it.digest + digest) % 2**128
            it.pages += table.name == "page"
            it.observations += table.name == "observation"
    return found


# -- moving ------------------------------------------------------------------


@contextmanager
def attached(db: Connection, path: Path) -> Iterator[None]:
    """Let ``old`` be another store, to read from."""
    db.execute("ATTACH ? AS old", (f"{path.absolute().as_uri()}?mode=ro",))
    try:
        yield
    finally:
        db.execute("DETACH old")


@contextmanager
def _without_triggers(db: Connection) -> Iterator[None]:
    """Leave out what triggers guard, count and enter; they are back at the commit."""
    triggers = db.execute("SELECT name, sql FROM main.sqlite_master WHERE type = 'trigger'")
    made = triggers.fetchall()
    for name, _ in made:
        db.execute(f"DROP TRIGGER main.{name}")
    yield
    for _, sql in made:
        db.execute(sql)


def _has_queries(db: Connection) -> bool:
    """Return whether both stores have queries by which search quality is measured."""
    sql = "SELECT 1 FROM {}.sqlite_master WHERE name = 'search_query'"
    return all(db.execute(sql.format(each)).fetchone() for each in ("main", "old"))


def found(db: Connection, shard: int, like: Path) -> None:
    """Give a new store the number of a shard, and the runs, seeds and index of another store."""

    def begin(db: Connection) -> None:
        if lease_of(db) is None:
            take_lease(db, shard)
        if indexed is not None:
            indexed.begin_like(db, other)

    def share(db: Connection) -> None:
        queries = "INSERT OR IGNORE INTO main.search_query SELECT * FROM old.search_query"
        for sql in [*_SHARED, queries] if _has_queries(db) else _SHARED:
            db.execute(sql)

    indexed = index()
    # Before the other store is attached: missing tables would be found there.
    with opened(like, "ro") as other:
        transact(begin, db)
    with attached(db, like):
        transact(share, db)


def copy(db: Connection, hosts: Mapping[int, str], *, outgoing: bool = False) -> None:
    """Copy all rows of these hosts from the store ``old``, with ``outgoing`` its messages too."""
    old = _tables(db, "old")
    tables = [table for table in moved_tables(db) if table.name in old]
    _choose(db, hosts)
    for sql in _SHARED:
        db.execute(sql)
    _map(db, tables, outgoing=outgoing)
    with _without_triggers(db):
        for table in tables:
            refs = list(enumerate(sorted(table.refs.items())))
            names = [*table.plain, *(column for _, (column, _) in refs)]
            values = [*(f"t.{c}" for c in table.plain), *(f"r{number}.new" for number, _ in refs)]
            joins = "".join(
                f" LEFT JOIN temp.to_{to} AS r{n} ON r{n}.old = t.{column}"
                for n, (column, to) in refs
            )
            order = " ORDER BY t.seq" if table.name == "change" else ""
            db.execute(
                f"INSERT OR REPLACE INTO main.{table.name} ({', '.join(names)}) "
                f"SELECT {', '.join(values)} FROM {_rows(table, 'old')}{joins}{order}"
            )
        for sql in _COPIED:
            db.execute(sql)
    observations.copy_dictionaries(db)


def _map(db: Connection, tables: list[MovedTable], *, outgoing: bool) -> None:
    """Fill ``temp.to_…``: the ids here of rows in ``old`` that move or that these refer to."""
    for name in _KEYS:
        _begin(db, f"to_{name}", _TO)
    add = "INSERT OR IGNORE INTO temp.to_{} (old, moves) SELECT {} FROM {}".format
    for table in tables:
        if table.name in _KEYS:
            db.execute(add(table.name, "t.id, 1", _rows(table, "old")))
    for table in tables:
        for column, to in table.refs.items():
            if column not in {"id", table.owner}:
                rows = f"{_rows(table, 'old')} WHERE t.{column} IS NOT NULL"
                db.execute(add(to, f"t.{column}, 0", rows))
    told = "old.outgoing AS o CROSS JOIN old.page AS p ON p.id = o.page_id "
    db.execute(add("page", "o.page_id, 0", told + ("" if outgoing else _OF_HOSTS)))
    rows = "temp.to_page AS m JOIN old.page AS x ON x.id = m.old"
    db.execute(add("host", "x.host_id, 0", rows))
    db.execute(add("crawl_run", "x.found_run_id, 0", rows))
    # What was under way here at the time, else the first run after.
    db.execute(
        "UPDATE temp.to_crawl_run SET new = (SELECT h.id FROM main.crawl_run AS h, old.crawl_run "
        "AS o WHERE o.id = to_crawl_run.old ORDER BY h.started_at > o.started_at, "
        "abs(h.started_at - o.started_at), h.id DESC LIMIT 1)"
    )
    for name, keys in _KEYS.items():
        if name in _SAME:
            db.execute(
                f"UPDATE temp.to_{name} SET new = (SELECT x.id FROM old.{name} AS o "
                f"JOIN main.{name} AS x USING ({', '.join(keys)}) WHERE o.id = to_{name}.old)"
            )
        # What was deleted since it was referred to stays so.
        db.execute(
            f"UPDATE temp.to_{name} SET new = -1 WHERE old NOT IN (SELECT id FROM old.{name})"
        )
        db.execute(
            f"UPDATE temp.to_{name} SET new = n + (SELECT coalesce(max(id), 0) FROM main.{name}) "
            "FROM (SELECT old AS o, row_number() OVER (ORDER BY old) AS n "
            f"FROM temp.to_{name} WHERE new IS NULL) WHERE o = to_{name}.old"
        )


def _forget_words(db: Connection, page_ids: Sequence[int]) -> None:
    if (indexed := index()) is not None:
        indexed.forget(db, page_ids)
    elif "search_page" in _tables(db):
        raise StoreError("the store has a search index: the extension search is needed")


def _keep_what_others_name(db: Connection) -> None:
    """Fill ``temp.kept``: the pages that go, and that other rows refer to."""
    _begin(db, "kept", "id INTEGER PRIMARY KEY")
    for name in _tables(db):
        own = f" AND id NOT IN {_MOVED}" if name == "page" else ""
        for row in db.execute(f"PRAGMA main.foreign_key_list({name})").fetchall():
            # Copies are of the same host.
            if row[2] == "page" and row[3] != "copy_of":
                db.execute(f"INSERT OR IGNORE INTO temp.kept SELECT {row[3]} FROM {name} "
                           f"WHERE {row[3]} IN {_MOVED}{own}")  # fmt: skip


def remove(db: Connection, hosts: Mapping[int, str]) -> None:
    """Delete all rows of these hosts that another store has; referenced pages become stubs."""
    tables = moved_tables(db)
    _choose(db, hosts)
    _begin(db, "to_page", _TO)
    page = next(table for table in tables if table.name == "page")
    db.execute(f"INSERT INTO temp.to_page (old, moves) SELECT t.id, 1 FROM {_rows(page, 'main')}")
    ids = [row[0] for row in db.execute("SELECT old FROM temp.to_page")]
    with _without_triggers(db):
        for sql in _BEFORE:
            db.execute(sql)
        _forget_words(db, ids)
        for table in tables:
            if table.name not in {"page", "host"}:
                sql = f"DELETE FROM {table.name} WHERE {table.owner} IN {_DOOMED[table.parent]}"
                db.execute(sql)
        for page_id in ids:
            near_duplicates.revise(db, page_id)
        _keep_what_others_name(db)
        for sql in _AFTER:
            db.execute(sql)
