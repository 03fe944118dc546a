"""A consumer that keeps its cursor holds what the store holds, and is told no older state."""

import asyncio
import re
import tempfile
from dataclasses import replace
from itertools import product
from math import inf
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from freshet.storage import maintenance
from freshet.storage.backup import back_up
from freshet.storage.database import reading
from freshet.storage.entries import AliasKind, Amendment, Kind, Retraction, Rung
from freshet.storage.errors import CursorGone
from freshet.storage.maintenance import Retention
from freshet.storage.queries import page
from freshet.storage.records import DueUrl, Visit
from freshet.storage.tables import changefeed, observations
from freshet.storage.tables.changefeed import LastChange
from tests.storage.crawl_store import (
    DAY_S,
    START,
    CrawlStore,
    capture,
    captured,
    crawl_store,
    doubtful,
    redirected,
    visit,
    writing,
)
from tests.variants import first

PATHS = ("/a", "/b", "/c")


async def told(store: CrawlStore, since: str = "0", *, noise: bool = False) -> list[LastChange]:
    place = await changefeed.position(store.database.reader, since)
    found, _ = await changefeed.changes(store.database.reader, place, 100, noise=noise)
    return found


async def kinds(store: CrawlStore, *, noise: bool = False) -> list[str]:
    return [each.kind for each in await told(store, noise=noise)]


def seen(due: DueUrl, text: str, kind: Kind, at: float, *, noindex: bool = False) -> Visit:
    """A visit that captured a text."""
    found = visit(due, kind, at)
    rung: Rung | None = "frame" if kind == "unchanged" else None
    observation = replace(found.observation, rung=rung)
    return replace(found, observation=observation, capture=replace(capture(text), noindex=noindex))


_KINDS = {"changed links": "words links", "refreshed": "links"}


def differing(found: Visit, kinds: str | None) -> Visit:
    return replace(found, observation=replace(found.observation, kinds=kinds))


def what_happens(due: DueUrl, action: str, n: int) -> Visit:
    """The n-th visit of a history, to one page."""
    at = START + n
    match action:
        case "changed" | "noindex" | "changed links":
            found = seen(due, f"text {n}", "changed", at, noindex=action == "noindex")
            return doubtful(differing(found, _KINDS.get(action)))
        case "new":
            return doubtful(seen(due, f"text {n}", "new", at))
        case "noise" | "refreshed":
            found = seen(due, f"text {n}", "unchanged", at)
            return doubtful(differing(found, _KINDS.get(action)))
        case "moved" | "away":
            way: AliasKind = "permanent" if action == "moved" else "temporary"
            found = redirected(due, "/target", way, at)
            return replace(found, observation=replace(found.observation, reason=way))
        case "left":
            found = visit(due, "redirected", at)
            there = replace(found.observation, status=301, detail="https://b.example/")
            return replace(found, observation=replace(there, reason="out_of_scope"))
        case "robots":
            found = visit(due, "refused", at)
            return replace(found, observation=replace(found.observation, reason="robots"))
        case "taken back":
            found = visit(due, "failed", at)
            return replace(found, retractions=(Retraction(due.page_id, None, "soft_404", "why"),))
        case "gone" | "failed" | "unchanged" as kind:
            found = visit(due, kind, at)
            return doubtful(found) if kind == "unchanged" else found
    raise AssertionError(action)


ACTIONS = (
    "changed", "noise", "gone", "moved", "away", "robots", "failed", "unchanged", "noindex",
    "taken back", "left", "no change", "refreshed", "changed links", "a change",
)  # fmt: skip
#: Those of visits; the others amend one.
VISITS = tuple(each for each in ACTIONS if each not in {"no change", "a change"})


@given(
    st.lists(
        st.tuples(st.sampled_from(PATHS), st.sampled_from(ACTIONS), st.sampled_from((0, 1, 2, 9))),
        max_size=25,
    ),
    st.booleans(),
)
@settings(max_examples=60, deadline=None)
def test_a_mirror_is_what_a_new_reader_gets(
    history: list[tuple[str, str, int]], noise: bool
) -> None:
    """Whatever happens, and however seldom and little the consumer asks."""
    asyncio.run(_mirrored(history, noise=noise))


