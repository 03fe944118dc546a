"""The verbs of readers, as the help lists them."""

from collections.abc import Mapping
from typing import Final

from freshet.crawler.cli.verbs import Verb

_CLI: Final = "freshet.crawler.extensions.readers.cli.open"
VERBS: Final[Mapping[str, Verb]] = {
    "open": Verb(
        "Look",
        "Open a result of your last search, and note that you did.",
        f"{_CLI}:open_command",
        before="explain",
    ),
    "opened": Verb(
        "Look",
        "Note what people opened of lists that other programs showed.",
        f"{_CLI}:opened_command",
        before="explain",
    ),
}
