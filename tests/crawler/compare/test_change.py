"""The ladder of change detection."""

from freshet.crawler.compare.ladder import Verdict, judge_text
from freshet.storage.entries import Kind, Rung
from freshet.storage.records import Digests

KNOWN = Digests(b"body", b"text")


def test_an_equal_text_decides_before_the_last_sketch_is_read() -> None:
    assert judge_text(KNOWN, b"text") == Verdict(Kind.UNCHANGED, Rung.TEXT)
    assert judge_text(KNOWN, b"other") is None


def test_without_a_text_the_bytes_decide() -> None:
    assert judge_text(KNOWN, None) == Verdict(Kind.CHANGED, Rung.BODY)
    assert judge_text(Digests(b"body", None), b"text") == Verdict(Kind.CHANGED, Rung.BODY)
