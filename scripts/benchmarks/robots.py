"""How many of the RFC-labelled cases of Google's robots.txt tests hold, and how fast.

Prints one JSON object: the cases, how many pass here and with protego, each miss with its
explanation, and for a file of 200 rules the milliseconds to read it and judge a first URL
and the microseconds to judge another (the best of five rounds).
"""

from __future__ import annotations

import json
import timeit
from collections.abc import Callable
from pathlib import Path
from typing import Any

from protego import Protego

from freshet.crawler import robots
from scripts.benchmarks.command import arguments, finish

CASES = (
    Path(__file__).parents[2] / "tests" / "crawler" / "robots" / "data" / "robots_rfc_cases.json"
)
AGENT = "freshet"
URL = "https://example.org/articles/2030/01/a-story-of-some-length.html?page=2"
RULES = "User-agent: *\n" + "".join(
    f"Disallow: /*/print-{n}/*.pdf$\n"
    if n % 10 == 0
    else f"Disallow: /section-{n}/{'x' * (n % 37)}\n"
    for n in range(200)
)


def passes(case: dict[str, Any]) -> bool:
    """Whether Freshet's verdict is the expected one."""
    verdict = robots.allowed(case["robots_txt"].encode(), case["user_agent"], case["url"])
    return verdict == bool(case["allowed"])


def protego_passes(case: dict[str, Any]) -> bool:
    """Whether protego's verdict is the expected one."""
    verdict = Protego.parse(case["robots_txt"]).can_fetch(case["url"], case["user_agent"])
    return bool(verdict) == bool(case["allowed"])


def best_s(work: Callable[[], object], number: int) -> float:
    """Seconds for one call, the best of five rounds."""
    return min(timeit.repeat(work, number=number, repeat=5)) / number


def speed() -> dict[str, float]:
    """What the file of 200 rules costs."""
    ours, theirs = robots.parse(RULES.encode()), Protego.parse(RULES)
    return {
        "parse_ms": round(1e3 * best_s(lambda: robots.allowed(RULES.encode(), AGENT, URL), 20), 3),
        "check_us": round(1e6 * best_s(lambda: ours.allows(AGENT, URL), 5_000), 2),
        "protego_parse_ms": round(
            1e3 * best_s(lambda: Protego.parse(RULES).can_fetch(URL, AGENT), 5), 3
        ),
        "protego_check_us": round(1e6 * best_s(lambda: theirs.can_fetch(URL, AGENT), 200), 2),
    }


def main() -> None:
    """Run the cases and the clock."""
    options = arguments(__doc__).parse_args()
    cases = json.loads(CASES.read_text("utf-8"))["cases"]
    misses = [case for case in cases if not passes(case)]
    result: dict[str, object] = {
        "cases": len(cases),
        "passed": len(cases) - len(misses),
        "protego_passed": sum(map(protego_passes, cases)),
        "misses": [{"explanation": None} | case for case in misses],
        "rules_200": speed(),
    }
    finish(result, options.output)
