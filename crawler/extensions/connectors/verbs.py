"""The verb of the connectors, as the help lists it."""

from collections.abc import Mapping
from typing import Final

from freshet.crawler.cli.verbs import Verb

VERBS: Final[Mapping[str, Verb]] = {
    "sync": Verb(
        "Export",
        "Keep an index elsewhere in step: its passages and vectors.",
        "freshet.crawler.extensions.connectors.cli.sync:sync_command",
        after="changefeed",
    )
}
