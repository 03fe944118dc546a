"""The verb of the server for assistants, as the help lists it."""

from collections.abc import Mapping
from typing import Final

from freshet.crawler.cli.verbs import Verb

VERBS: Final[Mapping[str, Verb]] = {
    "mcp": Verb(
        "Start",
        "Let assistants read the store, by the Model Context Protocol.",
        "freshet.crawler.extensions.mcp.cli.mcp:mcp_command",
        after="serve",
    )
}
