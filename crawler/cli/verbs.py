"""The verbs of the console command: one verb, one file, imported on demand."""

from collections.abc import Mapping
from importlib import import_module
from typing import Annotated, Any, Final

import typer
from typer.core import TyperArgument, TyperCommand, TyperGroup
from typer.main import get_command

from freshet import __version__

#: Each verb and the first line of its help, in the order of the help.
VERBS: Final[Mapping[str, str]] = {
    "crawl": "Crawl sites politely and completely, and record what changed.",
    "daemon": "Keep pages fresh: fetch the most valuable page next, and learn how often each one "
    "changes.",
    "reload": "Let a running daemon take over another budget, policy, site list or importances.",
    "status": "Show the daemon, the last run, the contents of the store, and the hosts that wait.",
    "alerts": "Show the alert rules: alerts that wait, and messages pending, sent and given up.",
    "changes": "List what changed significantly, newest first, each change in one line.",
    "diff": "Show what changed between two stored versions of a page, block by block.",
    "history": "Show what every visit to a page found, newest first.",
    "text": "Print the main content of a page: the last significant version, or the one asked for.",
    "changefeed": "Print what changed since a cursor, one JSON object a line: each page once, by "
    "its last state.",
    "serve": "Show the store in a browser, and answer programs: the changefeed, documents, a feed.",
    "search": "Find the pages that hold these words, the best first, each with a part of its text.",
    "open": "Open a page of the last list that `freshet search` showed, and note that.",
    "opened": "Note what other programs showed and what was opened there, a list a line in JSON.",
    "explain": "Show the stored facts on a URL, its next visit, and the reasons.",
    "signals": "Show the sources of change signals, and how far the daemon believes them.",
    "check": "Fetch a page now and show the result of each step, and why. Nothing is stored.",
    "duplicates": "Show duplicate pages: mirrors, printer versions, parameter variants.",
    "discover": "Show which pages of a site reveal its new ones, and what they would have found "
    "before.",
    "export": "Write pages, observations, estimates or links as one table, for other programs.",
    "archive": "Show the contents of an archive, or index and package it for pywb and "
    "ReplayWeb.page.",
    "import": "Add the sites that another program watches to a site list.",
    "backup": "Copy the store while a crawl or a daemon writes it, and check the copy.",
    "restore": "Restore a backup to the store at --db, after checking it; never over a store in "
    "use.",
    "gc": "Delete what the settings in [store] do not keep.",
    "forget": "Forget pages: bodies, texts, versions, visits, links, alerts and what was learnt "
    "from them.",
    "rereduce": "Extract the main text of all pages again, with the current extraction and "
    "selectors.",
    "doctor": "Check the store, the disk, the clock, DNS, the contact and the limits of this "
    "machine.",
    "plan": "Divide a crawl budget among pages, and compare the policies.",
    "simulate": "Simulate policies on a random population, or with --web the daemon on a synthetic "
    "web.",
    "replay": "Fill a store from archives, or ask a store which policy would have kept it fresher.",
    "shards": "Change the number of shards of a store, check them, and move one of them.",
    "config": "Show the settings.",
}

#: Where a context keeps the verb and what was typed after it.
TYPED: Final = "freshet.typed"

#: Verbs that stand in the module of another one.
_WITH = {
    "reload": "daemon",
    "opened": "open",
    "text": "history",
    "import": "import_sites",
    "restore": "backup",
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

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        # An error may say the same command with another option.
        ctx.meta[TYPED] = [str(self.name), *args]
        return super().parse_args(ctx, args)


class _Verbs(TyperGroup):
    def get_params(self, ctx: Any) -> list[Any]:
        return _untyped(super().get_params(ctx))


class _Unread(TyperCommand):
    """A verb whose module is imported when it is run, completed or asked for its own help."""

    def make_context(self, info_name: Any, *arguments: Any, **named: Any) -> Any:
        verbs: Any = get_command(application([str(self.name)]))
        return verbs.commands[self.name].make_context(info_name, *arguments, **named)


def application(arguments: list[str]) -> typer.Typer:
    """Return the command line program for these arguments.

    The verb that they begin with is imported. Without one, all verbs are in it, unread.
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
    if not arguments or arguments[0] not in VERBS:
        for verb, line in VERBS.items():
            app.command(verb, cls=_Unread, help=line)(lambda: None)
        return app
    verb = arguments[0]
    module = import_module(f"freshet.crawler.cli.{_WITH.get(verb, verb)}")
    command = getattr(module, f"{verb}_command")
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
