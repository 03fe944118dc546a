"""OPML outlines, and XML that would hurt who expands it."""

import pytest

from freshet.crawler.admission import importers
from freshet.crawler.admission.importers import SkippedEntry, WatchedSite
from freshet.crawler.errors import UnreadableList

OUTLINE = b"""<?xml version="1.0" encoding="UTF-8"?>
<opml version="2.0"><head><title>Feeds</title></head><body>
<outline text="News"><outline text="Deep &amp; nested">
<outline type="rss" text="One" xmlUrl="https://a.example/feed" htmlUrl="https://a.example/"/>
<outline type="rss" title="Two" xmlUrl="https://b.example/feed" category="/x"/>
</outline></outline>
<outline type="link" text="Three" url="https://c.example/"/>
<outline type="rss" text="Four"/>
</body></opml>"""


def test_nested_outlines_give_pages_and_where_there_is_none_feeds() -> None:
    assert importers.read_opml(OUTLINE) == [
        WatchedSite("line 4", "https://a.example/", "One"),
        WatchedSite("line 5", "https://b.example/feed", "Two", lost=("categories",)),
        WatchedSite("line 7", "https://c.example/", "Three"),
        SkippedEntry("line 8", "Four", "of type rss, without a URL"),
    ]


def test_no_entity_is_ever_declared() -> None:
    laughs = "".join(
        f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' if n else '<!ENTITY l0 "lol">' for n in range(10)
    )
    bomb = f'<!DOCTYPE opml [{laughs}]><opml><body><outline text="&l9;"/></body></opml>'
    for data in (bomb, '<!DOCTYPE opml SYSTEM "file:///etc/passwd"><opml/>'):
        with pytest.raises(UnreadableList, match="document type declaration"):
            importers.read_opml(data.encode())


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", " "), (b"<opml>", " "), (b"<rss/>", " "), (b"<opml>&x;</opml>", " "),
        (b"<urlset><url><loc>http://a.test/</loc></url></urlset>", " "),
        (b'<?xml version="1.0" encoding="zz"?><opml/>', " "),
        (b"<opml>" + b"<outline>" * 200_000, "nested too deeply"),
        (b"<opml>" + b" " * 20_000_000, "larger than 16 MiB"),
    ],
    ids=lambda given: str(given[:9]),
)  # fmt: skip
def test_what_is_no_outline_is_refused_in_a_sentence(data: bytes, message: str) -> None:
    with pytest.raises(UnreadableList, match=message):
        importers.read_opml(data)
