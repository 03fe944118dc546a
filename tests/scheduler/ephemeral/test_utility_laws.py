import numpy as np
import pytest

from freshet.scheduler.ephemeral.sources import UtilityLaw, arriving
from tests.scheduler.ephemeral.tables import TABLE_1

LAWS = [
    UtilityLaw(),
    UtilityLaw("exponential"),
    UtilityLaw("lognormal", 0.8),
    UtilityLaw("pareto", 3.0),
]


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.family)
@pytest.mark.parametrize("together", [False, True])
def test_every_law_has_the_mean_u(law: UtilityLaw, together: bool) -> None:
    law = UtilityLaw(law.family, law.shape, together)
    drawn = arriving(TABLE_1, law, 4000, np.random.default_rng(1))
    error = drawn.std(axis=0) / 4000**0.5
    assert (np.abs(drawn.mean(axis=0) - TABLE_1.fresh) < 4 * error).all()


def test_items_that_share_a_draw_vary_as_it_does_and_others_hardly() -> None:
    apart, together = (
        arriving(TABLE_1, UtilityLaw("exponential", together=each), 4000, np.random.default_rng(1))
        for each in (False, True)
    )
    assert apart.std(axis=0) == pytest.approx(TABLE_1.fresh * (2 / 250) ** 0.5, rel=0.1)
    assert together.std(axis=0) == pytest.approx(TABLE_1.fresh, rel=0.1)


def test_the_same_seed_gives_the_same_periods() -> None:
    first, second = (
        arriving(TABLE_1, UtilityLaw("pareto", 2.0), 50, np.random.default_rng(8)) for _ in range(2)
    )
    assert (first == second).all()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"family": "normal"}, "family: is 'normal'; accepted are constant, exponential"),
        (
            {"family": "pareto", "shape": 1.0},
            "shape: is 1.0; accepted for pareto is a number",
        ),
        ({"shape": -1.0}, "shape: is -1.0"),
    ],
)
def test_bad_laws_are_refused(options: dict[str, object], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        UtilityLaw(**options)  # type: ignore[arg-type]
