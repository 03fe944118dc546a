"""What visits found of pages, as those stand now."""

from pathlib import Path

from freshet.storage.entries import KINDS
from freshet.storage.queries import columns, page
from tests.storage.small_store import small_store


async def test_pages_come_with_all_visits_and_those_of_where_they_stood_before(
    tmp_path: Path,
) -> None:
    store = await small_store(tmp_path / "crawl.db")
    store.run(0.0)
    store.host()
    new = store.page("/new", found_at=30.0, checked_at=50.0, version_id=1)
    old = store.page(
        "/old", found_at=5.0, checked_at=20.0, alias_of=new, alias_kind="permanent", version_id=1
    )
    store.page("/never", found_at=1.0)
    feed = store.page("/feed", role="feed")
    version = store.insert(
        "version", page_id=old, at=10.0, body_digest=b"b" * 16, text_digest=b"\0" * 7 + b"\3" * 9
    )
    store.observe(old, 10.0, "new", version_id=version)
    store.observe(feed, 10.0, "new")
    store.observe(old, 20.0, "unchanged", version_id=version)
    store.observe(new, 50.0, "changed")
    store.observe(new, 60.0, "failed")
    async with page.snapshot(store.path) as connection:
        pages, visits = await columns.read(connection)
    assert pages.url == ["http://one.example/new"]
    assert pages.found_at.tolist() == [10.0]
    assert visits.at.tolist() == [10.0, 20.0, 50.0, 60.0]
    assert [KINDS[kind] for kind in visits.kind] == [
        "new", "unchanged", "changed", "failed"
    ]  # fmt: skip
    # Eight bytes of the text's digest, where the visit showed it first.
    assert visits.digest.tolist() == [3, 0, 0, 0]
