"""Variants of a test: the first ones run always, the others with ``scripts/test --all``."""

from collections.abc import Iterable
from itertools import islice
from typing import Any

import pytest


def first(count: int, values: Iterable[Any]) -> list[Any]:
    """Return the values as parameters of a test; all but the first ``count`` are long."""
    each = iter(values)
    quick = list(islice(each, count))
    return [*quick, *(pytest.param(value, marks=pytest.mark.long) for value in each)]
