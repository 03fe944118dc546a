"""The verb of searches, as the help lists it."""

from collections.abc import Mapping
from typing import Final

from freshet.crawler.cli.verbs import Verb

VERBS: Final[Mapping[str, Verb]] = {
    "search": Verb(
        "Look",
        "Find pages by their words, the best first.",
        "freshet.crawler.extensions.search.cli.search:search_command",
        after="text",
    )
}