async def _amended_alike(store: CrawlStore, *, noise: bool) -> None:
    """What history amends, the changefeed amends: a change that is none, and noise that is one."""
    sql = (
        "SELECT p.url, f.kind FROM finding AS f JOIN page AS p ON p.id = f.page_id "
        "WHERE f.kind IN ('new', 'changed') OR (f.kind = 'unchanged' AND f.version_id IS NOT NULL) "
        "ORDER BY f.at, f.id"
    )
    seen_as: dict[str, list[str]] = {}
    for url, kind in await store.rows(sql):
        seen_as.setdefault(url, []).append(kind)
    # What a reader has of a capture that was taken back is to be replaced.
    sql = (
        "SELECT DISTINCT url FROM page JOIN finding AS f ON f.page_id = page.id "
        "WHERE f.kind = 'failed' AND f.first_kind <> 'failed'"
    )
    back = await store.rows(sql)
    for each in await told(store, noise=noise):
        if each.kind == "changed":
            assert "changed" in seen_as[each.url] or (each.url,) in back
        if each.kind in {"noise", "refreshed"}:
            assert seen_as[each.url][-1] != "changed"


async def _mirrored(history: list[tuple[str, str, int]], *, noise: bool) -> None:
    with tempfile.TemporaryDirectory() as folder:
        async with crawl_store(Path(folder, "db")) as store:
            await store.admit(*PATHS, "/end")
            due = {path: await store.taken(path) for path in (*PATHS, "/end")}
            mirror, last, cursor = dict[str, int](), dict[str, int](), "0"
            # In the end the consumer reads all that is left.
            for n, (path, action, limit) in enumerate((*history, ("/end", "failed", 100))):
                await happens(store, due[path], action, n)
                if action not in VISITS:
                    await _amended_alike(store, noise=noise)
                begun = await changefeed.position(store.database.reader, cursor)
                found, place = await changefeed.changes(
                    store.database.reader, begun, limit, noise=noise
                )
                told_of = await changefeed.told_versions(store.database.reader, begun, found)
                cursor = str(place)
                for change in found:
                    # What a reader without noise has is known, or said not to be.
                    if change.page_id in told_of and not noise:
                        assert told_of[change.page_id] == mirror.get(change.url)
                    assert change.seq > last.get(change.url, 0)
                    last[change.url] = change.seq
                    mirror.pop(change.url, None)
                    if change.version_id is not None:
                        mirror[change.url] = change.version_id
            entries = await told(store, noise=noise)
            assert mirror == {each.url: each.version_id for each in entries if each.version_id}
            kept = await page.document_sources(store.database.reader, list(mirror.values()))
            assert {each.url: each.version_id for each in kept.values()} == mirror
            rows = await store.rows(
                "SELECT url, version_id FROM page WHERE role = 'page' AND NOT noindex "
                "AND version_id IS NOT NULL AND last_kind IN ('new', 'changed')"
            )
            assert dict(rows).items() <= mirror.items()
            # A document that differs is told, whether what differs counts or not.
            rows = await store.rows(
                "SELECT p.url, max(f.version_id) FROM finding AS f JOIN page AS p "
                "ON p.id = f.page_id WHERE f.kinds IS NOT NULL AND f.version_id IN "
                "(SELECT id FROM version) GROUP BY p.id"
            )
            assert all(mirror[url] >= version for url, version in rows if url in mirror)


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (["changed"], ["changed"], [1]),
        (["changed"], ["changed", "changed", "refreshed"], [1]),
        (["changed", "changed"], ["refreshed"], [2]),
        (["changed"], ["gone", "changed"], []),
        ([], ["changed"], []),
    ],
)
async def test_it_is_known_which_version_a_reader_has(
    store: CrawlStore, before: list[str], after: list[str], expected: list[int]
) -> None:
    await store.admit("/a", "/b")
    due, reader = await store.taken("/a"), store.database.reader
    for n, action in enumerate(before):
        await happens(store, due, action, n)
    place = await changefeed.position(reader, "now")
    for n, action in enumerate(after):
        await happens(store, due, action, 10 + n)
    found, _ = await changefeed.changes(reader, place, 100)
    assert [*(await changefeed.told_versions(reader, place, found)).values()] == expected
    # Whoever begins has nothing, and knows it.
    start = await changefeed.position(reader, "0")
    assert [*(await changefeed.told_versions(reader, start, found)).values()] == [None]


