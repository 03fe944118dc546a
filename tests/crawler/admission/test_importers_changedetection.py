"""What changedetection.io watches, and archives that would hurt who unpacks them."""

import io
import json
import zipfile
from contextlib import suppress
from pathlib import Path

import pytest

from freshet.crawler.admission import importers
from freshet.crawler.admission.importers import SkippedEntry, WatchedSite
from freshet.crawler.errors import UnreadableList

UUID = "6c2c7b1e-0d4c-4bb5-8d0e-0a1b2c3d4e5f"
OTHER = "7d3d8c2f-1e5d-4cc6-9e1f-1b2c3d4e5f60"


def watch(url: object = "https://example.org/", **said: object) -> dict[str, object]:
    return {
        "url": url, "title": None, "tags": [], "paused": False, "headers": {}, "body": None,
        "method": "GET", "fetch_backend": "system", "include_filters": [], "trigger_text": [],
        "notification_urls": [], "processor": "text_json_diff",
        "time_between_check": dict.fromkeys(("weeks", "days", "hours", "minutes", "seconds")),
    } | said  # fmt: skip


def store(*watches: dict[str, object]) -> bytes:
    watching = {f"{UUID[:-2]}{n:02}": each for n, each in enumerate(watches)}
    return json.dumps({"watching": watching, "settings": {}}).encode()


def backup(**members: bytes) -> io.BytesIO:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name.replace("__", "/").replace("_json", ".json"), data)
    file.seek(0)
    return file


def test_a_watch_gives_its_url_and_title() -> None:
    assert importers.read_json(store(watch(title="Home"))) == [
        WatchedSite("watch 1", "https://example.org/", "Home")
    ]


def test_an_interval_of_its_own_is_in_days_whatever_its_units() -> None:
    own = {"weeks": 1, "days": None, "hours": 12, "minutes": 0, "seconds": 0}
    (site,) = importers.read_json(store(watch(time_between_check=own)))
    assert isinstance(site, WatchedSite)
    assert site.days == pytest.approx(7.5)
    default = watch(time_between_check=own, time_between_check_use_default=True)
    (site,) = importers.read_json(store(default))
    assert isinstance(site, WatchedSite)
    assert site.days is None


def test_an_interval_that_is_none_is_not_said() -> None:
    for said in ({"hours": "3"}, {"hours": -1}, {"hours": 10**400}, {"hours": True}, "3h", None):
        (site,) = importers.read_json(store(watch(time_between_check=said)))
        assert isinstance(site, WatchedSite)
        assert site.days is None


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({"include_filters": ["#main"]}, "filters by CSS or XPath (see include in [[sites]])"),
        ({"trigger_text": ["sold out"]}, "conditions on the text"),
        ({"method": "POST"}, "headers, method, body or proxy"),
        ({"fetch_backend": "html_webdriver"}, "a browser that runs JavaScript"),
        ({"processor": "restock_diff"}, "prices and stock"),
        ({"notification_urls": ["mailto://x"]}, "notifications"),
        ({"tags": [UUID]}, "tags"),
        ({"time_schedule_limit": {"enabled": True}}, "hours of the day"),
        ({"url": "source:https://example.org/"}, "the source code instead of the text"),
    ],
)
def test_what_has_no_counterpart_is_named(said: dict[str, object], words: str) -> None:
    (site,) = importers.read_json(store(watch() | said))
    assert site == WatchedSite("watch 1", "https://example.org/", lost=(words,))


def test_what_is_not_watched_is_skipped_with_a_reason() -> None:
    watches = [watch(paused=True), watch("https://example.org/{{ now }}"), watch(None), {}]
    found = importers.read_json(store(*watches))
    assert [each.reason for each in found if isinstance(each, SkippedEntry)] == [
        "paused", "a template, not a URL", "it has no URL", "it has no URL"
    ]  # fmt: skip


def test_a_backup_gives_the_watches_of_either_layout() -> None:
    one = backup(**{"url-watches_json": store(watch("https://a.example/"))})
    each = backup(
        changedetection_json=b"{}",
        **{
            f"{UUID}__watch_json": json.dumps(watch("https://a.example/")).encode(),
            f"{OTHER}__watch_json": json.dumps(watch("https://b.example/")).encode(),
            f"{OTHER}__history.txt": b"1,2",
        },
    )
    assert importers.read_zip(one) == [WatchedSite("watch 1", "https://a.example/")]
    assert importers.read_zip(each) == [
        WatchedSite("watch 1", "https://a.example/"),
        WatchedSite("watch 2", "https://b.example/", lost=("snapshots",)),
    ]


def test_nothing_is_unpacked_to_anywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    evil = json.dumps(watch("https://evil.example/")).encode()
    names = ("..__..__watch_json", f"..__{UUID}__watch_json", "__tmp__evil__watch_json")
    file = backup(**dict.fromkeys(names, evil), **{"url-watches_json": store(watch())})
    assert importers.read_zip(file) == [WatchedSite("watch 1", "https://example.org/")]
    assert list(tmp_path.iterdir()) == []


def test_a_bomb_ends_at_the_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importers, "MAX_BYTES", 1024 * 1024)
    bomb = {"url-watches_json": b'{"watching": {}}' + b" " * (4 * 1024 * 1024)}
    # Many small ones come to as much.
    small = json.dumps(watch()).encode() + b" " * 300_000
    for members in (bomb, {f"{UUID[:-2]}{n:02}__watch_json": small for n in range(10)}):
        with pytest.raises(UnreadableList, match="unpack to more than 1 MiB"):
            importers.read_zip(backup(**members))


def test_packing_that_takes_any_amount_of_memory_is_refused() -> None:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_LZMA) as archive:
        archive.writestr("url-watches.json", store(watch()))
    with pytest.raises(UnreadableList, match="not packed with deflate"):
        importers.read_zip(file)


def test_a_damaged_or_foreign_zip_is_refused_in_a_sentence() -> None:
    whole = backup(**{"url-watches_json": store(watch())}).getvalue()
    for length in range(0, len(whole), 7):
        with pytest.raises(UnreadableList, match="ZIP"):
            importers.read_zip(io.BytesIO(whole[:length]))
    for place in range(len(whole)):
        data = bytearray(whole)
        data[place] ^= 0xFF
        # Whatever the byte meant, nothing but this comes out.
        with suppress(UnreadableList):
            assert len(importers.read_zip(io.BytesIO(data))) <= 1
    with pytest.raises(UnreadableList, match="no backup of changedetection"):
        importers.read_zip(backup(letter=b"Dear Sir"))


@pytest.mark.parametrize(
    "data",
    [b"{", b"[1]", b'{"a": 1}', b"\xff\xfe{", b'{"watching":' * 200_000, b'{"n": ' + b"1" * 9_999],
)
def test_json_that_is_no_store_is_refused_in_a_sentence(data: bytes) -> None:
    with pytest.raises(UnreadableList, match="JSON"):
        importers.read_json(data)


def test_a_list_has_a_url_a_line_with_its_tags_behind() -> None:
    data = b"https://a.example/\r\n\n# mine\nhttps://b.example/ news, law\n"
    assert importers.read_list(data) == [
        WatchedSite("line 1", "https://a.example/"),
        WatchedSite("line 4", "https://b.example/", lost=("tags",)),
    ]
