"""The index of an archive leads to each of its records, and its package holds all of it."""

import gzip
import io
import json
from hashlib import sha256
from pathlib import Path
from zipfile import ZIP_STORED, ZipFile

import pytest

from freshet.crawler.archive.cdxj import entries, write_cdxj, write_wacz
from freshet.crawler.errors import CrawlError
from tests.crawler.archive.archives import OK, record
from tests.crawler.archive.exchanges import START_AT, fetched, not_modified, whole
from tests.crawler.archive.test_writer_archive import write

PLAIN = ((b"Content-Type", b"text/plain"),)
ROBOTS = "http://news.localhost/robots.txt"


async def archived(folder: Path) -> list[Path]:
    robots = fetched(b"User-agent: *", url=ROBOTS, headers=PLAIN, accept="robots")
    await write(folder, robots, fetched(), fetched(at=START_AT + 5), not_modified())
    await write(folder, fetched(b"new", at=START_AT + 86_400))
    return whole(folder)


async def test_each_line_leads_to_its_record(tmp_path: Path) -> None:
    files, out = await archived(tmp_path), io.StringIO()
    assert write_cdxj(files, out) == 4
    lines = out.getvalue().splitlines()
    assert lines == sorted(lines)
    times, mimes = [], []
    for line in lines:
        key, timestamp, text = line.split(" ", 2)
        fields = json.loads(text)
        assert key == ")".join(
            ["localhost,news", fields["url"].removeprefix("http://news.localhost")]
        )
        start = int(fields["offset"])
        data = (tmp_path / fields["filename"]).read_bytes()[start : start + int(fields["length"])]
        record = gzip.decompress(data).decode()
        assert record.startswith("WARC/1.1\r\nWARC-Type: re")
        assert f"WARC-Target-URI: {fields['url']}\r\n" in record
        assert f"WARC-Payload-Digest: {fields['digest']}\r\n" in record
        times.append(timestamp)
        mimes.append(fields["mime"])
    assert times == ["20260101000000", "20260101000005", "20260102000000", "20260101000000"]
    assert mimes == ["text/html", "warc/revisit", "text/html", "text/plain"]


async def test_a_304_is_an_entry_but_not_in_the_index(tmp_path: Path) -> None:
    first, _ = await archived(tmp_path)
    assert [entry.status for entry in entries(first)] == ["200", "200", "200", "304"]


async def test_a_package_holds_files_index_and_pages_with_their_digests(tmp_path: Path) -> None:
    files, target = await archived(tmp_path), tmp_path / "a.wacz"
    write_wacz(files, target, software="Freshet", now=START_AT)
    with ZipFile(target) as package:
        assert package.testzip() is None
        assert {info.compress_type for info in package.infolist()} == {ZIP_STORED}
        manifest = json.loads(package.read("datapackage.json"))
        for resource in manifest["resources"]:
            data = package.read(resource["path"])
            assert len(data) == resource["bytes"]
            assert f"sha256:{sha256(data).hexdigest()}" == resource["hash"]
        told = json.loads(package.read("datapackage-digest.json"))
        assert told["hash"] == f"sha256:{sha256(package.read('datapackage.json')).hexdigest()}"
        pages = [json.loads(line) for line in package.read("pages/pages.jsonl").splitlines()]
        assert package.read(f"archive/{files[0].name}") == files[0].read_bytes()
    paths = [resource["path"] for resource in manifest["resources"]]
    named = [f"archive/{file.name}" for file in files]
    assert paths == [*named, "indexes/index.cdx", "pages/pages.jsonl"]
    assert manifest["wacz_version"] == "1.1.1"
    assert [page.get("ts") for page in pages] == [
        None, "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "content",
    [b"", b"a text\nof two lines\n", gzip.compress(b"a text", mtime=0)],
    ids=["empty", "text", "gzip"],
)
def test_what_is_no_archive_is_told_with_its_name(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "no.warc.gz"
    path.write_bytes(content)
    with pytest.raises(CrawlError, match=r"no\.warc\.gz: "):
        list(entries(path))


def test_names_and_digits_of_other_scripts_are_indexed(tmp_path: Path) -> None:
    (tmp_path / "a.warc").write_bytes(
        record("response", OK, url="http://bücher.test/", date="٣2026")
    )
    write_cdxj([tmp_path / "a.warc"], out := io.StringIO())
    assert out.getvalue().startswith("test,bücher)/ 2026 {")
