"""The console command ``freshet``: one verb, one file."""

from __future__ import annotations

from typing import Annotated

import typer

from crawler import __version__
from crawler.commands import (
    changes,
    check,
    config,
    crawl,
    diff,
    doctor,
    duplicates,
    explain,
    export,
    history,
    plan,
    simulate,
    status,
)

app = typer.Typer(
    name="freshet",
    help="A web crawler that knows when to come back.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    add_completion=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("crawl")(crawl.crawl_command)
app.command("status")(status.status_command)
app.command("changes")(changes.changes_command)
app.command("diff")(diff.diff_command)
app.command("history")(history.history_command)
app.command("explain")(explain.explain_command)
app.command("duplicates")(duplicates.duplicates_command)
app.command("export")(export.export_command)
app.command("check")(check.check_command)
app.command("doctor")(doctor.doctor_command)
app.command("plan")(plan.plan_command)
app.command("simulate")(simulate.simulate_command)
app.add_typer(config.app, name="config")


def _print_version(value: bool) -> None:
    if value:
        typer.echo(f"freshet {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """A web crawler that knows when to come back."""
