"""``freshet reload``: tell the daemon of a store to read its settings and site list again."""

from __future__ import annotations

import os
import signal

from freshet.crawler.commands.console import fail
from freshet.crawler.commands.display import show_line
from freshet.crawler.commands.options import DEFAULT_DB, Db
from freshet.storage.database import owner_of


def reload_command(db: Db = DEFAULT_DB) -> None:
    """Let a running daemon take over another budget, policy, site list or importances.

    It follows them if all of them can be followed, or else says why not, and goes on as before.
    What was given on its command line stays.
    """
    owner = owner_of(db)
    if owner is None or owner[0] != "daemon":
        fail(f"{db}: no daemon is running on it")
    os.kill(owner[1], signal.SIGHUP)
    show_line(f"process {owner[1]} was told; its log says what became of it")
