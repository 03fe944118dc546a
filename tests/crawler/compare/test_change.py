"""The ladder of change detection."""

from freshet.crawler.compare.ladder import NOT_MODIFIED, Verdict, judge_body, judge_text
from freshet.storage.records import Digests
from freshet.storage.words import Kind, Rung

KNOWN = Digests(b"body", b"text")


def test_a_304_is_unchanged() -> None:
    assert Verdict(Kind.UNCHANGED, Rung.NOT_MODIFIED) == NOT_MODIFIED


def test_the_first_capture_is_new() -> None:
    assert judge_body(None, b"body") == Verdict(Kind.NEW)


def test_an_equal_body_decides_before_anything_is_parsed() -> None:
    assert judge_body(KNOWN, b"body") == Verdict(Kind.UNCHANGED, Rung.BODY)
    assert judge_body(KNOWN, b"other") is None


def test_an_equal_text_decides_before_the_last_sketch_is_read() -> None:
    assert judge_text(KNOWN, b"text") == Verdict(Kind.UNCHANGED, Rung.TEXT)
    assert judge_text(KNOWN, b"other") is None


def test_without_a_text_the_bytes_decide() -> None:
    assert judge_text(KNOWN, None) == Verdict(Kind.CHANGED, Rung.BODY)
    assert judge_text(Digests(b"body", None), b"text") == Verdict(Kind.CHANGED, Rung.BODY)
