"""The verbs of alerts, as the help lists them."""

from collections.abc import Mapping
from typing import Final

from freshet.crawler.cli.verbs import Verb

_CLI: Final = "freshet.crawler.extensions.alerts.cli"
VERBS: Final[Mapping[str, Verb]] = {
    "watch": Verb(
        "Start",
        "Watch a page for a price, a number, a word or any change.",
        f"{_CLI}.watch:watch_command",
        after="daemon",
    ),
    "alerts": Verb(
        "Export",
        "Show alert rules and their messages; test or send them.",
        f"{_CLI}.alerts:alerts_command",
        after="changefeed",
    ),
}
