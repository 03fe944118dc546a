"""One page: its visits, versions and links, the text of a version, and the search for a URL."""

from collections.abc import Collection, Mapping
from functools import partial
from http import HTTPStatus
from operator import itemgetter
from typing import Any

from freshet.config.settings import Settings
from freshet.crawler.admission.site_lists import spellings
from freshet.crawler.errors import UsageError
from freshet.crawler.extensions.dashboard import site_settings
from freshet.crawler.extensions.dashboard.plots import kind_of, time_line
from freshet.crawler.extensions.dashboard.request import DashboardRequest
from freshet.crawler.read import documents
from freshet.crawler.read.documents import Documents
from freshet.crawler.read.numbers import VersionNumber, numbers_of, place_of_price
from freshet.crawler.run import explanation
from freshet.storage.entries import KINDS
from freshet.storage.queries import page
from freshet.storage.tables import claims

WAITS = "not visited yet"
#: Results of visits by which pages are listed.
RESULTS = (*KINDS, WAITS)
_VISITS, _BLOCKS, _SIGNALS = 2_000, 2_000, 200
#: Versions with a shown number. Each is parsed for it.
_NUMBERS = 100
#: Versions, links each way, and pages of a list.
_SHOWN = 50


async def shown(asked: DashboardRequest) -> Mapping[str, object]:
    """Return the history and the plans of a page, or the URLs next to an unknown one."""
    shard, url = await asked.library.home(asked.page_url)
    read = partial(_read, url=url, settings=asked.settings, now=asked.now)
    found = await asked.library.one(shard, read)
    if "near" in found:
        return found | {"status": HTTPStatus.NOT_FOUND}
    known = found["it"].url
    here = (await site_settings.listed(asked))["kept"]
    return found | {
        "here": [each for each in here if each.match in (known, known.split("/")[2])],
        "kind_of": kind_of,
        "line": time_line(found["visits"], found["signals"], asked.now),
        "facts": explanation.facts_of(found["it"]),
        "is_other_name": found["it"].url not in spellings(asked.page_url),
    }


async def _read(made: Documents, url: str, settings: Settings, now: float) -> dict[str, Any]:
    """Return the store's data of a page, following redirects, or else similar URLs."""
    async with page.snapshot(made.path) as db:
        known = await page.find(db, spellings(url))
        if known is not None and known.alias is not None:
            known = await page.find(db, [known.alias.url])
        if known is None:
            return {"near": await documents.nearest(db, spellings(url)[0])}
        told = await explanation.read(db, [known.url], settings, now, brief=True)
        page_id = known.page_id
        return {
            **dict(zip(("it", "ahead", "rate"), told, strict=True)),
            "next_visit": list(explanation.next_visit_lines(*told, made.path)),
            "visits": await page.observations(db, page_id, _VISITS),
            "visited": await page.observation_count(db, page_id),
            "versions": (await page.versions(db, page_id))[: -_SHOWN - 1 : -1],
            "signals": await claims.heard(db, page_id, known.host_id, _SIGNALS),
            "links_in": await page.links(db, page_id, _SHOWN, inward=True),
            "links_out": await page.links(db, page_id, _SHOWN, inward=False),
        }


async def text(asked: DashboardRequest) -> Mapping[str, object]:
    """Return the text of a version of a page, and the number of the last version."""
    shard, url = await asked.library.home(asked.page_url)
    read = partial(_text, url=url, wanted=asked.query.get("version"))
    return await asked.library.one(shard, read)


async def _text(made: Documents, url: str, wanted: str | None) -> dict[str, Any]:
    async with page.snapshot(made.path) as db:
        it, found = await documents.final(db, url), await made.find(db, url, wanted)
        blocks = found.text.split("\n\n") if found.text else []
        last = len(await page.versions(db, it.page_id))
        return {"document": found, "blocks": blocks[:_BLOCKS], "all": len(blocks), "last": last}


async def numbers(asked: DashboardRequest) -> Mapping[str, object]:
    """Return a number of a page in its last versions: its price, or that in an element."""
    shard, url = await asked.library.home(asked.page_url)
    typed = {name: asked.query.get(name, "").strip() for name in ("within", "number")}
    read = partial(_numbers, url=url, within=typed["within"] or None, number=typed["number"])
    known, found, place = await asked.library.one(shard, read)
    last = next((it.value for it in reversed(found) if it.value is not None), None)
    rule = {"match": known, "kinds": "changed gone", "below": f"{last or 0.0:.15g}", **place}
    return {"url": known, "numbers": found, "last": last, "typed": typed, "most": _NUMBERS,
            "rule": rule if place else None}  # fmt: skip


async def _numbers(
    made: Documents, url: str, within: str | None, number: str
) -> tuple[str, list[VersionNumber], Mapping[str, str]]:
    """Return the numbers of a page, and the place where an alert rule finds the last one."""
    async with page.snapshot(made.path) as db:
        it = await documents.final(db, url)
        found = await numbers_of(
            db, made.parser, it.url, it.page_id, within=within, number=number, most=_NUMBERS
        )
        if within is not None or number:
            return it.url, found, {"within": within or "", "number": number}
        return it.url, found, await place_of_price(db, made.parser, it.url, it.page_id)


async def listed(asked: DashboardRequest) -> Mapping[str, object]:
    """Return the pages with the typed beginning of their URLs, with or without the scheme."""
    typed, kind = (asked.query.get(name, "").strip() for name in ("prefix", "kind"))
    if kind and kind not in RESULTS:
        raise UsageError(f"kind={kind[:80]}: accepted are {', '.join(RESULTS)}")
    read = partial(_listed, begins=_begins(typed), after=asked.query.get("after", ""), kind=kind)
    parts, down = await asked.library.each(lambda _: read)
    shown, after = _first_of(parts.values())
    given = {name: it for name, it in (("prefix", typed), ("kind", kind)) if it}
    return {
        "pages": shown, "typed": typed, "kind": kind, "kinds": RESULTS, "down": down,
        "next": given | {"after": after} if after else None,
    }  # fmt: skip


def _first_of(
    parts: Collection[tuple[list[dict[str, Any]], list[str]]],
) -> tuple[list[dict[str, Any]], str | None]:
    """Return the first pages of several searches, and where the next ones begin."""
    found = sorted((it for some, _ in parts for it in some), key=itemgetter("url"))
    # A search that stopped at ``end`` has not seen the URLs behind it.
    end = min((end for _, ends in parts for end in ends), default=None)
    shown = [it for it in found if end is None or it["url"] <= end][:_SHOWN]
    return shown, shown[-1]["url"] if len(shown) == _SHOWN else end


def _begins(typed: str) -> list[str]:
    """Return the beginnings of URLs that the user may mean."""
    if not typed.isascii():  # The store has canonical URLs.
        return [it.removesuffix("/" * (typed[-1] != "/")) for it in spellings(typed)]
    return [typed] if not typed or "://" in typed else [f"http://{typed}", f"https://{typed}"]


async def _listed(
    made: Documents, begins: list[str], after: str, kind: str
) -> tuple[list[dict[str, Any]], list[str]]:
    """Return pages, and the place from which the search for a kind continues."""
    found, ends = list[dict[str, Any]](), list[str]()
    async with page.snapshot(made.path) as db:
        for prefix in begins:
            if not kind:
                found += await page.listed(db, prefix, after, _SHOWN)
                continue
            result = "" if kind == WAITS else kind
            some, end = await page.with_result(db, prefix, after, result, _SHOWN)
            found += some
            ends += filter(None, [end])
    return found, ends
