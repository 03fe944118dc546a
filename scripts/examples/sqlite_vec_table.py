"""Keep a sqlite-vec table of a store's blocks in step: ``python sqlite_vec_table.py crawl.db DB``.

A change and its cursor are one transaction; only blocks that are new on their page are embedded.
"""

import sys
from zlib import crc32

import apsw
import sqlite_vec

import freshet

TABLES = """CREATE TABLE IF NOT EXISTS cursor (only INTEGER PRIMARY KEY, seq);
CREATE TABLE IF NOT EXISTS block (url, id, markdown, embedding, PRIMARY KEY (url, id));"""


def embed(text: str) -> bytes:
    vector = [0.0] * 256  # hashed words: a real model goes here
    for word in text.lower().split():
        vector[crc32(word.encode()) % 256] += 1.0
    return bytes(sqlite_vec.serialize_float32(vector))


def keep_in_step(store: freshet.Store, db: apsw.Connection) -> None:
    cursor = db.execute(TABLES + "SELECT seq FROM cursor").get
    empty = "DELETE FROM block; DELETE FROM cursor"
    for change in store.changefeed(cursor, start_anew=lambda: db.execute(empty)):
        blocks = change.doc.by_id() if change.doc else {}
        had = {name for (name,) in db.execute("SELECT id FROM block WHERE url = ?", (change.id,))}
        old = [(change.id, name) for name in had - blocks.keys()]
        new = [(change.id, name, blocks[name], embed(blocks[name])) for name in blocks.keys() - had]
        with db:
            db.executemany("DELETE FROM block WHERE url = ? AND id = ?", old)
            db.executemany("INSERT INTO block VALUES (?, ?, ?, ?)", new)
            db.execute("INSERT OR REPLACE INTO cursor VALUES (1, ?)", (change.seq,))


if __name__ == "__main__":
    keep_in_step(freshet.Store(sys.argv[1]), apsw.Connection(sys.argv[2]))
