"""A store whose versioned bytes are not read is refused before any work, in one line."""

import asyncio
from pathlib import Path

import pytest

from freshet.crawler.reduce.sketch import PLAIN_VERSION, VERSION, sketch
from freshet.storage.database import open_store
from tests.console import freshet
from tests.storage.crawl_store import writing
from tests.storage.sketched_store import sketched_store
from tests.storage.small_store import HOST

LOCAL = "http://127.0.0.1:2/x"
READERS = (
    ["crawl", LOCAL, "--allow-private-addresses"],
    ["check", LOCAL, "--allow-private-addresses"],
    ["duplicates", "--update"],
)


def store(path: Path, *formats: int) -> Path:
    """A store with a page for each of these formats of sketches."""

    async def fill() -> None:
        async with sketched_store(path) as filled:
            for n, number in enumerate(formats):
                written = sketch([f"the words of page {n}"]).to_bytes()
                filled.page(f"/{n}", bytes([number]) + written[1:])

    asyncio.run(fill())
    return path


@pytest.mark.parametrize("formats", [(1,), (2,), (2, VERSION)])
@pytest.mark.parametrize("arguments", READERS, ids=lambda arguments: arguments[0])
def test_sketches_of_before_are_refused_where_they_are_compared(
    tmp_path: Path, arguments: list[str], formats: tuple[int, ...]
) -> None:
    db = store(tmp_path / "old.db", *formats)
    result = freshet(*arguments, "--db", db)
    assert result.exit_code == 1
    assert result.stderr == (
        f"freshet: {db}: its sketches are of format {formats[0]}, older than the "
        f"{PLAIN_VERSION} that this Freshet reads; crawl into a new file (--db), this one can "
        "still be read\n"
    )
    assert result.stdout == ""


def test_sketches_of_a_later_freshet_are_refused(tmp_path: Path) -> None:
    db = store(tmp_path / "new.db", VERSION, VERSION + 1)
    result = freshet("duplicates", "--update", "--db", db)
    assert result.exit_code == 1
    assert f"format {VERSION + 1}, newer than the {VERSION}" in result.stderr
    assert result.stderr.endswith("upgrade Freshet\n")


@pytest.mark.parametrize(
    ("table", "what"),
    [("memory (page_id, data)", "memories"), ("not_content (host_id, data)", "not_content")],
)
def test_so_are_memories_and_block_pages(tmp_path: Path, table: str, what: str) -> None:
    async def spoil() -> None:
        database = await open_store(db)
        with writing(database) as connection:
            connection.execute(f"INSERT INTO {table} VALUES (1, x'00ff')")
        await database.close()

    db = store(tmp_path / "old.db", VERSION)
    asyncio.run(spoil())
    result = freshet("duplicates", "--update", "--db", db)
    assert f"{what} are of format 0" in result.stderr


@pytest.mark.parametrize("arguments", [["duplicates"], ["status"], ["history", f"{HOST}/0"]])
def test_what_compares_nothing_still_answers(tmp_path: Path, arguments: list[str]) -> None:
    db = store(tmp_path / "old.db", 2)
    result = freshet(*arguments, "--db", db)
    assert result.exit_code == 0, result.stderr


def test_what_this_freshet_wrote_it_reads(tmp_path: Path) -> None:
    db = store(tmp_path / "own.db", VERSION)
    assert freshet("duplicates", "--update", "--db", db).exit_code == 0
