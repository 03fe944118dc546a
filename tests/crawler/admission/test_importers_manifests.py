"""Sitemaps on the disk, and indexes of them."""

import gzip

import pytest

from freshet.crawler.admission import importers
from freshet.crawler.admission.importers import Entry, SkippedEntry, WatchedSite
from freshet.crawler.errors import UnreadableList

NOT_HERE = "not beside the index, and nothing is fetched"


def sitemap(*urls: str) -> bytes:
    inner = "".join(f"<url><loc>{url}</loc></url>" for url in urls)
    return f"<urlset>{inner}</urlset>".encode()


def index(*urls: str) -> bytes:
    inner = "".join(f"<sitemap><loc>{url}</loc></sitemap>" for url in urls)
    return f"<sitemapindex>{inner}</sitemapindex>".encode()


def read(data: bytes, **files: bytes) -> list[Entry]:
    return importers.read_manifest(data, {k.replace("_", "."): v for k, v in files.items()}.get)


@pytest.mark.parametrize("packed", [False, True])
def test_a_sitemap_gives_its_pages_packed_or_not(packed: bool) -> None:
    data = sitemap("https://a.example/1", "https://a.example/2")
    assert read(gzip.compress(data) if packed else data) == [
        WatchedSite("entry 1", "https://a.example/1"),
        WatchedSite("entry 2", "https://a.example/2"),
    ]


def test_the_sitemaps_of_an_index_are_read_where_they_lie_beside_it() -> None:
    names = ("one.xml.gz", "two.xml?v=1", "")
    data = index(*(f"https://a.example/{name}" for name in names))
    found = read(data, one_xml_gz=gzip.compress(sitemap("https://a.example/1")))
    assert found == [
        WatchedSite("one.xml.gz, entry 1", "https://a.example/1"),
        SkippedEntry("sitemap 2", "https://a.example/two.xml?v=1", NOT_HERE),
        SkippedEntry("sitemap 3", "https://a.example/", NOT_HERE),
    ]


def test_no_name_leads_out_of_the_folder() -> None:
    asked: list[str] = []

    def beside(name: str) -> bytes | None:
        asked.append(name)
        return None

    names = ("..", ".hidden", "%2e%2e", "a%2fb", "ok.xml")
    urls = [f"https://a.example/x/{name}" for name in names]
    importers.read_manifest(index(*urls, "https://a.example/\\..\\x"), beside)
    assert asked == ["ok.xml"]


def test_an_index_in_an_index_is_not_followed() -> None:
    data = index("https://a.example/i.xml")
    assert read(data, i_xml=data) == [
        SkippedEntry("sitemap 1", "https://a.example/i.xml", "an index in an index")
    ]


def test_what_is_broken_is_told_beside_what_could_be_read() -> None:
    found = read(sitemap("https://a.example/1", "/relative") + b"<")
    assert found[0] == WatchedSite("entry 1", "https://a.example/1")
    reasons = [each.reason for each in found if isinstance(each, SkippedEntry)]
    assert len(reasons) == 2
    assert reasons[1] == "1 entries without a usable URL"


@pytest.mark.parametrize(
    "data",
    [b"", b"<html/>", b"\x1f\x8b\x08broken",
     b"<urlset>" + b"<a>" * 70 + b"<", b"<?xml version='1.0' encoding='hex'?><a/>"],
)  # fmt: skip
def test_what_is_no_sitemap_is_refused_in_a_sentence(data: bytes) -> None:
    with pytest.raises(UnreadableList, match="not a sitemap"):
        read(data)


def test_a_bomb_ends_at_the_bound_of_the_protocol() -> None:
    bomb = gzip.compress(sitemap("https://a.example/1")[:-9] + b" " * (60 * 1024 * 1024))
    assert read(bomb) == [
        WatchedSite("entry 1", "https://a.example/1"),
        SkippedEntry("the end", "", "the rest is longer than a sitemap may be"),
    ]
