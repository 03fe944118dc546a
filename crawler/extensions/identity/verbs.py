"""The verbs of identity, as the help lists them."""

from collections.abc import Mapping
from typing import Final

from freshet.crawler.cli.verbs import Verb

VERBS: Final[Mapping[str, Verb]] = {
    "key": Verb(
        "Maintain",
        "Make, show and rotate the key that signs requests.",
        "freshet.crawler.extensions.identity.cli.key:key_command",
        after="config",
    ),
    "about": Verb(
        "Maintain",
        "Write a page about your crawler for webmasters.",
        "freshet.crawler.extensions.identity.cli.about:about_command",
        after="key",
    ),
}
