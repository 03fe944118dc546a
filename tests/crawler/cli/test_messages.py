"""Errors end with what to do: the command, the setting or the file to change."""

import zipfile
from pathlib import Path

import pytest

from tests.console import freshet


@pytest.fixture(autouse=True)
def there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files that are not what they should be, in the working directory."""
    monkeypatch.chdir(tmp_path)
    for name, data in {
        "latin.toml": b"# caf\xe9",
        "cut.toml": b"[crawl]\nmax_pages =\n",
        "useless.toml": b"sites = [{match = 'a.example', password = 'me'}]",
        "latin.csv": b"url,change_rate\nhttps://a.example/caf\xe9,1\n",
        "twice.csv": b"url,url,change_rate\n",
        "watched.json": b"{}",
        "cut.json": b'{"watching": ',
        "odd.txt": b"ftp://a.example/\n",
        "list.xml": b"<opml><body/></opml>",
        "text.warc": b"Dear diary",
        "far.txt": b"https://a.example/a.warc.gz\n",
        "lost.cdxj": b'org,a)/ 20260101000000 {"filename": "a.warc", "offset": "0"}\n',
        "short.cdxj": b'org,a)/ 20260101000000 {"url": "https://a.example/"}\n',
        "old.arc": b"filedesc://a.arc 0.0.0.0 20260101000000 text/plain 9\n",
        "split/shards.toml": b"shards = ",
        "urls.txt": b"https://a.example/\n",
    }.items():
        Path(name).parent.mkdir(exist_ok=True)
        Path(name).write_bytes(data)
    with zipfile.ZipFile("empty.wacz", "w") as package:
        package.writestr("datapackage.json", "{}")
    Path("folder").mkdir()


_REPLAY = "replay {} --db new.db"


@pytest.mark.parametrize(
    ("typed", "ends"),
    [
        ("crawl 127.0.0.1:1 --resume --new", "give --resume or --new, not both"),
        ("crawl --sites none.txt", "No such file or directory; check its name"),
        ("crawl --sites folder", "name a file, not a folder"),
        ("crawl --sites odd.txt --strict", "correct it, or leave out --strict"),
        ("crawl 127.0.0.1:1 --config none.toml", "check its path and permissions"),
        ("crawl 127.0.0.1:1 --config latin.toml", "save it as UTF-8"),
        ("crawl 127.0.0.1:1 --config cut.toml", "correct it there"),
        ("crawl 127.0.0.1:1 --config useless.toml", "does nothing without user; set both"),
        ("check http://", "write it as example.org or https://example.org/page"),
        ("plan --budget 9/day --sources latin.csv", "save it as UTF-8"),
        ("plan --budget 9/day --sources twice.csv", "leave one"),
        ("plan --budget 9/day --sources none.csv", "check its name"),
        ("plan --budget 9/day --sources twice.csv --output folder/a.csv/b.csv", "or name another"),
        ("simulate --learn --web news", "leave it out"),
        ("import none.json --into list.txt", "check its name"),
        ("import cut.json --into list.txt", "export it again, or name another file"),
        ("import urls.txt --into list.xml", "name a text or CSV with --into"),
        ("archive text.warc", "leave it out"),
        (_REPLAY.format("folder"), "name another"),
        (_REPLAY.format("far.txt"), "download it first"),
        (_REPLAY.format("lost.cdxj"), "put it beside the list"),
        (_REPLAY.format("short.cdxj"), "`freshet archive --cdxj` writes such a list"),
        (_REPLAY.format("old.arc"), "convert it to WARC or CDXJ"),
        (_REPLAY.format("empty.wacz"), "name another file"),
        ("backup copy.db --db none.db", "--db names the store"),
        ("restore folder --db new.db", "name a store or a backup"),
        ("changefeed --cursor-file folder --db none.db", "name a file, not a folder"),
        ("duplicates --threshold 0.5 --db none.db", "add --update"),
        ("forget --prefix ftp://a --db none.db", "such as https://example.org/docs/"),
        ("shards verify --db split", "restore it from a backup"),
    ],
)
def test_an_error_ends_with_what_to_do(typed: str, ends: str) -> None:
    result = freshet(*typed.split())
    assert result.exit_code in {1, 2}
    (line,) = result.stderr.splitlines()
    assert line.startswith("freshet: ")
    assert line.endswith(ends)
