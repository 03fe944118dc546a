"""Which place became which in a rebuild."""

import pytest

from freshet.crawler.compare.detection import new_names
from freshet.crawler.compare.history import Layout


def layout(*blocks: tuple[int, int]) -> Layout:
    return Layout.made([place for place, _ in blocks], [digest for _, digest in blocks])


OLD = layout((1, 10), (1, 11), (2, 20), (3, 30))


@pytest.mark.parametrize(
    ("new", "names"),
    [
        # The blocks that stayed tell.
        (layout((7, 10), (7, 11), (8, 20), (9, 30)), {1: 7, 2: 8, 3: 9}),
        # Where no block stayed, the gap between those that did tells.
        (layout((7, 10), (7, 11), (8, 99), (9, 30)), {1: 7, 2: 8, 3: 9}),
        (layout((7, 10), (7, 11), (8, 20), (9, 99)), {1: 7, 2: 8, 3: 9}),
        # A gap of another length tells nothing.
        (layout((7, 10), (7, 11), (8, 98), (8, 99), (9, 30)), {1: 7, 3: 9}),
        # Places that both texts have keep their names.
        (OLD, {}),
        (layout((1, 10), (2, 20), (2, 21)), {}),
        # No two places become one.
        (layout((7, 10), (7, 11), (7, 20), (7, 30)), {1: 7}),
    ],
)
def test_places_that_a_rebuild_renamed_are_known(new: Layout, names: dict[int, int]) -> None:
    assert new_names(OLD, new) == names
