"""A site list keeps what it says, and gives what was added to it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from freshet.crawler.admission.importers import Entry, SkippedEntry, WatchedSite, merged, page
from freshet.crawler.admission.site_lists import read_sites
from freshet.crawler.errors import UnreadableList
from freshet.crawler.urls import canonical

NAMES = st.text(max_size=40) | st.sampled_from(
    ["url, site", "#", 'a "b', "x\n# y", "\x1b[31m", ","]
)
PATHS = st.text("abcXYZ019%/#?&=;,\"'~", max_size=12)
SITES = st.lists(
    st.builds(lambda p, n: WatchedSite("", f"https://one.example/{p}", n), PATHS, NAMES)
)
LISTS = st.sampled_from(
    [
        ("sites.txt", b""),
        ("sites.txt", b"# mine\none.example # the first\n\nbad line here\nhttp://two.example/"),
        ("sites.txt", b"\xef\xbb\xbfone.example\r\n"),
        ("sites.csv", b""),
        ("sites.csv", b"# only a remark\n"),
        ("sites.csv", b"url,importance\nhttps://one.example/,3\n# no\n"),
        ("weights.txt", b"name;URL;importance\r\nOne;one.example;3"),
        ("sites.tsv", b"title\tlink\n"),
    ]
)


def urls(data: bytes, name: str) -> list[str]:
    return [canonical(seed.url) for seed in read_sites(data, name).seeds]


@given(LISTS, SITES)
def test_what_was_there_stays_what_came_is_read_and_twice_is_once(
    case: tuple[str, bytes], sites: list[WatchedSite]
) -> None:
    name, old = case
    found = merged(old, name, sites)
    assert found.data.startswith(old)
    wanted = {page(site.url) for site in found.sites}
    assert urls(found.data, name)[: len(urls(old, name))] == urls(old, name)
    added = {page(site.url) for site in found.added}
    assert set(urls(found.data, name)) == set(urls(old, name)) | added
    assert len(read_sites(found.data, name).problems) == len(read_sites(old, name).problems)
    again = merged(found.data, name, sites)
    assert (again.data, again.added) == (found.data, ())
    assert {page(site.url) for site in again.sites} == wanted


def test_a_line_without_a_scheme_is_known_by_either() -> None:
    entries = [WatchedSite("1", "http://one.example/"), WatchedSite("2", "https://one.example")]
    assert merged(b"one.example\n", "sites.txt", entries).added == ()


def test_names_become_remarks_or_cells() -> None:
    sites = [WatchedSite("1", "https://one.example/", "The\nfirst, # of all")]
    assert merged(b"", "a.txt", sites).data == b"https://one.example/  # The first, # of all\n"
    assert merged(b"", "a.csv", sites).data == (
        b'url,importance,name\nhttps://one.example/,,"The first, # of all"\n'
    )


def test_what_is_no_url_is_skipped_with_the_words_of_site_lists() -> None:
    entries: list[Entry] = [
        WatchedSite("job 1", "ftp://a.example/"),
        WatchedSite("job 2", "/etc/passwd"),
        SkippedEntry("3", "", "x"),
    ]
    found = merged(b"", "a.txt", entries)
    assert [each.where for each in found.skipped] == ["job 1", "job 2", "3"]
    assert found.data == b""


@pytest.mark.parametrize(
    ("name", "old"),
    [("a.txt", b"<opml/>"), ("a.txt", b"\0\1"), ("a.csv", b"a,b\n1,2\n"),
     ("a.csv", b'url,importance\n"https://open.example/,1\n')],
)  # fmt: skip
def test_a_list_that_cannot_take_lines_is_refused(name: str, old: bytes) -> None:
    with pytest.raises(UnreadableList):
        merged(old, name, [WatchedSite("1", "https://one.example/")])
