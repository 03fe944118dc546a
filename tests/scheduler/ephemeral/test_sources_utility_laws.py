import numpy as np
import pytest

from freshet.scheduler.ephemeral.sources import UtilityLaw

LAWS = [
    UtilityLaw(), UtilityLaw("exponential"), UtilityLaw("lognormal", 0.8),
    UtilityLaw("pareto", 3.0),
]  # fmt: skip


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.family)
def test_every_law_has_the_mean_1(law: UtilityLaw) -> None:
    drawn = law.draws(4000, np.random.default_rng(1))
    assert abs(drawn.mean() - 1) <= 4 * drawn.std() / 4000**0.5


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"family": "normal"}, "family: is 'normal'; accepted are constant, exponential"),
        ({"family": "pareto", "shape": 1.0}, "shape: is 1.0; accepted for pareto is a number"),
        ({"shape": -1.0}, "shape: is -1.0"),
    ],
)
def test_bad_laws_are_refused(options: dict[str, object], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        UtilityLaw(**options)  # type: ignore[arg-type]
