"""Links in HTTP headers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from freshet.crawler.reduce.page import header_links


def test_each_link_has_its_target_and_parameters() -> None:
    header = '</a,b>; title="x, <y>; rel=no"; REL="Alternate"; crossorigin, < /c >;rel=next;rel=up'
    assert list(header_links([header, "</d>"])) == [
        ("/a,b", {"title": "x, <y>; rel=no", "rel": "Alternate", "crossorigin": ""}),
        ("/c", {"rel": "next"}),
        ("/d", {}),
    ]


@given(st.lists(st.text(alphabet='<>;,="\\ \trelhub/'), max_size=3))
def test_no_header_breaks_the_parser(headers: list[str]) -> None:
    assert all("<" not in target for target, _ in header_links(headers))


@pytest.mark.parametrize("bit", ["<", "<a>;", "<a>; rel", '<a>; rel="', ";\t", "<a> ; a=b"])
def test_of_a_header_without_end_the_beginning_is_read(bit: str) -> None:
    # One that were read to its end, in time that grows with its square, would take hours.
    found = list(header_links([f"<a>; rel=hub, {bit * 1_000_000}"] * 10))
    assert sum(said.get("rel") == "hub" for _, said in found) == 10
