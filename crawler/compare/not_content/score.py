"""The probability that a page is no content: a logistic regression.

The weights stand in ``weights.json``, which ``scripts/fit_not_content`` makes from real pages. They
are calibrated for short pages of which one in twenty is none. An unknown feature has no weight.
"""

import json
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from math import exp
from typing import Final

#: From this probability on a page is doubtful: one in fifty of the real pages is that nothing was
#: fitted on.
DOUBTFUL_FROM: Final = 0.25


@cache
def _weights() -> dict[str, float]:
    text = (files(__package__) / "weights.json").read_text("utf-8")
    return {name: float(weight) for name, weight in json.loads(text).items()}


def probability(features: Mapping[str, float]) -> float:
    """Return the probability that a page with these features is no content."""
    weights = _weights()
    odds = weights["intercept"]
    odds += sum(weights.get(name, 0.0) * value for name, value in features.items())
    return 1.0 / (1.0 + exp(-max(-30.0, min(30.0, odds))))