async def happens(store: CrawlStore, due: DueUrl, action: str, n: int) -> None:
    if action == "no change":
        await amend_last_change(store, due)
    elif action == "a change":
        await amend_last_noise(store, due)
    else:
        await store.apply(what_happens(due, action, n))


async def happened(store: CrawlStore, *actions: str) -> DueUrl:
    """Let these visits happen to one page."""
    await store.admit("/a")
    due = await store.taken("/a")
    for n, action in enumerate(actions):
        await happens(store, due, action, n)
    return due


@pytest.mark.parametrize(
    ("actions", "expected"),
    [
        (["changed"], ["new"]),
        (["changed", "unchanged", "noise", "failed", "away"], ["new"]),
        (["changed", "changed"], ["changed"]),
        (["changed", "gone"], ["gone"]),
        (["gone"], []),
        (["noindex"], []),
        (["changed", "noindex"], ["noindex"]),
        (["changed", "gone", "failed"], ["gone"]),
        (["changed", "gone", "moved"], ["moved"]),
        (["changed", "gone", "unchanged"], ["new"]),
        (["changed", "moved", "changed"], ["new"]),
        (["changed", "robots"], ["robots"]),
        (["changed", "changed", "taken back"], ["changed"]),
        (["changed", "noise", "taken back"], ["changed"]),
        (["changed", "taken back"], ["withdrawn"]),
        (["new", "refreshed"], ["new"]),
        (["new", "gone", "refreshed"], ["new"]),
        (["new", "refreshed", "changed"], ["changed"]),
        (["new", "changed", "refreshed"], ["changed"]),
        (["new", "changed", "refreshed", "gone"], ["gone"]),
        (["new", "changed", "refreshed", "taken back"], ["changed"]),
    ],
    ids="-".join,
)
async def test_a_page_is_told_once_by_its_last_state(
    store: CrawlStore, actions: list[str], expected: list[str]
) -> None:
    await happened(store, *actions)
    assert await kinds(store) == expected


async def test_noise_is_told_to_those_who_ask(store: CrawlStore) -> None:
    due = await happened(store, "changed", "noise", "noise")
    assert await kinds(store, noise=True) == ["new", "noise"]
    assert (await told(store, noise=True))[1].version_id == 3
    await store.apply(what_happens(due, "changed", 4))
    assert await kinds(store, noise=True) == ["changed"]


@pytest.mark.parametrize(
    ("how", "where"), [("moved", "https://a.example/target"), ("left", "https://b.example/")]
)
async def test_a_move_tells_where_to(store: CrawlStore, how: str, where: str) -> None:
    await happened(store, "changed", how)
    assert [(each.kind, each.moved_to) for each in await told(store)] == [("moved", where)]


def amend(store: CrawlStore, due: DueUrl, amendment: Amendment) -> None:
    with writing(store.database) as connection:
        observations.amend(connection, due.page_id, amendment, START + 9)
        changefeed.tell(connection, [due.page_id], START + 9)


async def amend_last_change(store: CrawlStore, due: DueUrl) -> None:
    """Let the last change of a page prove to be the site's template, if it has changed."""
    sql = "SELECT max(at) FROM finding WHERE kind = 'changed' AND page_id = ?"
    ((at,),) = await store.database.reader.execute_fetchall(sql, (due.page_id,))
    if at is not None:
        amend(store, due, Amendment(at, "unchanged", "frame", "many pages changed so"))


async def amend_last_noise(store: CrawlStore, due: DueUrl) -> None:
    """Let the last noise of a page, or what refreshed it, prove to be a change."""
    sql = (
        "SELECT max(at) FROM finding WHERE kind = 'unchanged' AND rung = 'frame' AND page_id = ? "
        "AND id NOT IN (SELECT observation_id FROM amendment)"
    )
    ((at,),) = await store.database.reader.execute_fetchall(sql, (due.page_id,))
    if at is not None:
        amend(store, due, Amendment(at, "changed", "blocks", "no other page followed"))


