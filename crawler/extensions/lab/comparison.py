"""Comparisons of policies on the past of a store, for ``freshet replay``."""

from collections.abc import Sequence
from pathlib import Path

from freshet.config.settings import Settings
from freshet.crawler.extensions.lab.counterfactual import (
    DEFAULT_POLICIES,
    as_json,
    ask,
    print_answer,
)
from freshet.crawler.extensions.lab.report import check_folders, write_folders
from freshet.crawler.run.hooks import ComparisonRequest
from freshet.crawler.run.terminal import print_json

__all__ = ["DEFAULT_POLICIES", "check", "compare"]


def check(plots: Path | None, parquet: Path | None) -> None:
    """Exit where the results could not be written."""
    check_folders(plots, parquet)


def compare(
    store: Path, policies: Sequence[str], settings: Settings, asked: ComparisonRequest
) -> None:
    """Compare policies on the past of a store; print the result, and write the files."""
    answer = ask(store, policies, asked.budgets, asked.shown, settings)
    if asked.json:
        print_json(as_json(answer))
    else:
        print_answer(answer)
    write_folders(answer, asked.plots, asked.parquet)
