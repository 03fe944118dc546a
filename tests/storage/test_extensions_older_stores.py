"""Stores that earlier versions made stay readable, and their cursors hold.

``stores/`` has one of each schema that was published (docs/RELEASING.md), with a cursor that was
given out then.
"""

import json
from pathlib import Path

import pytest
import zstandard

from freshet.storage.extensions import newest
from tests.console import as_json, freshet, shown

STORES = Path(__file__).parent / "stores"
#: By schema: a cursor, how many entries came after it, and the pages of the store.
MADE = {17: ("346ed4514b6475ea-10-41", 31, 41)}


def test_there_is_a_store_of_each_published_schema() -> None:
    assert {f"schema-{number}.sqlite.zst" for number in MADE} == {
        each.name for each in STORES.iterdir()
    }


@pytest.mark.parametrize("number", MADE)
def test_an_older_store_opens_with_all_that_it_holds(number: int, tmp_path: Path) -> None:
    cursor, since, pages = MADE[number]
    db = tmp_path / "crawl.db"
    packed = (STORES / f"schema-{number}.sqlite.zst").read_bytes()
    db.write_bytes(zstandard.decompress(packed))
    db.chmod(0o600)

    # Its sites are on loopback, which is not visited unasked.
    assert "no page could be fetched" in freshet("crawl", "--db", db, "--json").stderr
    assert as_json("status", "--db", db)["holdings"]["pages"] == pages
    entries = [json.loads(line) for line in shown("changefeed", "--db", db).splitlines()]
    assert len(entries) == pages + 1  # the last line is the cursor
    later = shown("changefeed", "--db", db, "--since", cursor).splitlines()
    assert len(later) == since + 1
    assert [json.loads(line)["id"] for line in later[:-1]] == [
        each["id"] for each in entries[-since - 1 : -1]
    ]
    (sound,) = (
        each for each in as_json("doctor", "--db", db)["findings"] if each["check"] == "store"
    )
    assert sound["status"] == "fine"
    assert newest() >= number