@pytest.mark.parametrize("amended", ["no change", "a change"])
@pytest.mark.parametrize(
    "before", first(2, ["changed", "refreshed", "noise", "changed links", "unchanged"])
)
async def test_what_history_amends_is_amended_in_the_changefeed(
    before: str, amended: str, tmp_path: Path
) -> None:
    others = ("changed", "noise", "refreshed", "changed links", "gone", "moved", "taken back")
    for n, (second, third) in enumerate(product(others, repeat=2)):
        async with crawl_store(tmp_path / str(n)) as store:
            due = await happened(store, "new", before, second, third)
            await happens(store, due, amended, 4)
            for noise in (False, True):
                await _amended_alike(store, noise=noise)


async def cursor_after(store: CrawlStore, seq: int) -> str:
    place = await changefeed.position(store.database.reader, "now")
    return f"{place.epoch}-{seq}"


@pytest.mark.parametrize(
    ("read", "unread", "expected"),
    [
        (["new"], ["refreshed"], ("refreshed", "links")),
        (["new"], ["refreshed", "refreshed"], ("refreshed", "links")),
        (["new"], ["changed links"], ("changed", "words links")),
        (["new"], ["changed", "refreshed"], ("changed", "links")),
        (["new"], ["refreshed", "changed links"], ("changed", "words links")),
        (["new", "changed links"], ["refreshed"], ("refreshed", "links")),
        (["new", "refreshed"], ["refreshed", "noise"], ("refreshed", "links")),
        (["new", "gone"], ["refreshed"], ("new", "links")),
        (["new", "changed"], ["refreshed", "failed", "unchanged"], ("refreshed", "links")),
        # What is amended: words that are noise after all, and noise that is a change.
        (["new"], ["changed links", "no change"], ("refreshed", "links")),
        (["new"], ["changed links", "no change", "a change"], ("refreshed", "links")),
        (["new"], ["changed", "refreshed", "no change"], ("refreshed", "links")),
        (["new"], ["changed links", "refreshed", "no change"], ("refreshed", "links")),
        (["new"], ["refreshed", "a change"], ("changed", "words links")),
        (["new"], ["noise", "refreshed", "refreshed", "a change"], ("changed", "words links")),
        (["new", "changed"], ["refreshed", "changed", "no change"], ("refreshed", "links")),
    ],
    ids=str,
)
async def test_a_reader_is_told_all_that_it_has_not_read_as_it_is_seen_today(
    store: CrawlStore, read: list[str], unread: list[str], expected: tuple[str, str]
) -> None:
    due = await happened(store, *read)
    place = str(await changefeed.position(store.database.reader, "now"))
    for n, action in enumerate(unread, len(read)):
        await happens(store, due, action, n)
    (change,) = await told(store, place)
    assert (change.kind, " ".join(change.channels)) == expected


@pytest.mark.parametrize(
    ("actions", "amended", "kind"),
    [
        (["new", "changed links"], "no change", "refreshed"),
        (["new", "refreshed"], "a change", "changed"),
        (["new", "changed", "refreshed"], "no change", "refreshed"),
    ],
    ids=str,
)
async def test_an_entry_is_amended_in_its_place_with_its_document(
    store: CrawlStore, actions: list[str], amended: str, kind: str
) -> None:
    """Who has read it holds the document already: nothing more is told, but noise to nobody."""
    due = await happened(store, *actions)
    (before,) = await changefeed.newest(store.database.reader, 9)
    await happens(store, due, amended, 9)
    (after,) = await changefeed.newest(store.database.reader, 9)
    assert (after.kind, after.seq, after.version_id) == (kind, before.seq, before.version_id)
    assert await told(store, await cursor_after(store, before.seq), noise=True) == []


async def test_noise_that_is_a_change_is_told_although_the_page_was_refreshed_since(
    store: CrawlStore,
) -> None:
    due = await happened(store, "new", "noise", "noise", "refreshed")
    (before,) = await told(store, await cursor_after(store, 1))
    amend(store, due, Amendment(START + 1, "changed", "blocks", "no other page followed"))
    (after,) = await told(store, await cursor_after(store, 1))
    assert (before.kind, before.kinds) == ("refreshed", "links")
    assert (after.kind, set(after.channels)) == ("changed", {"words", "links"})
    assert (after.seq, after.version_id) == (before.seq, before.version_id)


