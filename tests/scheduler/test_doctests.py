"""The examples in the docstrings of the scheduler."""

import doctest
from importlib import import_module
from pkgutil import walk_packages

import pytest

from freshet import scheduler

MODULES = sorted(
    module.name
    for module in walk_packages(scheduler.__path__, "freshet.scheduler.")
    if not module.name.endswith("__main__")
)


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_are_right(name: str) -> None:
    assert doctest.testmod(import_module(name)).failed == 0


def test_the_modules_are_found() -> None:
    assert "freshet.scheduler.estimate.bayes" in MODULES
