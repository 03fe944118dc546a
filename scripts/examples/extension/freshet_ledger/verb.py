"""The verb ``freshet ledger``."""

from freshet.crawler.cli.options import DEFAULT_DB, Db
from freshet.crawler.run import terminal
from freshet_ledger.status import visits


def ledger_command(db: Db = DEFAULT_DB) -> None:
    """Show how often each page was visited."""
    terminal.print_json(terminal.run(visits(db)))
