"""The verbs of the console command; the module of a verb is imported on demand."""

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from typing import Annotated, Any, Final, NamedTuple

import typer
from typer.core import TyperArgument, TyperCommand, TyperGroup
from typer.main import get_command

from freshet import __version__
from freshet.entry_points import loaded

#: The core verbs by help group, each with the first line of its own help.
_GROUPS: Final[Mapping[str, Mapping[str, str]]] = {
    "Start": {
        "crawl": "Crawl sites politely and completely; record what changed.",
        "daemon": "Keep pages fresh within a budget of requests.",
        "import": "Turn the watch list of another program into a site list.",
        "serve": "Show the store in a browser, and answer programs over HTTP.",
    },
    "Look": {
        "status": "Show the daemon, the last run, the store, and waiting hosts.",
        "changes": "List what changed, newest first, one change a line.",
        "diff": "Show what changed between two versions of a page.",
        "history": "List every visit to a page and what it found, newest first.",
        "text": "Print the main content of a page.",
        "explain": "Show when a page is visited next, and why.",
        "signals": "Show who reports changes, and how reliably.",
        "duplicates": "List mirrors, printer versions and parameter variants.",
        "check": "Fetch a page now, show each step, and store nothing.",
    },
    "Export": {
        "changefeed": "Print what changed since a cursor, one JSON object a line.",
        "export": "Write pages, texts, changes, visits or links as a table.",
        "archive": "Show, index or package WARC archives.",
    },
    "Plan": {"replay": "Fill a store from archives, or compare policies on its past."},
    "Maintain": {
        "config": "Show the settings.",
        "reload": "Make the running daemon read its settings and sites again.",
        "backup": "Copy the store, even while it is written; check the copy.",
        "restore": "Restore a backup to --db, after checking it.",
        "gc": "Delete what the settings in [store] do not keep.",
        "forget": "Delete pages, with all that was learnt from them.",
        "rereduce": "Extract the texts of kept pages again, after an upgrade.",
        "doctor": "Check the store, disk, clock, DNS, contact and limits.",
    },
}

_VERBS: Final[Mapping[str, str]] = {
    verb: line for verbs in _GROUPS.values() for verb, line in verbs.items()
}

#: Entry points that add verbs: a dict of :class:`Verb` by name, in a module that imports little.
ADDED: Final = "freshet.verbs"


class Verb(NamedTuple):
    """A verb of an extension: its help group, the first line of its help, and its position.

    ``command`` is ``module:attribute``: a typer application, or a function for one. The help lists
    the verb behind the verb ``after``, or in front of ``before``, or at the end of its group.
    """

    group: str
    line: str
    command: str
    after: str = ""
    before: str = ""


@cache
def groups() -> Mapping[str, Mapping[str, str]]:
    """Return all verbs by help group, in order."""
    found = {group: dict(verbs) for group, verbs in _GROUPS.items()}
    for name, verb in _added().items():
        verbs = list(found.get(verb.group, {}).items())
        names = [each for each, _ in verbs]
        place = names.index(verb.before) if verb.before in names else len(verbs)
        place = names.index(verb.after) + 1 if verb.after in names else place
        if name not in names:
            found[verb.group] = dict([*verbs[:place], (name, verb.line), *verbs[place:]])
    return found


def lines() -> Mapping[str, str]:
    """Return the first help line of each verb."""
    return {verb: line for verbs in groups().values() for verb, line in verbs.items()}


@cache
def _added() -> Mapping[str, Verb]:
    found: dict[str, Verb] = {}
    for verbs in loaded(ADDED).values():
        found |= verbs
    return found


def _imported(verb: str) -> Any:
    """Import the module of a verb and return its command."""
    if verb in _VERBS:
        module, name = f"freshet.crawler.cli.{_WITH.get(verb, verb)}", f"{verb}_command"
    else:
        module, _, name = _added()[verb].command.partition(":")
    return getattr(import_module(module), name)


#: Key of a context for the verb and the arguments typed after it.
TYPED: Final = "freshet.typed"

#: Verbs in the module of another verb.
_WITH = {"reload": "daemon", "text": "history", "import": "import_sites", "restore": "backup"}


def _untyped(parameters: list[Any]) -> list[Any]:
    """Omit the types of flags and arguments from the help: users do not need them."""
    for each in parameters:
        if isinstance(each, TyperArgument) or getattr(each, "is_flag", False):
            each.display_type_rich = lambda **_: None
    return parameters


class _Verb(TyperCommand):
    def get_params(self, ctx: Any) -> list[Any]:
        return _untyped(super().get_params(ctx))

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        # Error messages may quote the command with another option.
        ctx.meta[TYPED] = [str(self.name), *args]
        return super().parse_args(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        # Catch errors of the store even while a result is printed.
        from freshet.crawler.run.terminal import told_in_one_line  # noqa: PLC0415 - the verb has it

        with told_in_one_line():
            return super().invoke(ctx)


class _Verbs(TyperGroup):
    def get_params(self, ctx: Any) -> list[Any]:
        return _untyped(super().get_params(ctx))


class _Unread(TyperCommand):
    """A verb whose module is imported only to run it, to complete it or to show its help."""

    def make_context(self, info_name: Any, *arguments: Any, **named: Any) -> Any:
        verbs: Any = get_command(application([str(self.name)]))
        return verbs.commands[self.name].make_context(info_name, *arguments, **named)


def application(arguments: list[str]) -> typer.Typer:
    """Return the command line program for these arguments.

    If the first argument is a verb, only its module is imported; else the program lists all verbs
    without their modules.
    """
    app = typer.Typer(
        name="freshet",
        cls=_Verbs,
        help="The web crawler that knows when to come back.",
        no_args_is_help=True,
        rich_markup_mode="markdown",
        add_completion=True,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_root)
    if not arguments or (arguments[0] not in _VERBS and arguments[0] not in _added()):
        for group, verbs in groups().items():
            for verb, line in verbs.items():
                app.command(verb, cls=_Unread, help=line, rich_help_panel=group)(lambda: None)
        return app
    verb = arguments[0]
    command = _imported(verb)
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
    """Accept the options in front of a verb."""
