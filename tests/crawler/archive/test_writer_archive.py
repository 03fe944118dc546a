"""An archive on the disk: rotated, flushed, killed, full, and written by one alone."""

import errno
import os
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from uuid import RFC_4122, UUID

import pytest

from freshet.crawler.archive import warc
from freshet.crawler.archive.warc import OPEN, WireExchange
from freshet.crawler.archive.writer import NAME, ArchiveWriter
from freshet.crawler.errors import ArchiveInUse, ArchiveUnwritable
from tests.crawler.archive.exchanges import (
    START_AT,
    check,
    fetched,
    kinds,
    not_modified,
    read,
    whole,
)

ONE = ["request", "response", "metadata"]
AGAIN = ["request", "revisit", "metadata"]


def opened(folder: Path, max_file_bytes: int = 10**9) -> ArchiveWriter:
    fields = (("software", "Freshet"),)
    return ArchiveWriter(folder, fields, max_file_bytes=max_file_bytes, now=lambda: START_AT)


@asynccontextmanager
async def archive(folder: Path, max_file_bytes: int = 10**9) -> AsyncIterator[ArchiveWriter]:
    made = opened(folder, max_file_bytes)
    try:
        yield made
    finally:
        await made.close()


async def write(folder: Path, *entries: WireExchange) -> None:
    async with archive(folder) as made:
        for entry in entries:
            made.add(entry)


async def test_what_is_flushed_can_be_read_while_the_file_still_grows(tmp_path: Path) -> None:
    async with archive(tmp_path) as made:
        made.add(fetched())
        assert whole(tmp_path) == list(tmp_path.glob(f"*{OPEN}")) == []
        await made.flush()
        (path,) = tmp_path.glob(f"*{OPEN}")
        assert kinds(path) == ["warcinfo", *ONE]
    (path,) = whole(tmp_path)
    assert kinds(path) == ["warcinfo", *ONE]
    assert check([path]) == 0


async def test_records_are_named_by_random_uuids(tmp_path: Path) -> None:
    await write(tmp_path, *(fetched(url=f"http://a.localhost/{n}") for n in range(20)))
    (path,) = whole(tmp_path)
    named = [record.headers["WARC-Record-ID"] for record in read(path)]
    ids = [UUID(name.removeprefix("<urn:uuid:").removesuffix(">")) for name in named]
    assert named == [f"<urn:uuid:{each}>" for each in ids]
    assert {(each.version, each.variant) for each in ids} == {(4, RFC_4122)}
    assert len(set(ids)) == 61
    # Four values of the two bits behind the variant: chance misses one once in 10^7.
    assert {each.clock_seq_hi_variant >> 4 for each in ids} == {8, 9, 10, 11}


