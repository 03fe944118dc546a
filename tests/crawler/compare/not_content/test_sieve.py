"""Nearly every page passes without being weighed."""

import pytest

from freshet.crawler.compare.not_content.cues import MOST_BLOCKS, is_short, tells


def test_only_pages_of_few_words_are_weighed_more_where_content_was() -> None:
    long = ["long " * 200] * 5
    assert is_short(["short"])
    assert not is_short(long)
    assert is_short(long, had_content=True)
    assert not is_short(["x"] * (MOST_BLOCKS + 1))


@pytest.mark.parametrize(
    ("title", "text", "body"),
    [
        ("Page not found", "", b""),
        (None, "Diese Seite existiert leider nicht.", b""),
        (
            None,
            "\u304a\u63a2\u3057\u306e\u30da\u30fc\u30b8\u306f\u898b\u3064\u304b\u308a\u307e\u305b\u3093",
            b"",
        ),
        ("Hello", "Welcome", b"<input type=PASSWORD>"),
        (None, "", b"<script src=/challenge.js></script>"),
    ],
)
def test_a_word_or_the_markup_may_tell(title: str | None, text: str, body: bytes) -> None:
    assert tells(title, [text], body)


def test_an_ordinary_note_tells_nothing() -> None:
    assert not tells("Opening hours", ["We bake bread from six in the morning."], b"<p>We bake")
