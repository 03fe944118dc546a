"""``freshet serve``: serve a store over HTTP."""

import asyncio
import secrets
import signal
from pathlib import Path
from typing import Annotated

import typer

from freshet import __version__
from freshet.config.loading import SettingsSource
from freshet.config.settings import Settings
from freshet.crawler.cli.config import write_settings
from freshet.crawler.cli.options import DEFAULT_DB, ConfigFile, Db, Logs, read_settings, tell_down
from freshet.crawler.read.api import StoreApi, pages_of
from freshet.crawler.run import terminal
from freshet.crawler.run.logs import configure_logging
from freshet.crawler.run.terminal import say
from freshet.crawler.service.http import Health, HttpServer, listening
from freshet.crawler.service.logins import hashed
from freshet.crawler.service.metrics import process_metrics
from freshet.storage.database import open_store
from freshet.storage.errors import StoreError
from freshet.storage.stores import open_stores

#: The default address.
LISTEN = "127.0.0.1:8080"


def serve_command(
    db: Db = DEFAULT_DB,
    listen: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS:PORT",
            help=f"Address to listen on; default: operation.listen, else {LISTEN}. Other than "
            "loopback addresses need operation.token.",
        ),
    ] = None,
    login: Annotated[
        bool,
        typer.Option(
            "--login",
            help="Print a link that logs in once. If operation.token is empty, also make and print "
            "a token, and store its hash in the settings file.",
        ),
    ] = False,
    log_format: Logs = None,
    config: ConfigFile = None,
) -> None:
    """Show the store in a browser, and answer programs over HTTP.

    After a login, the browser manages sites, crawls and settings. A daemon with --listen serves the
    same. /v1/openapi.json describes the interface for programs. Ctrl-C stops it.
    """
    given = {"operation.listen": listen, "operation.log_format": log_format}
    settings, _ = read_settings(config, given)
    if not settings.operation.listen:
        given["operation.listen"] = LISTEN
        settings, _ = read_settings(config, given)
    source = SettingsSource(config, given)
    if login and not settings.operation.token:
        with terminal.told_in_one_line():
            _make_token(source.file)
        settings, _ = read_settings(config, given)
    configure_logging(settings.operation.log_format, verbose=False)
    terminal.run(_serve(db, settings, source, login=login))


def _make_token(file: Path) -> None:
    """Print a new token, and store its hash in the settings file."""
    token = secrets.token_hex(32)
    write_settings(file, {"operation.token": hashed(token)}, mode=0o600)
    say("token:", "green", f"{token} (keep it: {file} has only its hash)")


async def _serve(db: Path, settings: Settings, source: SettingsSource, *, login: bool) -> None:
    async def health() -> Health:
        stores = open_stores(db)
        try:
            await stores.readable()
        except StoreError as error:
            return [str(error)], told
        return [f"shard {shard}: {why}" for shard, why in stores.down.items()], told

    told = {"state": "serving", "version": __version__}
    if login and not db.exists():
        # Sites are added in the browser.
        await (await open_store(db, owner="serve")).close()
        say("store:", "green", f"{db} is new and empty")
    stores = open_stores(db)
    await stores.readable()
    tell_down(db, stores.down)
    operation = settings.operation
    api = StoreApi(db, settings, source=source)
    server = HttpServer(
        operation, health, process_metrics(__version__), pages=pages_of(api, settings)
    )
    ended = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, ended.set)
    try:
        url = await listening(server, operation)
        say("listening:", "green", url)
        if login:
            place = server.login_place().removeprefix("/")
            say("log in once:", "green", f"{url}{place} (for ten minutes)")
        await ended.wait()
    finally:
        await server.close()
        await api.close()
