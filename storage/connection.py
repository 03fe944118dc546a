"""Texts as SQLite can hold them."""

import sqlite3
from collections.abc import Iterable
from itertools import chain
from typing import Any


def encodable(text: str) -> str:
    """Replace half characters (lone surrogates), which UTF-8 cannot hold, and NUL."""
    whole = text if text.isascii() else text.encode("utf-8", "replace").decode()
    return whole.replace("\0", "\ufffd") if "\0" in whole else whole


class StoreConnection(sqlite3.Connection):
    """The one place that all texts for SQLite pass, which makes them :func:`encodable`.

    An adapter of ``str`` would do the same. Then Python would look for an adapter of every value of
    every type, which takes three times as long as all else that a row needs.
    """

    def execute(self, sql: str, parameters: Any = (), /) -> sqlite3.Cursor:
        """Execute a statement."""
        for each in parameters.values() if type(parameters) is dict else parameters:
            if type(each) is str and "\0" in each:
                return super().execute(sql, _encodable(parameters))
        try:
            return super().execute(sql, parameters)
        except UnicodeEncodeError:
            # Nothing was executed.
            return super().execute(sql, _encodable(parameters))

    def executemany(self, sql: str, parameters: Iterable[Any], /) -> sqlite3.Cursor:
        """Execute a statement for each of some rows."""
        # Those before one that cannot be bound would be executed: all are looked at before.
        if not (rows := list(parameters)):
            return super().executemany(sql, rows)
        columns = [row.values() for row in rows] if type(rows[0]) is dict else rows
        values = chain.from_iterable(columns) if rows[1:] else columns[0]
        text = "".join([each for each in values if type(each) is str])
        if "\0" in text or not (text.isascii() or _is_whole(text)):
            rows = list(map(_encodable, rows))
        return super().executemany(sql, rows)


def _is_whole(text: str) -> bool:
    """Return whether a text has no half characters."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _encodable(row: Any) -> Any:
    if isinstance(row, dict):
        return {name: encodable(each) if type(each) is str else each for name, each in row.items()}
    return [encodable(each) if type(each) is str else each for each in row]
