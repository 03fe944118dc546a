"""Settings of sites that buttons write into the settings file, and wishes for visits.

A server without a settings file keeps settings of sites in the store. Those that a store has from
there, or from an earlier version, move into the file with the first change.
"""

import json
from collections import defaultdict
from collections.abc import Mapping
from functools import partial
from typing import Any, Final

from pydantic import ValidationError

from freshet.config.sites import Sites, StoredSite, place_of, with_stored
from freshet.crawler.admission.site_lists import spellings
from freshet.crawler.errors import UsageError
from freshet.crawler.extensions.dashboard.request import DashboardRequest
from freshet.crawler.extensions.dashboard.settings_file import BUTTONS, FORMS
from freshet.crawler.read.documents import selector_in
from freshet.crawler.read.library import asking
from freshet.crawler.run.network import selector_hints
from freshet.storage.tables import runs
from freshet.storage.tables.runs import VISIT, SiteSetting

#: Settings of sites on the page of settings.
_SHOWN: Final = 500


async def shown(asked: DashboardRequest) -> Mapping[str, object]:
    """Return all settings with their origins, and the settings made with buttons."""
    file, found = asked.file, await listed(asked)
    return {
        "kept": found["kept"][:_SHOWN], "more": len(found["kept"]) - _SHOWN, "down": found["down"],
        "file": file.path, "trouble": file.trouble, "daemon_said": file.daemon_said(),
        "forms": [(name, *said, *file.form(name)) for name, said in FORMS.items()],
        "values": list(file.values()),
    }  # fmt: skip


async def listed(asked: DashboardRequest) -> Mapping[str, Any]:
    """Return the settings of sites in the file and in the store, and requested visits."""
    kept, down = await stored(asked)
    of_file = asked.file.sites if asked.file.path is not None else []
    return {"kept": [*of_file, *kept], "down": down}


async def stored(asked: DashboardRequest) -> tuple[list[SiteSetting], Mapping[int, str]]:
    """Return the settings of sites and the requests in the store, and the shards that are down."""
    found, down = await asked.library.each(lambda _: asking(runs.site_settings))
    return sorted({each for some in found.values() for each in some}), down


async def change(asked: DashboardRequest, form: Mapping[str, str]) -> None:
    """Set a key of a site, or take it back where a form has no value.

    Raises:
        UsageError: it is not valid, or the settings file cannot be changed.
    """
    match, key, text = (form.get(name, "").strip() for name in ("match", "key", "value"))
    if "block" in form:
        match, text = await _of_block(asked, form)
    if key == VISIT:
        match = spellings(match)[0]
    elif key not in BUTTONS:
        raise UsageError(
            f"key: {key[:80]} cannot be set here; accepted are importance, never and ignore"
        )
    value = await _checked(asked, match, key, text) if text and key != VISIT else text
    wanted = SiteSetting(match, key, value, asked.now)
    if key == VISIT or asked.file.path is None:
        await asked.library.keep(wanted)
    else:
        await _write(asked, wanted)


async def _write(asked: DashboardRequest, wanted: SiteSetting) -> None:
    """Write a key into the settings file, with those that the store still keeps."""
    kept = [it for it in (await stored(asked))[0] if it.key in BUTTONS]
    said = {(it.match, it.key) for it in asked.file.sites}
    keys = defaultdict[str, dict[str, object]](dict)
    for it in [*(it for it in kept if it[:2] not in said), wanted]:
        keys[it.match][it.key] = json.loads(it.value) if it.value else None
    await asked.file.write({}, keys={"sites": keys})
    for it in kept:
        await asked.library.keep(it._replace(value=""))


async def _of_block(asked: DashboardRequest, form: Mapping[str, str]) -> tuple[str, str]:
    """Return the match of the table that decides for a page, and a selector for a block."""
    shard, url = await asked.library.home(form.get("url", ""))
    versions = form.get("before", ""), form.get("after", "")
    read = partial(selector_in, url=url, of=versions, block=form["block"])
    url, selector = await asked.library.one(shard, read)
    if not selector:
        raise UsageError("no CSS selector takes this block alone: type one on the page's view")
    # A selector by place names another block on another page.
    own = StoredSite(match=url if ">" in selector else url.split("/")[2], ignore=(selector,))
    tables = with_stored(asked.settings, (await stored(asked))[0]).sites
    ruling = Sites([*tables, own]).ruling(url, "ignore")
    return (ruling or own).match, selector


async def _checked(asked: DashboardRequest, match: str, key: str, text: str) -> str:
    """Return a value in JSON; a selector to ignore is added to the selectors of the match."""
    try:
        given = [text] if key == "ignore" else text
        table = StoredSite.model_validate({"match": match, key: given})
    except ValidationError as error:
        raise UsageError(f"{key}: {error.errors()[0]['msg']}") from error
    selector_hints(asked.settings.model_copy(update={"sites": (table,)}))
    if asked.file.path is None and (match, key) in {it[:2] for it in asked.file.sites}:
        raise UsageError(f"the settings' file sets {key} of {match}, and wins: change it there")
    value = table.model_dump(mode="json")[key]
    if key == "ignore":
        sites = Sites(with_stored(asked.settings, (await stored(asked))[0]).sites)
        there = sites.at(match if "://" in match else place_of(match)).ignore or ()
        value = [*(it for it in there if it != text), text]
    return json.dumps(value)