async def test_nothing_to_keep_makes_no_file(tmp_path: Path) -> None:
    await write(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [NAME]


async def test_a_file_that_is_full_is_followed_by_another(tmp_path: Path) -> None:
    noise = random.Random(1)
    async with archive(tmp_path, max_file_bytes=5_000) as made:
        for number in range(6):
            made.add(fetched(noise.randbytes(3_000), url=f"http://a.localhost/{number}"))
            await made.flush()
    files = whole(tmp_path)
    assert [kinds(path) for path in files] == [["warcinfo", *ONE, *ONE]] * 3
    assert [read(path)[0].headers["WARC-Filename"] for path in files] == [p.name for p in files]
    assert check(files) == 0


async def test_a_later_crawl_refers_to_what_an_earlier_one_wrote(tmp_path: Path) -> None:
    await write(tmp_path, fetched())
    await write(tmp_path, fetched(at=START_AT + 60), not_modified(at=START_AT + 90))
    first, second = whole(tmp_path)
    assert kinds(second) == ["warcinfo", *AGAIN, *AGAIN]
    original = read(first)[2].headers["WARC-Record-ID"]
    revisits = [r for r in read(second) if r.kind == "revisit"]
    assert [r.headers["WARC-Refers-To"] for r in revisits] == [original] * 2


@pytest.mark.parametrize("lost", ["file", "index", "end"])
async def test_a_revisit_never_points_outside_its_archive(tmp_path: Path, lost: str) -> None:
    await write(tmp_path, fetched())
    (first,) = whole(tmp_path)
    if lost == "file":
        first.unlink()
    elif lost == "index":
        (tmp_path / NAME).write_bytes(b"no database at all" * 100)
    else:
        os.truncate(first, 900)
    await write(tmp_path, fetched(at=START_AT + 60))
    assert kinds(whole(tmp_path)[-1]) == ["warcinfo", *ONE]


@pytest.mark.parametrize("index_is_lost", [False, True])
async def test_what_a_kill_leaves_is_cut_to_whole_records_and_closed(
    tmp_path: Path, index_is_lost: bool
) -> None:
    await write(tmp_path, fetched(), fetched(b"other", url="http://b.localhost/"))
    (path,) = whole(tmp_path)
    size = path.stat().st_size
    killed = path.rename(tmp_path / path.name.replace(".gz", ".gz.open"))
    with killed.open("ab") as file:
        file.write(killed.read_bytes()[:50])
    if index_is_lost:
        (tmp_path / NAME).unlink()
    await write(tmp_path)
    assert whole(tmp_path) == [path]
    assert path.stat().st_size == size


async def test_the_open_files_of_other_programs_are_left_alone(tmp_path: Path) -> None:
    theirs = tmp_path / "WEB-20260101-00001.warc.gz.open"
    theirs.write_bytes(b"half a member")
    await write(tmp_path, fetched())
    assert theirs.read_bytes() == b"half a member"


async def test_what_was_written_after_the_last_note_of_it_is_kept(tmp_path: Path) -> None:
    await write(tmp_path, fetched())
    index = (tmp_path / NAME).read_bytes()
    (path,) = whole(tmp_path)
    grown = tmp_path / path.name.replace(".gz", ".gz.open")
    member = warc.member(b"WARC/1.1\r\nContent-Length: 0\r\n\r\n\r\n\r\n")
    grown.write_bytes(path.read_bytes() + member)
    path.unlink()
    (tmp_path / NAME).write_bytes(index)
    await write(tmp_path)
    assert path.read_bytes().endswith(member)


class Disk:
    """Writes that fail half-way while it is full."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.is_full = False
        self._pwrite = os.pwrite
        monkeypatch.setattr(os, "pwrite", self.pwrite)

    def pwrite(self, file: int, data: memoryview, at: int) -> int:
        if not self.is_full:
            return self._pwrite(file, data, at)
        if len(data) > 100:
            return self._pwrite(file, data[:100], at)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


async def test_on_a_full_disk_nothing_is_lost_and_nothing_is_torn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = Disk(monkeypatch)
    async with archive(tmp_path) as made:
        made.add(fetched())
        await made.flush()
        disk.is_full = True
        made.add(fetched(at=START_AT + 1))
        made.add(fetched(b"other", url="http://b.localhost/"))
        for _ in range(2):
            with pytest.raises(ArchiveUnwritable, match="the disk is full"):
                await made.flush()
        (path,) = tmp_path.glob(f"*{OPEN}")
        assert kinds(path) == ["warcinfo", *ONE]
        disk.is_full = False
        await made.flush()
    (path,) = whole(tmp_path)
    assert [kind for kind in kinds(path) if kind != "warcinfo"] == [*ONE, *AGAIN, *ONE]
    assert check([path]) == 0


async def test_a_file_that_cannot_be_closed_costs_nothing_that_is_in_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(*_: object) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    async with archive(tmp_path, max_file_bytes=1) as made:
        made.add(fetched())
        await made.flush()
        made.add(fetched(at=START_AT + 1))
        with monkeypatch.context() as patched:
            patched.setattr(os, "ftruncate", failing)
            with pytest.raises(ArchiveUnwritable, match="Input/output error"):
                await made.flush()
        await made.flush()
        assert [len(read(path)) for path in tmp_path.glob(f"*{OPEN}")] == [4, 4]
    await write(tmp_path)
    assert sorted(kinds(path)[2] for path in whole(tmp_path)) == ["response", "revisit"]


async def test_an_archive_has_one_writer(tmp_path: Path) -> None:
    async with archive(tmp_path):
        with pytest.raises(ArchiveInUse):
            opened(tmp_path)
    async with archive(tmp_path):
        pass


async def test_other_descriptions_are_written_where_they_begin_to_hold(tmp_path: Path) -> None:
    async with archive(tmp_path) as made:
        made.add(fetched())
        await made.flush()
        made.describe((("software", "Freshet"), ("freshet-seeds", "[]")))
        made.add(fetched(b"other"))
    (path,) = whole(tmp_path)
    assert kinds(path) == ["warcinfo", *ONE, "warcinfo", *ONE]
    assert "freshet-seeds" in read(path)[4].fields
