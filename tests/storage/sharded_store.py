"""A folder of shards with a made web: pages of some domains, their visits, and links."""

import asyncio
from contextlib import closing
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from random import Random
from sqlite3 import Connection, connect
from typing import Any

from freshet.crawler.extensions.search import tables as search
from freshet.storage.database import open_store
from freshet.storage.shards import Shards
from freshet.storage.tables.runs import take_lease
from tests.storage.small_store import SmallStore


@dataclass(frozen=True, slots=True)
class QuickStore(SmallStore):
    """A store that is filled over one connection, in one transaction."""

    connection: Connection

    def insert(self, table: str, **columns: object) -> int:
        names, marks = ", ".join(columns), ", ".join("?" * len(columns))
        sql = f"INSERT INTO {table} ({names}) VALUES ({marks})"
        return self.connection.execute(sql, tuple(columns.values())).lastrowid or 0

    def execute(self, sql: str, *values: object) -> None:
        self.connection.execute(sql, values)

    def ask(self, sql: str, *values: object) -> list[Any]:
        return self.connection.execute(sql, values).fetchall()


def sharded_store(folder: Path, count: int, seed: int, domains: int = 8) -> Shards:
    """Make the shards of a small random web."""
    shards, chance = Shards(folder, count), Random(seed)
    shards.write()
    sites = [f"site{n}.example" for n in range(domains)]
    urls = {site: [f"https://{site}/{i}" for i in range(chance.randrange(1, 5))] for site in sites}
    for shard in range(count):
        _make(shards, shard)
        with closing(connect(shards.path(shard))) as connection, connection:
            _fill(QuickStore(shards.path(shard), connection), shards, shard, urls, chance)
    return shards


def _make(shards: Shards, shard: int) -> None:
    async def make() -> None:
        database = await open_store(shards.path(shard))
        await database.write(lambda db: take_lease(db, shard))
        await database.write(search.create)
        await database.close()

    asyncio.run(make())


def _fill(
    store: QuickStore, shards: Shards, shard: int, urls: dict[str, list[str]], chance: Random
) -> None:
    runs = [store.run(float(100 * n + shard)) for n in range(chance.randrange(1, 3))]
    ids = dict[str, int]()

    def page(url: str) -> int:
        domain = url.split("/")[2]
        if url not in ids:
            held_back = None if shards.of(domain) == shard else "shard"
            origin = f"https://{domain}"
            known = store.ask("SELECT id FROM host WHERE origin = ?", origin)
            host = known[0][0] if known else store.host(origin)
            ids[url] = store.page(url, host=host, held_back=held_back, found_run_id=runs[0])
        return ids[url]

    for domain, of in urls.items():
        store.insert("seed", text=domain, url=f"https://{domain}/0", added_at=0.0)
        if shards.of(domain) != shard:
            continue
        for at, url in enumerate(of):
            mine = page(url)
            _visit(store, mine, float(at), chance, runs[-1])
            others = chance.sample(sorted(urls), 3)
            for other in others:
                target = page(chance.choice(urls[other]))
                store.execute(
                    "INSERT OR IGNORE INTO link VALUES (?, ?, 0, '', '', 0, 0, NULL)", mine, target
                )
            if chance.random() < 0.2:
                store.execute("UPDATE page SET alias_of = ?, alias_kind = 'permanent' WHERE id = ?",
                              page(urls[others[0]][0]), mine)  # fmt: skip
            store.due(
                mine, 0.0, host=store.ask("SELECT host_id FROM page WHERE id = ?", mine)[0][0]
            )
        first = page(of[0])
        store.execute(
            "UPDATE seed SET page_id = ?, root_url = ? WHERE text = ?", first, of[0], domain
        )
        host = store.ask("SELECT host_id FROM page WHERE id = ?", first)[0][0]
        store.execute("UPDATE host SET exchanges = 3, delay_s = 2.0 WHERE id = ?", host)
        store.insert("robots", host_id=host, standing="ok", fetched_at=1.0, body=b"")
        source = store.insert("claim_source", kind="feed", host_id=host, page_id=first, url=of[0])
        claimed = page(chance.choice(urls[chance.choice(sorted(urls))]))
        store.insert(
            "claim", source_id=source, page_id=claimed, since=0.0, until=1.0, received_at=2.0
        )
    for (told,) in store.ask("SELECT page_id FROM outgoing"):
        if chance.random() < 0.5:
            store.execute("DELETE FROM outgoing WHERE page_id = ?", told)


def _visit(store: QuickStore, page: int, at: float, chance: Random, run: int) -> None:
    body = chance.randbytes(2)
    digest = blake2b(body, digest_size=16).digest()
    store.execute("INSERT OR IGNORE INTO body VALUES (?, 0, 2, ?)", digest, body)
    version = store.insert("version", page_id=page, at=at, body_digest=digest)
    seen = store.observe(page, at, "new", version_id=version, run_id=run)
    store.execute("UPDATE page SET version_id = ?, last_kind = 'new' WHERE id = ?", version, page)
    kind = chance.choice(["new", "changed", "gone"])
    store.insert("change", page_id=page, kind=kind, at=at, observation_id=seen,
                 version_id=None if kind == "gone" else version)  # fmt: skip
    if kind != "gone" and chance.random() < 0.5:
        search.fill(store.connection, [(page, version, f"Title\n\nwords of {page}")])
    if chance.random() < 0.3:
        message = store.ask("SELECT id FROM alert_message")
        key = str(chance.random())
        told = message[0][0] if message else store.insert(
            "alert_message", key=key, rule="r", made_at=at, body="{}", state="pending", since=at,
            next_at=at,
        )  # fmt: skip
        store.insert(
            "alert", key=key, rule="r", observation_id=seen, kind="new", at=at, message_id=told
        )
        store.insert("amendment", observation_id=seen, kind="failed", reason="x", at=at)
