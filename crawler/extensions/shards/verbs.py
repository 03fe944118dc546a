"""The verb of shards, as the help lists it."""

from collections.abc import Mapping
from typing import Final

from freshet.crawler.cli.verbs import Verb

VERBS: Final[Mapping[str, Verb]] = {
    "shards": Verb(
        "Maintain",
        "Split, merge, verify or move the shards of a store.",
        "freshet.crawler.extensions.shards.cli.shards:shards_command",
        after="rereduce",
    )
}
