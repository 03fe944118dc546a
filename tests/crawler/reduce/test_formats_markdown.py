"""Markdown is read as a page: its title, its links and its text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from freshet.crawler.reduce.document import document
from freshet.crawler.reduce.formats import as_shown, format_of, is_relabelled
from freshet.crawler.reduce.page import ParsedPage, parse
from freshet.crawler.reduce.parser_process import Parser
from freshet.storage.records import FetchResult

URL = "https://h.example/docs/page.md"
TYPE = "text/markdown; charset=utf-8"


def read(text: str) -> ParsedPage:
    return parse(text.encode(), URL, TYPE)


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("# Fish\n\nSwim.", "Fish"),
        ("Fish\n====\n\nSwim.", "Fish"),
        ("# Fish `and` *chips*\n", "Fish and chips"),
        ("# [Fish](/fish)\n", "Fish"),
        ("## Second\n\n# First\n", "First"),
        ("---\ntitle: Fish\nlayout: x\n---\n# Other\n", "Fish"),
        ('---\r\nlayout: x\r\ntitle: "Fish: swim"\r\n---\r\nText\r\n', "Fish: swim"),
        ("---\ntitle: 'Fish'\n...\nText\n", "Fish"),
        ('+++\ntitle = "Fish"\n+++\nText\n', "Fish"),
        ("\ufeff---\ntitle: Fish\n---\n", "Fish"),
        ("---\nlayout: x\n---\n# Fish\n", "Fish"),
        ("# Fish & \\<chips>\n", "Fish & <chips>"),
        ("---\n\n# Fish\n\n---\n", "Fish"),
    ],
)
def test_the_title_is_that_of_front_matter_or_the_first_heading(text: str, title: str) -> None:
    page = read(text)
    assert page.title == title
    assert "layout: x" not in page.blocks.texts
    assert document(text.encode(), URL, TYPE).title == title


def test_without_a_heading_there_is_no_title() -> None:
    assert read("## Section\n\nText").title is None


@pytest.mark.parametrize(
    ("text", "target"),
    [
        ("See [b](b.md).", "/docs/b.md"),
        ('See [b](b.md "B").', "/docs/b.md"),
        ("See [b](<b c.md>).", "/docs/b%20c.md"),
        ("See [b].\n\n[b]: /b\n", "/b"),
        ("See [this][b].\n\n[b]: <../b>\n", "/b"),
        ("See <https://h.example/b>.", "/b"),
        ("- item\n  - [b](/b): about it\n", "/b"),
        ("| a | b |\n|---|---|\n| 1 | [b](/b) |\n", "/b"),
        ("## On [b](/b)\n", "/b"),
        ("[![logo](l.png)](/b)\n", "/b"),
        ('<a href="/b">b</a>\n', "/b"),
        ("> quoted: [b](/b?x=1&y=2)\n", "/b?x=1&y=2"),
    ],
)
def test_links_are_found(text: str, target: str) -> None:
    assert f"https://h.example{target}" in read(f"# Page\n\n{text}\n").links.urls


@pytest.mark.parametrize("text", ["`[b](/b)`", "    [b](/b)", "```\n[b](/b)\n```", r"\[b](/b)"])
def test_code_has_no_links(text: str) -> None:
    assert read(f"# Page\n\n{text}\n").links.urls == ()


def test_a_list_of_links_is_the_content_of_its_page() -> None:
    text = "# Docs\n\n> All pages.\n\n## Guides\n\n" + "".join(
        f"- [Guide {n}](/guides/{n}): about {n} things\n" for n in range(30)
    )
    assert len(read(text).blocks.texts) == 33
    made = document(text.encode(), URL, TYPE)
    assert made.html.count("<li>") == 30


def test_long_text_is_shown_as_it_is() -> None:
    text = "# Page\n\nSee [b](/b).\n" + "word " * 300_000
    assert read(text).is_plain


@given(st.text(alphabet="ab\n\r -+=#*_[]()<>!|`~:&;\\\"'\t\x00\u2028ä", max_size=60))
def test_any_text_is_read(text: str) -> None:
    for start in ("", "---\n", "+++\ntitle = "):
        read(start + text)


# -- what is Markdown --------------------------------------------------------------


def result(url: str, content_type: str, body: bytes = b"# Fish\n") -> FetchResult:
    headers = ((b"Content-Type", content_type.encode()),) if content_type else ()
    return FetchResult(
        url, "fetched", status=200, headers=headers, body=body, started_at=0.0, duration_s=0.0
    )


@pytest.mark.parametrize(
    ("url", "content_type", "is_markdown"),
    [
        ("https://h.example/llms.txt", "text/plain", True),
        ("https://h.example/docs/llms-full.txt", "text/plain; charset=utf-8", True),
        ("https://h.example/README.md", "TEXT/PLAIN", True),
        ("https://h.example/a.markdown?raw=1#b", "text/plain", True),
        ("https://h.example/page", "text/markdown", True),
        ("https://h.example/page", "text/x-markdown", True),
        ("https://h.example/page.md", "text/html", False),
        ("https://h.example/page.md", "", False),
        ("https://h.example/notes.txt", "text/plain", False),
        ("https://h.example/?f=a.md", "text/plain", False),
        ("https://h.example/.md", "text/plain", False),
        ("https://h.example/my-llms.txt", "text/plain", False),
    ],
)
def test_plain_text_with_a_name_of_markdown_is_markdown(
    url: str, content_type: str, is_markdown: bool
) -> None:
    came = result(url, content_type)
    label = as_shown(came, 1_000).header("Content-Type")
    assert (format_of(label).label == "text/markdown") is is_markdown
    assert is_relabelled(came) is (is_markdown and "plain" in content_type.lower())


def test_a_text_that_was_plain_before_is_not_compared() -> None:
    parser = Parser()
    assert parser.text_version(URL, "text/plain") != parser.text_version(URL, TYPE)
