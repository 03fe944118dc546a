"""The page of alert rules: their states, tests and repeats, and new rules with a preview."""

import re
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import count, pairwise
from pathlib import Path
from typing import Any, Final

from aiohttp import web
from pydantic import ValidationError

from freshet.config.settings import Settings
from freshet.crawler.admission.site_lists import spellings
from freshet.crawler.errors import CrawlError, UsageError
from freshet.crawler.extensions.alerts import tables
from freshet.crawler.extensions.alerts.cli.alerts import RuleStatus, rule_statuses, send_test
from freshet.crawler.extensions.alerts.receivers import LOG
from freshet.crawler.extensions.alerts.rules import (
    Condition,
    channels,
    condition_of,
    in_words,
    receiver,
)
from freshet.crawler.extensions.alerts.settings import AlertRuleSettings, Alerts
from freshet.crawler.extensions.dashboard.request import DashboardRequest
from freshet.crawler.fetch.addresses import CachingResolver
from freshet.crawler.frontier.clock import SteadyClock
from freshet.crawler.read import documents
from freshet.crawler.read.documents import Documents
from freshet.crawler.read.library import asking, noting
from freshet.crawler.run.terminal import counted
from freshet.storage.database import write_beside
from freshet.storage.queries import page
from freshet.storage.queries.page import StoredVersion

#: Versions of a page on which a rule is tried.
_TRIED: Final = 10
_KINDS: Final[Mapping[str, str]] = {
    "changed gone": "a page changes, or is gone",
    "changed new gone": "a page changes, is new or gone",
    "new": "a page is new", "gone": "a page is gone",
}  # fmt: skip
_MODES: Final[Mapping[str, str]] = {
    "immediate": "at once", "hourly": "once an hour", "daily": "once a day",
}  # fmt: skip
#: The keys of a rule that select its alerts; the preview has them in its URL.
_ASKED: Final = ("match", "kinds", "appears", "vanishes", "below", "above", "number", "within")
_NUMBERS: Final = frozenset({"below", "above"})


class AlertsPage:
    """The alert rules of the settings, and their messages."""

    path, label, template = "/alerts", "Alerts", "alerts.html"

    def __init__(self, _db: Path, _settings: Settings) -> None:
        """Show the rules of the store that is asked for."""
        self.routes: Sequence[web.AbstractRouteDef] = []
        #: The receiver's answer to the last test message of a rule.
        self._tested = dict[str, str]()

    async def shown(self, asked: DashboardRequest) -> Mapping[str, object]:
        """Return the rules with the states of their messages, and a new rule as typed."""
        found, down = await asked.library.each(lambda _: asking(tables.counts))
        typed = {name: asked.query.get(name, "").strip() for name in _ASKED}
        given = typed["match"] != ""
        return {
            "rules": [(it, _state(it)) for it in rule_statuses(found.values(), asked.settings)],
            "tested": self._tested, "down": down, "typed": typed, "kinds": _KINDS, "modes": _MODES,
            "preview": await _preview(asked, _rule(typed, "preview", LOG)) if given else None,
            "free_name": _free_name(typed["match"], asked.settings) if given else "",
            "file": asked.file.path,
        }  # fmt: skip

    async def change(self, asked: DashboardRequest, form: Mapping[str, str]) -> str:
        """Make a rule, remove one, test its receiver, or send its messages again.

        Raises:
            UsageError: it is invalid, or the rule is unknown.
        """
        what, name = form.get("do", ""), form.get("name", "").strip()
        if what == "make":
            await _make(asked, form, name)
            return self.path
        if what not in {"test", "retry", "remove"}:
            raise UsageError(f"do={what[:80]}: accepted are make, test, retry and remove")
        if all(rule.name != name for rule in asked.settings.group(Alerts).rules):
            raise UsageError(f"name={name[:80]}: there is no such rule")
        if what == "test":
            self._tested[name] = await _tested(asked.settings, name)
        elif what == "retry":
            await asked.library.each(lambda _: noting(_requeue, rule=name, now=asked.now))
        else:
            await asked.file.write({}, without={"alerts.rules": [name]})
        return self.path


def _state(it: RuleStatus) -> tuple[str, str]:
    """Return the state of a rule's messages, in a word and a sentence."""
    counts = it.counts
    if it.mode is None:
        return "removed", "it is not in the settings any more"
    if counts.failed:
        return "given up", f"{counted(counts.failed, 'message')}: {counts.answer}"
    if counts.pending and counts.answer:
        return "failing", counts.answer
    if counts.pending or counts.waiting:
        return "waiting", f"{counts.pending + counts.waiting:,} to be sent"
    return ("sent", "") if counts.sent else ("quiet", "nothing to tell yet")


# -- changes -----------------------------------------------------------------


