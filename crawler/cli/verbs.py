"""The verbs of the console command: one verb, one file, imported on demand."""

from collections.abc import Mapping
from importlib import import_module
from typing import Annotated, Any, Final

import typer
from typer.core import TyperArgument, TyperCommand, TyperGroup

from freshet import __version__

#: Where each verb is, in the order of the help.
VERBS: Final[Mapping[str, str]] = {
    "crawl": "crawl.crawl_command",
    "daemon": "daemon.daemon_command",
    "reload": "daemon.reload_command",
    "status": "status.status_command",
    "alerts": "alerts.alerts_command",
    "changes": "changes.changes_command",
    "diff": "diff.diff_command",
    "history": "history.history_command",
    "text": "history.text_command",
    "changefeed": "changefeed.changefeed_command",
    "serve": "serve.serve_command",
    "explain": "explain.explain_command",
    "signals": "signals.signals_command",
    "check": "check.check_command",
    "duplicates": "duplicates.duplicates_command",
    "discover": "discover.discover_command",
    "export": "export.export_command",
    "archive": "archive.archive_command",
    "import": "import_sites.import_command",
    "backup": "backup.backup_command",
    "restore": "backup.restore_command",
    "gc": "gc.gc_command",
    "forget": "forget.forget_command",
    "rereduce": "rereduce.rereduce_command",
    "doctor": "doctor.doctor_command",
    "plan": "plan.plan_command",
    "simulate": "simulate.simulate_command",
    "replay": "replay.replay_command",
    "config": "config.app",
}


def _untyped(parameters: list[Any]) -> list[Any]:
    """Leave the types of flags and arguments, which say nothing to a user, out of the help."""
    for each in parameters:
        if isinstance(each, TyperArgument) or getattr(each, "is_flag", False):
            each.display_type_rich = lambda **_: None
    return parameters


class _Verb(TyperCommand):
    def get_params(self, ctx: Any) -> list[Any]:
        return _untyped(super().get_params(ctx))


class _Verbs(TyperGroup):
    def get_params(self, ctx: Any) -> list[Any]:
        return _untyped(super().get_params(ctx))


def application(arguments: list[str]) -> typer.Typer:
    """Return the command line program for these arguments.

    Only the verb that they name is imported, else all of them: the modules of `plan` take half a
    second that a crawl need not spend.
    """
    app = typer.Typer(
        name="freshet",
        cls=_Verbs,
        help="A web crawler that knows when to come back.",
        no_args_is_help=True,
        rich_markup_mode="markdown",
        add_completion=True,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_root)
    asked_for = arguments[:1] if arguments and arguments[0] in VERBS else VERBS
    for verb in asked_for:
        module, _, name = VERBS[verb].partition(".")
        command = getattr(import_module(f"freshet.crawler.cli.{module}"), name)
        if isinstance(command, typer.Typer):
            app.add_typer(command, name=verb, cls=_Verbs)
            for each in command.registered_commands:
                each.cls = _Verb
        else:
            app.command(verb, cls=_Verb)(command)
    return app


def _print_version(value: bool) -> None:
    if value:
        typer.echo(f"freshet {__version__}")
        raise typer.Exit


def _root(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """Accept the options that precede a verb."""
