"""`freshet archive` as its user meets it."""

import json
from functools import partial
from pathlib import Path

import pytest

from freshet.crawler.archive.writer import Originals
from tests.console import as_json, freshet
from tests.crawler.archive.exchanges import fetched, whole
from tests.crawler.archive.test_writer_archive import write

archive = partial(freshet, "archive")


async def test_it_shows_what_an_archive_holds(tmp_path: Path) -> None:
    await write(tmp_path, fetched(), fetched())
    (file,) = whole(tmp_path)
    (found,) = as_json("archive", tmp_path)["files"]
    assert found == {
        "file": file.name, "bytes": file.stat().st_size, "responses": 1, "revisits": 1,
        "first": "20260101000000", "last": "20260101000000",
    }  # fmt: skip
    assert file.name in archive(tmp_path).stdout


async def test_an_index_and_a_package_take_the_place_of_those_before(tmp_path: Path) -> None:
    folder, index, package = tmp_path / "archive", tmp_path / "i.cdxj", tmp_path / "a.wacz"
    for number in range(2):
        await write(folder, fetched(url=f"http://{number}.localhost/"))
        result = archive(folder, "--cdxj", index, "--wacz", package)
        assert (result.exit_code, result.stdout) == (0, "")
        assert index.read_text().count("\n") == number + 1
    assert archive(folder, "--cdxj", "-").stdout == index.read_text()
    assert {path.name for path in tmp_path.iterdir()} == {"archive", "i.cdxj", "a.wacz"}


async def test_a_file_that_is_still_written_is_left_out_and_told(tmp_path: Path) -> None:
    await write(tmp_path, fetched())
    (file,) = whole(tmp_path)
    growing = tmp_path / "freshet-z.warc.gz.open"
    growing.write_bytes(file.read_bytes())
    writer = Originals(tmp_path)
    try:
        result = archive(tmp_path, "--json")
    finally:
        writer.close()
    assert len(json.loads(result.stdout)["files"]) == 1
    assert "1 file being written, left out" in result.stderr
    assert len(as_json("archive", tmp_path)["files"]) == 2
    assert not growing.exists()


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "there is no such file or folder"),
        ({}, "there are no WARC files"),
        ({"a.warc.gz": b"a text"}, "a.warc.gz: "),
    ],
)
def test_what_cannot_be_done_is_one_line(
    tmp_path: Path, content: dict[str, bytes] | None, words: str
) -> None:
    folder = tmp_path / "archive"
    if content is not None:
        folder.mkdir()
        for name, data in content.items():
            (folder / name).write_bytes(data)
    result = archive(folder)
    assert (result.exit_code, result.stdout) == (1, "")
    assert words in result.stderr
    assert result.stderr.count("\n") == 1