def _rule(said: Mapping[str, str], name: str, url: str, mode: str = "") -> dict[str, Any]:
    """Return the table of a rule; raises UsageError if it is not valid."""
    table: dict[str, Any] = {"name": name, "match": said["match"].split(), "url": url}
    table |= {"kinds": said["kinds"].split()} if said["kinds"] else {}
    table |= {key: [said[key]] for key in ("appears", "vanishes") if said[key]}
    table |= {key: said[key] for key in ("number", "within") if said[key]}
    table |= {"mode": mode} if mode not in ("", "immediate") else {}
    try:
        table |= {key: float(said[key]) for key in ("below", "above") if said[key]}
        condition_of(AlertRuleSettings.model_validate(table))
    except ValidationError as error:
        first = error.errors()[0]
        message = first["msg"].removeprefix("Value error, ")
        raise UsageError(f"{first['loc'][0] if first['loc'] else 'rule'}: {message}") from error
    except (ValueError, CrawlError) as error:
        raise UsageError(str(error)) from error
    return table


async def _make(asked: DashboardRequest, form: Mapping[str, str], name: str) -> None:
    """Write a rule into the settings file, if its receiver can be made."""
    said = {key: form.get(key, "").strip() for key in _ASKED}
    if not said["match"]:
        raise UsageError("match: type the address of a page, or of several with * for anything")
    url, mode = form.get("url", "").strip() or LOG, form.get("mode", "")
    table = _rule(said, name, url, mode)
    rules = [AlertRuleSettings.model_validate(table)]
    resolver = CachingResolver()
    try:
        for channel in channels(asked.settings.group(Alerts).model_copy(update={"rules": rules})):
            await receiver(channel, asked.settings, resolver, SteadyClock()).close()
    except CrawlError as error:
        raise UsageError(str(error)) from error
    finally:
        await resolver.close()
    await asked.file.write({}, {"alerts.rules": [table]})


async def _tested(settings: Settings, name: str) -> str:
    """Send a test message; return the result in words."""
    try:
        await send_test(settings, name)
    except CrawlError as error:
        return str(error)
    return "the receiver accepted the test message"


async def _requeue(path: Path, rule: str, now: float) -> None:
    write_beside(path, partial(tables.requeue, rule=rule, now=now))


def _free_name(match: str, settings: Settings) -> str:
    """Return a name for a new rule, by the first address."""
    taken = {rule.name for rule in settings.group(Alerts).rules}
    words = re.findall(r"[A-Za-z0-9]+", match.split(maxsplit=1)[0].rpartition("://")[2])
    name = "-".join(words)[:50].strip("-") or "rule"
    return next(each for n in count(1) if (each := name if n == 1 else f"{name}-{n}") not in taken)


# -- preview -----------------------------------------------------------------


async def _preview(asked: DashboardRequest, table: Mapping[str, Any]) -> Mapping[str, object]:
    """Return the alerts that a rule would have sent for the last versions of its page.

    ``rows`` has the versions with the fulfilled conditions, newest first; ``why`` is the reason for
    a lack of rows.
    """
    match = table["match"][0]
    if "*" in match or len(table["match"]) > 1:
        return {"rows": [], "now": "", "why": "A preview is of one page: type one without *."}
    if "://" not in match:
        match = spellings(match)[0]
    shard, url = await asked.library.home(match)
    rule = AlertRuleSettings.model_validate(table)
    return await asked.library.one(shard, partial(_tried, url=url, rule=rule))


async def _tried(made: Documents, url: str, rule: AlertRuleSettings) -> dict[str, object]:
    """Try a rule on the last versions of a page."""
    condition = condition_of(rule)
    async with page.snapshot(made.path) as db:
        known = await page.find(db, spellings(url))
        if known is None:
            return {"rows": [], "now": "", "why": "This page is not in the store yet."}
        found = [it for it in await page.versions(db, known.page_id) if it.significant]
        if condition is None:
            changed = [(it, ["it changed"]) for it in found[1:][: -_TRIED - 1 : -1]]
            return {"rows": changed, "why": "" if changed else "It has not changed.", "now": ""}
        kept = [it for it in found if it.body_kept][-_TRIED - 1 :]
        texts = list[Sequence[str]]()
        for it in kept:
            read = await documents.read_text(db, made.parser, url, it, condition.hints)
            texts.append(read.texts)
    if not texts:
        return {"rows": [], "now": "", "why": "The bytes of its versions are not kept."}
    return _held(condition, kept, texts)


def _held(
    condition: Condition, kept: Sequence[StoredVersion], texts: Sequence[Sequence[str]]
) -> dict[str, object]:
    """Return what of a condition holds for each version, given its text."""
    rows = [
        (it, [in_words(each) for each in condition.fired(before, after)])
        for (before, after), it in zip(pairwise(texts), kept[1:], strict=True)
    ]
    now = condition.on(texts[-1])
    return {"rows": rows[::-1], "why": "" if rows else f"Its one version: {now}.", "now": now}
