"""The verbs of the laboratory, as the help lists them."""

from collections.abc import Mapping
from typing import Final

from freshet.crawler.cli.verbs import Verb

_CLI: Final = "freshet.crawler.extensions.lab.cli"
VERBS: Final[Mapping[str, Verb]] = {
    "plan": Verb(
        "Plan", "Divide a budget among pages, and compare policies.", f"{_CLI}.plan:plan_command"
    ),
    "simulate": Verb(
        "Plan",
        "Simulate policies, or the daemon on a synthetic web.",
        f"{_CLI}.simulate:simulate_command",
    ),
    "discover": Verb(
        "Plan",
        "Show which pages of a site reveal its new pages.",
        f"{_CLI}.discover:discover_command",
    ),
}