async def test_what_refreshed_a_page_and_proves_to_be_no_content_is_taken_back(
    store: CrawlStore,
) -> None:
    due = await happened(store, "new", "refreshed")
    place = str(await changefeed.position(store.database.reader, "now"))
    await happens(store, due, "taken back", 3)
    (change,) = await told(store, place)
    assert (change.version_id, change.kinds) == (1, None)


async def test_a_long_row_of_refreshed_entries_stays_short(store: CrawlStore) -> None:
    await happened(store, "new", *["refreshed"] * 40)
    assert await store.value("SELECT json_array_length(findings) FROM change") == 32
    (change,) = await told(store)
    assert (change.kind, change.channels) == ("refreshed", ("links",))


@pytest.mark.parametrize(
    ("actions", "unread", "read"),
    [
        (["new", "changed"], ["new"], ["noise"]),
        (["new", "changed", "unchanged"], ["new"], ["noise"]),
        (["new", "changed", "noise"], ["new"], []),
        (["new", "changed", "failed", "away"], ["new"], ["noise"]),
        (["new", "noise", "changed"], ["new"], ["noise"]),
        (["new", "changed", "changed"], ["new"], ["noise"]),
        (["new", "changed", "no change", "changed"], ["new"], ["noise"]),
        (["new", "gone", "changed"], ["new"], []),
        (["new", "changed", "gone"], ["gone"], []),
        (["new", "changed", "moved"], ["moved"], []),
        (["new", "changed", "robots"], ["robots"], []),
        (["new", "noindex", "changed"], ["new"], []),
    ],
    ids=lambda it: "-".join(it) if isinstance(it, list) else str(it),
)
async def test_a_change_that_proves_to_be_none_is_taken_back(
    store: CrawlStore, actions: list[str], unread: list[str], read: list[str]
) -> None:
    await store.admit("/a")
    due = await store.taken("/a")
    for n, action in enumerate(actions):
        await happens(store, due, action, n)
    if actions == ["new", "changed", "changed"]:
        # Both that came after the first: the last one is amended below.
        amend(store, due, Amendment(START + 1, "unchanged", "frame", "many pages changed so"))
    before = await told(store, noise=True)
    await amend_last_change(store, due)
    after = await told(store)
    assert [each.kind for each in after] == unread
    # Who has read it is told only if noise is asked for, and holds what others get.
    place = await changefeed.position(store.database.reader, "now")
    behind = f"{place.epoch}-{max(each.seq for each in before)}"
    assert await told(store, behind) == []
    assert [each.kind for each in await told(store, behind, noise=True)] == read
    assert after[0].version_id == before[0].version_id


async def test_what_was_noise_at_first_is_told_when_it_is_corrected(store: CrawlStore) -> None:
    due = await happened(store, "changed", "noise", "unchanged")
    amend(store, due, Amendment(START + 1, "changed", "blocks", "no other page followed"))
    (change,) = await told(store, noise=True)
    assert (change.kind, change.version_id, change.at) == ("changed", 2, START + 1)


async def test_a_document_is_the_same_until_it_is_told_anew(store: CrawlStore) -> None:
    await store.admit("/a")
    due = await store.taken("/a")
    for n in range(2):
        found = what_happens(due, "changed", n)
        assert found.capture is not None
        await store.apply(replace(found, capture=replace(found.capture, title=f"title {n}")))
    before = await page.document_sources(store.database.reader, [2])
    await store.apply(what_happens(due, "noise", 2))
    amend(store, due, Amendment(START + 1, "unchanged", "frame", "many pages changed so"))
    assert await page.document_sources(store.database.reader, [2]) == before
    assert before[2].title == "title 1"
    assert [each.version_id for each in await told(store)] == [2]


async def test_a_filter_passes_over_other_pages_and_nothing_reads_all_observations(
    store: CrawlStore,
) -> None:
    await store.admit(*PATHS)
    for path in PATHS:
        await store.apply(captured(await store.taken(path)))
    reader = store.database.reader
    start = await changefeed.position(reader, "0")
    found, after = await changefeed.changes(reader, start, 9, match=re.compile(".*/b"))
    assert [each.url[-2:] for each in found] == ["/b"]
    assert after == await changefeed.position(reader, "now")
    named = re.compile(":(after|told|noise|most)")
    changes = named.sub("1", changefeed._CHANGES)
    for sql, *values in ((changefeed._STATES, "[1]"), (changes,)):
        plan = str(await store.rows(f"EXPLAIN QUERY PLAN {sql}", *values))
        assert ("MATERIALIZE" in plan, "SCAN o" in plan) == (False, False)


