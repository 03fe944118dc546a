"""``freshet replay``: the past as a laboratory. Which policy would have kept me fresher?"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from freshet.crawler.commands import running
from freshet.crawler.commands.budget import crawls_per_day
from freshet.crawler.commands.console import fail, print_json
from freshet.crawler.commands.counterfactual import (
    DEFAULT_POLICIES,
    Question,
    ask,
    require_policies,
)
from freshet.crawler.commands.counterfactual_view import as_json, print_answer
from freshet.crawler.commands.laboratory.outputs import Outputs
from freshet.crawler.commands.options import ConfigFile, Json, read_settings
from freshet.crawler.commands.replay_report import fill, is_store, show, tell_losses
from freshet.scheduler.policy import PolicyError


def replay_command(  # noqa: PLR0913, PLR0917 - the options are the arguments
    past: Annotated[
        list[Path],
        typer.Argument(
            metavar="PAST…",
            help="A store with a past; or archives: WARC, WACZ, CDXJ, folders or lists of them.",
        ),
    ],
    db: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="The new store that the past is replayed into."),
    ] = None,
    policy: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME[:OPTION=VALUE,…]",
            help=f"What asks; may be repeated (default: {', '.join(DEFAULT_POLICIES)}).",
        ),
    ] = None,
    budget: Annotated[
        list[str] | None,
        typer.Option(
            metavar="N/day|N/hour",
            help="Fetches that may be spent; may be repeated (default: what the store spent).",
        ),
    ] = None,
    shown: Annotated[
        float,
        typer.Option(
            metavar="SHARE",
            min=0.0,
            max=0.9,
            help="Of the store's time: what all policies have seen before they are judged.",
        ),
    ] = 0.1,
    html: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write the answer there, too, as one page with charts."),
    ] = None,
    parquet: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Write the answer there, too, as Parquet tables."),
    ] = None,
    config: ConfigFile = None,
    json: Json = False,
) -> None:
    """Fill a store from archives or from another one; ask which policy would have kept it fresher.

    With --db every exchange of the archives goes through robots.txt, reading, detection and the
    store in the order of time, as if it were crawled; of a store, which is only read, every look
    whose body it keeps. What was killed goes on.

    With --policy, --budget, --html or --parquet, or without --db, the question is asked:

    Policies ask for pages day by day and get what the store saw last by then. They learn from
    nothing else, and find a page when the store did. What happened between two captures is not
    known: costs are ranges. Harmonic (each further missed change adds less) and binary (whether a
    copy is stale) are means over pages and days, weighted with importance.
    """
    settings, _ = read_settings(config, {})
    budgets = [crawls_per_day(text) for text in budget or []]
    policies = policy or DEFAULT_POLICIES
    store = past[0]
    with running.told_in_one_line():
        _check(past, policies)
        outputs = Outputs(html, parquet)
        outputs.check([*past, *([db] if db else [])])
        if db is not None:
            found = fill(db, past, settings)
            if not (policy or budgets or outputs):
                show(found, json=json)
                return
            tell_losses(found)
            store = db
        elif not is_store(store):
            fail("archives are replayed into a new store: name it with --db FILE", 2)
        question = Question(store, policies, budgets, shown, settings.daemon)
        try:
            answer = ask(question)
        except PolicyError as error:
            fail(str(error), 2)
        if json:
            print_json(as_json(answer))
        else:
            print_answer(answer)
        outputs.write(answer, config)


def _check(past: Sequence[Path], policies: Sequence[str]) -> None:
    """End, before any work, where a path or a name is wrong."""
    for path in past:
        if not path.exists():
            fail(f"{path}: no such file", 2)
        if len(past) > 1 and is_store(path):
            fail(f"{path}: is a store; one is asked or replayed alone", 2)
    try:
        require_policies(policies)
    except PolicyError as error:
        fail(str(error), 2)
