"""What a path given as an archive is."""

import gzip
import json
import zipfile
from pathlib import Path

import pytest

from freshet.crawler.archive.inputs import ArchiveFile, inputs_of
from freshet.crawler.errors import CrawlError
from tests.crawler.archive.archives import Read, gzipped, page


def test_a_folder_gives_its_archives_by_name_and_each_counts_once(tmp_path: Path) -> None:
    for name in ("b/2.warc.gz", "b/1.warc", "a.warc.gz.open", "notes.txt"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(gzipped(page(1)))
    found = inputs_of([tmp_path, tmp_path / "b"])
    names = ["a.warc.gz.open", "b/1.warc", "b/2.warc.gz"]
    assert found == [ArchiveFile(tmp_path / name) for name in names]


def test_a_list_names_archives_from_its_folder(tmp_path: Path) -> None:
    (tmp_path / "1.warc.gz").write_bytes(gzipped(page(1)))
    (tmp_path / "paths").write_text("# Common Crawl\n\ncrawl-data/CC-MAIN/warc/1.warc.gz\n")
    (tmp_path / "lists").write_text(f"{tmp_path}/paths\n")
    assert inputs_of([tmp_path / "lists"]) == [ArchiveFile(tmp_path / "1.warc.gz")]


def lines(*captures: tuple[str, int, int | None]) -> bytes:
    text = ""
    for name, offset, length in captures:
        fields = {"url": "http://a.test/", "filename": name, "offset": str(offset)}
        if length is not None:
            fields["length"] = str(length)
        text += f"test,a)/ 20260301120000 {json.dumps(fields)}\n"
    return text.encode()


@pytest.mark.parametrize("compressed", [True, False])
def test_of_an_archive_with_an_index_only_what_is_listed_is_read(
    tmp_path: Path, compressed: bool
) -> None:
    stored = [gzipped(page(number)) for number in range(5)]
    starts = [sum(map(len, stored[:number])) for number in range(5)]
    (tmp_path / "archive").mkdir()
    (tmp_path / "indexes").mkdir()
    (tmp_path / "archive/1.warc.gz").write_bytes(b"".join(stored))
    listed = lines(
        ("1.warc.gz", starts[3], len(stored[3])),
        ("1.warc.gz", starts[1], None),
        ("1.warc.gz", starts[2] + 5, 20),
    )
    path = tmp_path / "indexes/index.cdxj"
    path.write_bytes(gzip.compress(listed) if compressed else listed)
    assert inputs_of([path]) == [ArchiveFile(path, is_list=True)]
    read = Read(tmp_path, path)
    assert read.urls == ["http://a.test/1", "http://a.test/3"]
    assert [(each.offset, each.flaw) for each in read.damages] == [(starts[2] + 5, "damaged")]
    assert Read(tmp_path, path, tmp_path / "archive").urls == [
        f"http://a.test/{n}" for n in range(5)
    ]


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("a.txt", b"Dear diary,\n...", r"a\.txt: neither an .*; it begins 'Dear diary,'"),
        ("a.warc", b"Dear diary", r"a\.warc: neither an archive nor a list"),
        ("a.arc.gz", gzip.compress(b"filedesc://a.arc 0", mtime=0), "ARC and classic CDX are not"),
        ("a.png", b"\x89PNG\0\1\2\xff", r"a\.png: neither an archive"),
        ("list", b"1.warc.gz\n", r"list: line 1: no file '1\.warc\.gz'"),
        ("list", b"# x\nhttps://data.test/1.warc.gz\n", r"line 2: no file .*; download it first"),
        ("a.cdxj", b'a 20260301 {"url": "x"}\n', r"a\.cdxj: line 1: no capture with filename"),
        ("a.cdxj", lines(("no.warc.gz", 1, 1)), r"a\.cdxj: line 1: no file 'no\.warc\.gz'"),
        ("a.wacz", b"PK\3\4oops", r"a\.wacz: not a readable WACZ"),
    ],
)  # fmt: skip
def test_what_is_no_archive_is_said_in_one_line(
    tmp_path: Path, name: str, data: bytes, message: str
) -> None:
    path = tmp_path / name
    path.write_bytes(data)
    with pytest.raises(CrawlError, match=message) as caught:
        Read(tmp_path, path)
    assert "\n" not in str(caught.value)


def test_missing_files_and_folders_without_archives_are_told_of(tmp_path: Path) -> None:
    with pytest.raises(CrawlError, match="nothing: No such file"):
        inputs_of([tmp_path / "nothing"])
    with pytest.raises(CrawlError, match=r"the folder holds no archive \(\*\.warc,"):
        inputs_of([tmp_path])


def test_a_wacz_must_hold_archives_as_they_are(tmp_path: Path) -> None:
    path = tmp_path / "a.wacz"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("archive/a.warc.gz", gzipped(page(1)))
    with pytest.raises(CrawlError, match=r"archive/a\.warc\.gz is compressed within the ZIP"):
        inputs_of([path])
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("datapackage.json", "{}")
    with pytest.raises(CrawlError, match=r"a\.wacz: the ZIP holds no WARC"):
        inputs_of([path])


def test_a_damaged_archive_is_still_one_by_its_name(tmp_path: Path) -> None:
    whole, damaged = tmp_path / "a.warc.gz", tmp_path / "b.warc.gz"
    whole.write_bytes(gzipped(page(1)))
    damaged.write_bytes(b"\0\xff" * 50 + gzipped(page(2)))
    read = Read(tmp_path, whole, damaged)
    assert read.urls == ["http://a.test/1"]
    (damage,) = read.damages
    assert str(damage) == f"{damaged}: at byte 0: no WARC record begins here"