async def test_a_copy_of_a_store_knows_no_cursor_of_the_store(
    store: CrawlStore, tmp_path: Path
) -> None:
    copies = [tmp_path / "one", tmp_path / "two"]
    cursors = [str(await changefeed.position(store.database.reader, "now"))]
    for copy in copies:
        back_up(store.database.path, copy, replace=False, progress=lambda _step, _share: None)
        async with reading(copy) as reader:
            for cursor in cursors:
                with pytest.raises(CursorGone, match="before it was restored"):
                    await changefeed.position(reader, cursor)
            cursors.append(str(await changefeed.position(reader, "now")))
    # Nor does an older copy in its place know the cursors of what the store has lost.
    now = await changefeed.position(store.database.reader, "now")
    assert await changefeed.position(store.database.reader, str(now)) == now
    with pytest.raises(CursorGone, match="an older copy stands in its place; empty your copy"):
        await changefeed.position(store.database.reader, f"{now.epoch}-{now.seq + 1}")
    for text in ("", "7", "-1", "now ", "x-1", "0" * 16 + "-" + "9" * 30):
        with pytest.raises(ValueError, match="accepted are"):
            await changefeed.position(store.database.reader, text)


async def test_a_cursor_before_deletions_that_are_not_kept_is_refused(store: CrawlStore) -> None:
    await store.admit(*PATHS)
    due, *others = [await store.taken(path) for path in PATHS]
    await store.apply(*map(captured, (due, *others)))
    before = str(await changefeed.position(store.database.reader, "now"))
    await store.apply(visit(due, "gone", START + 1))
    after = str(await changefeed.position(store.database.reader, "now"))
    rules = Retention(1, inf, deletion_age_s=DAY_S)
    await maintenance.prune(store.database, rules, START + 3 * DAY_S)
    with pytest.raises(CursorGone, match="not kept"):
        await told(store, before)
    assert await told(store, after) == []
    # Who begins anew may take a part at a time: it never held what was deleted before.
    place = await changefeed.position(store.database.reader, "0")
    (first,), place = await changefeed.changes(store.database.reader, place, 1)
    assert [first, *await told(store, str(place))] == await told(store)
    await store.apply(*(visit(each, "gone", START + 4 * DAY_S) for each in others))
    await maintenance.prune(store.database, rules, START + 6 * DAY_S)
    with pytest.raises(CursorGone, match="not kept"):
        await told(store, str(place))


@pytest.mark.parametrize("absent", ["failed", "robots"])
async def test_a_body_is_kept_behind_noise_of_any_age(store: CrawlStore, absent: str) -> None:
    await happened(store, "changed", "noise", "noise", absent)
    await maintenance.prune(store.database, Retention(1, DAY_S), START + 9 * DAY_S)
    kept = await store.rows("SELECT v.id FROM version AS v JOIN body ON digest = body_digest")
    assert kept == [(1,), (3,)]


@pytest.mark.parametrize("rows", [1, 2, 1_000])
async def test_the_newest_changes_of_some_urls_are_found_behind_all_others(
    store: CrawlStore, monkeypatch: pytest.MonkeyPatch, rows: int
) -> None:
    monkeypatch.setattr(changefeed, "_ROWS", rows)
    await store.admit(*PATHS)
    due = {path: await store.taken(path) for path in PATHS}
    for number, path in enumerate((*PATHS, "/a", "/c")):
        await store.apply(what_happens(due[path], "changed", number))
    urls = [each.url for each in await changefeed.newest(store.database.reader, 9)]
    assert [url[-2:] for url in urls] == ["/c", "/a", "/b"]
    for url in urls:
        found = await changefeed.newest(store.database.reader, 1, url.__eq__)
        assert [each.url for each in found] == [url]
    assert await changefeed.newest(store.database.reader, 9, lambda url: False) == []
