"""Settings of sites, and wishes, that the store keeps: what buttons set and take back."""

import json
from collections.abc import Mapping
from functools import partial
from typing import Any

from pydantic import ValidationError

from freshet.config.sites import Sites, StoredSite, place_of, with_stored
from freshet.crawler.admission.site_lists import spellings
from freshet.crawler.errors import UsageError
from freshet.crawler.extensions.dashboard.request import DashboardRequest
from freshet.crawler.read.documents import selector_in
from freshet.crawler.read.library import asking
from freshet.crawler.run.network import selector_hints
from freshet.storage.tables import runs
from freshet.storage.tables.runs import VISIT, SiteSetting


async def listed(asked: DashboardRequest) -> Mapping[str, Any]:
    """Return the list of settings and wishes."""
    found, down = await asked.library.each(lambda _: asking(runs.site_settings))
    return {"kept": sorted({each for some in found.values() for each in some}), "down": down}


async def change(asked: DashboardRequest, form: Mapping[str, str]) -> None:
    """Keep a setting in all shards, or take it back where a form has no value.

    Raises:
        UsageError: it is not valid, or the settings' file says otherwise.
    """
    match, key, text = (form.get(name, "").strip() for name in ("match", "key", "value"))
    if "block" in form:
        match, text = await _of_block(asked, form)
    if key == VISIT:
        match = spellings(match)[0]
    elif key not in {"importance", "never", "ignore"}:
        raise UsageError(
            f"key: {key[:80]} cannot be set here; accepted are importance, never and ignore"
        )
    value = await _checked(asked, match, key, text) if text and key != VISIT else text
    await asked.library.keep(SiteSetting(match, key, value, asked.now))


async def _of_block(asked: DashboardRequest, form: Mapping[str, str]) -> tuple[str, str]:
    """Return the match whose table rules on a page, and a selector for a block of it."""
    shard, url = await asked.library.home(form.get("url", ""))
    versions = form.get("before", ""), form.get("after", "")
    read = partial(selector_in, url=url, of=versions, block=form["block"])
    url, selector = await asked.library.one(shard, read)
    if not selector:
        raise UsageError("no CSS selector takes this block alone: type one on the page's view")
    # Known by its place, it is another block on another page.
    own = StoredSite(match=url if ">" in selector else url.split("/")[2], ignore=(selector,))
    tables = with_stored(asked.settings, (await listed(asked))["kept"]).sites
    ruling = Sites([*tables, own]).ruling(url, "ignore")
    return (ruling or own).match, selector


async def _checked(asked: DashboardRequest, match: str, key: str, text: str) -> str:
    """Return a value in JSON; a selector that is to be ignored comes to those that are."""
    try:
        given = [text] if key == "ignore" else text
        table = StoredSite.model_validate({"match": match, key: given})
    except ValidationError as error:
        raise UsageError(f"{key}: {error.errors()[0]['msg']}") from error
    selector_hints(asked.settings.model_copy(update={"sites": (table,)}))
    if any(it.match == match and getattr(it, key) is not None for it in asked.settings.sites):
        raise UsageError(f"the settings' file sets {key} of {match}, and wins: change it there")
    value = table.model_dump(mode="json")[key]
    if key == "ignore":
        sites = Sites(with_stored(asked.settings, (await listed(asked))["kept"]).sites)
        there = sites.at(match if "://" in match else place_of(match)).ignore or ()
        value = [*(it for it in there if it != text), text]
    return json.dumps(value)
