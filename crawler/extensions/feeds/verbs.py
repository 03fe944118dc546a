"""The verb of the feeds, as the help lists it."""

from collections.abc import Mapping
from typing import Final

from freshet.crawler.cli.verbs import Verb

VERBS: Final[Mapping[str, Verb]] = {
    "feeds": Verb(
        "Export",
        "Make, list and revoke addresses of Atom feeds for feed readers.",
        "freshet.crawler.extensions.feeds.cli.feeds:feeds_command",
        after="changefeed",
    )
}
