"""Steps of ``freshet check`` by alert rules with a condition."""

from collections.abc import Sequence

from freshet.config.settings import Settings
from freshet.crawler.cli.check import parsed_page
from freshet.crawler.extensions.alerts.rules import condition_of, matching
from freshet.crawler.extensions.alerts.settings import Alerts
from freshet.crawler.reduce.parser_process import Parser, Unparsable
from freshet.crawler.run.hooks import FetchedPage


async def watched(
    parser: Parser, settings: Settings, page: FetchedPage
) -> Sequence[tuple[str, str, str]]:
    """Return a step for each rule with a condition that asks for this page."""
    alerts, steps = settings.group(Alerts), list[tuple[str, str, str]]()
    for rule, asks in zip(alerts.rules, matching(alerts), strict=True):
        condition = condition_of(rule)
        if condition is None or not asks.pattern.fullmatch(page.url):
            continue
        texts = page.texts
        if condition.hints is not None:
            parsed = await parsed_page(parser, page.result, condition.hints)
            texts = [] if isinstance(parsed, Unparsable) else list(parsed.blocks.texts)
        answer = "nothing there" if condition.hints and not texts else ""
        steps.append((f"alert {rule.name}", answer, condition.on(texts)))
    return steps
