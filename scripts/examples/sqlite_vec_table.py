"""Keep a sqlite-vec table of a store's blocks in step: ``python sqlite_vec_table.py crawl.db DB``.

Each change is one transaction with its cursor, so a kill loses nothing. Only blocks whose ids are
new on their page are embedded.
"""

import sys
from zlib import crc32

import apsw
import sqlite_vec

import freshet

TABLES = """CREATE TABLE IF NOT EXISTS cursor (only INTEGER PRIMARY KEY, seq);
CREATE TABLE IF NOT EXISTS block (url, id, markdown, row INTEGER PRIMARY KEY, UNIQUE (url, id));
CREATE VIRTUAL TABLE IF NOT EXISTS vector USING vec0 (embedding float[256]);"""


def embed(text: str) -> bytes:
    vector = [0.0] * 256  # hashed words: a real model goes here
    for word in text.lower().split():
        vector[crc32(word.encode()) % 256] += 1.0
    return bytes(sqlite_vec.serialize_float32(vector))


def open_table(file: str) -> apsw.Connection:
    db = apsw.Connection(file)
    db.enable_load_extension(True)
    sqlite_vec.load(db)
    db.execute(TABLES)
    return db


def replace_blocks(db: apsw.Connection, url: str, blocks: dict[str, str]) -> None:
    stored = db.execute("SELECT id, row FROM block WHERE url = ?", (url,))
    had = {name: row for name, row in stored}  # noqa: C416 - typed so
    for name in had.keys() - blocks.keys():
        db.execute("DELETE FROM vector WHERE rowid = ?", (had[name],))
        db.execute("DELETE FROM block WHERE row = ?", (had[name],))
    for name in blocks.keys() - had.keys():
        db.execute("INSERT INTO block VALUES (?, ?, ?, NULL)", (url, name, blocks[name]))
        row, vector = db.last_insert_rowid(), embed(blocks[name])
        db.execute("INSERT INTO vector (rowid, embedding) VALUES (?, ?)", (row, vector))


def keep_in_step(store: freshet.Store, db: apsw.Connection) -> None:
    try:
        for change in store.changefeed(db.execute("SELECT seq FROM cursor").get):
            with db:
                replace_blocks(db, change.id, change.doc.by_id() if change.doc else {})
                db.execute("INSERT OR REPLACE INTO cursor VALUES (1, ?)", (change.seq,))
    except freshet.CursorGone:  # it belongs to another store: the next run begins anew
        with db:
            db.execute("DELETE FROM vector; DELETE FROM block; DELETE FROM cursor")


if __name__ == "__main__":
    with freshet.Store(sys.argv[1]) as opened:
        keep_in_step(opened, open_table(sys.argv[2]))
