import pytest

from freshet.crawler.synthetic_web.answers import UNCONDITIONAL, Conditions, is_current

NOON = "Thu, 01 Jan 1970 12:00:00 GMT"
NOON_AT = 43_200.0


def test_without_conditions_nothing_is_current() -> None:
    assert not is_current(UNCONDITIONAL, '"a"', NOON_AT)


@pytest.mark.parametrize(
    "value", ['"a"', 'W/"a"', '"x", "a"', '"x",W/"a" , "y"', "*", '"with, comma", "a"']
)
def test_tags_are_compared_weakly_and_in_lists(value: str) -> None:
    assert is_current(Conditions(none_match=value), '"a"', None)
    assert is_current(Conditions(none_match=value), 'W/"a"', None)


@pytest.mark.parametrize("value", ['"b"', "a", '"A"', ""])
def test_other_tags_are_not_current(value: str) -> None:
    assert not is_current(Conditions(none_match=value), '"a"', None)


def test_a_tag_goes_before_a_date() -> None:
    assert not is_current(Conditions('"old"', NOON), '"new"', NOON_AT)
    assert not is_current(Conditions('"old"', NOON), None, NOON_AT)


@pytest.mark.parametrize(("at", "current"), [(0.0, True), (NOON_AT, True), (NOON_AT + 1, False)])
def test_a_date_counts_to_the_second(at: float, current: bool) -> None:
    assert is_current(Conditions(None, NOON), None, at) is current


def test_a_date_that_cannot_be_read_does_not_count() -> None:
    assert not is_current(Conditions(None, "yesterday"), None, 0.0)
