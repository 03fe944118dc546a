import pytest

from freshet.scheduler.policy import given


def make(
    share: float = 0.5, floor: int = 1, heed: bool = False, crawling: str = "poisson"
) -> tuple[object, ...]:
    return share, floor, heed, crawling


def nothing() -> None:
    return


@pytest.mark.parametrize("text", ["", ","])
def test_no_text_is_no_option(text: str) -> None:
    assert given(make, text) == {}
    assert given(nothing, text) == {}


def test_values_have_the_type_of_the_default() -> None:
    found = given(make, "share=1e-3,floor=3,heed=true,crawling=periodic")
    assert found == {"share": 1e-3, "floor": 3, "heed": True, "crawling": "periodic"}
    assert [type(value) for value in found.values()] == [float, int, bool, str]


def test_a_whole_number_is_accepted_where_the_default_has_a_fraction() -> None:
    (value,) = given(make, "share=1").values()
    assert value == 1
    assert type(value) is float


def test_what_is_given_can_be_passed_on() -> None:
    assert make(**given(make, "heed=false,share=0.25")) == (0.25, 1, False, "poisson")  # type: ignore[arg-type]


def test_only_the_first_equals_sign_separates() -> None:
    assert given(make, "crawling=a=b") == {"crawling": "a=b"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("shar=1", "option 'shar=1' is not known; accepted are share=…, floor=…, heed=…, crawl"),
        ("share", "option 'share' is not known; accepted are share=…"),
        ("share=0.2,,Share=1", "option 'Share=1' is not known"),
        ("share=", "share is ''; accepted is a number"),
        ("share=half", "share is 'half'; accepted is a number"),
        ("floor=1.5", "floor is '1.5'; accepted is a number"),
        ("heed=True", "heed is 'True'; accepted are true and false"),
        ("heed=", "heed is ''; accepted are true and false"),
    ],
)
def test_what_is_not_accepted_is_told_by_name(text: str, message: str) -> None:
    with pytest.raises(ValueError, match="accepted") as caught:
        given(make, text)
    assert str(caught.value).startswith(message)


def test_where_there_are_no_options_none_are_accepted() -> None:
    with pytest.raises(ValueError, match="option 'share=1' is not known; accepted are none"):
        given(nothing, "share=1")
