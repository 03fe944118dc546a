"""The relative times that a page is compared without are those of CLDR."""

from freshet.crawler.reduce.boilerplate import _RELATIVE, _RELATIVE_KEYS, is_stamp, relative_key
from freshet.crawler.reduce.page import parse
from scripts.relative_times import patterns


def test_the_file_is_what_the_script_writes() -> None:
    assert patterns() == _RELATIVE[: len(patterns())]


def test_what_libraries_write_is_sorted_and_not_in_the_other_file() -> None:
    others = _RELATIVE[len(patterns()) :]
    assert others == sorted(others)
    assert len(others) > 1_500
    assert {*map(relative_key, patterns())}.isdisjoint(map(relative_key, others))


def test_each_pattern_is_a_stamp_with_any_number() -> None:
    for number in ("1", "2", "12", "59", "٣", "１５", "३"):
        missed = [it for it in _RELATIVE if not is_stamp(it.replace("0", number))]
        assert missed == []


def test_the_core_asks_about_each_pattern() -> None:
    for number in ("1", "3", "47"):
        told = [text.replace("0", number) for text in _RELATIVE]
        body = f"<p>Kept.</p>{''.join(f'<p>{text}</p>' for text in told)}"
        assert parse(body.encode(), "http://h/", "text/html;charset=utf-8").blocks.texts == (
            "Kept.",
        )


def test_no_pattern_is_a_number_alone() -> None:
    assert _RELATIVE_KEYS.isdisjoint({"", "0"})
    assert not any(key.startswith("0") and len(key) < 3 for key in _RELATIVE_KEYS)
