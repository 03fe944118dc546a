"""``freshet doctor``: whether this machine, its settings and the store are fit for a crawl."""

from __future__ import annotations

import time
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from freshet.crawler.commands import running
from freshet.crawler.commands.checks import Finding, Standing, examine
from freshet.crawler.commands.console import print_json
from freshet.crawler.commands.display import show_line, show_list
from freshet.crawler.commands.options import DEFAULT_DB, ConfigFile, Db, Json, read_settings

_MARKS = {Standing.FINE: "ok", Standing.WARNING: "note", Standing.PROBLEM: "PROBLEM"}


def doctor_command(
    db: Db = DEFAULT_DB,
    thorough: Annotated[
        bool, typer.Option("--thorough", help="Also compare every index of the store; slow.")
    ] = False,
    config: ConfigFile = None,
    json: Json = False,
) -> None:
    """Check the store, the disk, the clock, DNS, the contact and the limits of this machine.

    Exit code 1 if there is a problem: something that a crawl would fail of, or lose data by.
    """
    settings, _ = read_settings(config, {})
    findings = running.run(examine(settings, db, time.time(), thorough=thorough))
    if json:
        print_json({"findings": [asdict(finding) for finding in findings]})
    else:
        _print(findings, db)
    if any(finding.standing is Standing.PROBLEM for finding in findings):
        raise typer.Exit(1)


def _print(findings: list[Finding], db: Path) -> None:
    show_list(
        f"Freshet on this machine, with {db}",
        ("check", "", "found"),
        [(each.check, _MARKS[each.standing], each.found) for each in findings],
    )
    advised = [each for each in findings if each.advice]
    if not advised:
        show_line("Nothing to do.", "green")
    for each in advised:
        show_line(f"{each.check}: {each.advice}", "yellow")
