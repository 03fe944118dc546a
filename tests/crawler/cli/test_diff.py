"""`freshet diff URL` shows what changed between two stored versions."""

import json
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import pytest

from freshet.crawler.cli.diff import page_of, print_difference
from freshet.crawler.compare.diff import align
from freshet.crawler.compare.history import Layout, PageMemory, SlotHistory
from freshet.crawler.read.documents import VersionDifference, volatile_blocks
from freshet.crawler.reduce.blocks import Blocks
from freshet.crawler.reduce.sketch import sketch
from freshet.storage.queries.page import StoredVersion
from freshet.storage.records import PageHistory
from tests.console import as_json, freshet
from tests.crawler.reduce.pages import blocks_of
from tests.storage.small_store import HOST, SmallStore
from tests.storage.versioned_store import html, version, versioned_store

T0 = 1_760_000_000.0
OLD = html("It costs 10.99 today.", "Delivery takes two days.", "Write to us.")
NEW = html("Write to us.", "It costs 11.49 today.", "Delivery takes two days.", "<b>Sale</b> now!")
diff = partial(freshet, "diff", "--db")


@pytest.fixture
def store(tmp_path: Path) -> SmallStore:
    """A page with three versions (the third is noise), one of noise alone, and a young one."""
    store = versioned_store(tmp_path / "crawl.db", T0)
    page = store.page("/offer")
    version(store, page, T0, OLD, kind="new")
    version(store, page, T0 + 86_400, NEW)
    version(store, page, T0 + 172_800, NEW.replace(b"<title>T", b"<title>New"), kind="unchanged")
    noisy = store.page("/noisy")
    version(store, noisy, T0, OLD.replace(b"T<", b"N<"), kind="new")
    version(store, noisy, T0 + 1, OLD.replace(b"T<", b"M<"), kind="unchanged")
    young = store.page("/young")
    version(store, young, T0, OLD.replace(b"T<", b"Y<"))
    store.page("/other-name", alias_of=page, alias_kind="permanent", alias_at=T0)
    return store


def test_the_versions_are_told_block_by_block_and_word_by_word(store: SmallStore) -> None:
    result = diff(store.path, f"{HOST}/offer", "1", "2")
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert "version 1, " in result.stdout
    assert "1 edited, 1 moved, 1 added" in result.stdout
    assert "> Write to us.  (moved up)" in lines
    assert "~ It costs [-10.99-]{+11.49+} today." in lines
    assert "+ Sale now!" in lines


def test_what_somebody_ignored_in_a_browser_is_no_difference(store: SmallStore) -> None:
    store.insert("site_setting", match="one.example", key="ignore", value='["p"]', at=T0)
    store.path.chmod(0o400)
    assert "only the frame" in diff(store.path, f"{HOST}/offer", "1", "2").stdout
    listed = as_json("changes", "--db", store.path, "--since", "2025-01-01")["changes"]
    assert any(it["summary"].startswith("what differed is ignored now") for it in listed)


def test_without_numbers_it_is_the_last_change(store: SmallStore) -> None:
    told = as_json("diff", "--db", store.path, f"{HOST}/offer")
    assert (told["before"]["number"], told["after"]["number"]) == (1, 2)
    assert told["blocks"]


def test_noise_is_shown_when_it_is_asked_for(store: SmallStore) -> None:
    told = as_json("diff", "--db", store.path, f"{HOST}/offer", "--all")
    assert (told["before"]["number"], told["after"]["number"]) == (2, 3)
    assert not told["blocks"]


def test_json_has_the_changed_blocks_and_counts_all(store: SmallStore) -> None:
    told = as_json("diff", "--db", store.path, f"{HOST}/offer", "1", "2")
    assert told["counts"] == {"kept": 2, "edited": 1, "moved": 1, "added": 1, "removed": 0}
    assert [block["change"] for block in told["blocks"]] == ["moved", "edited", "added"]
    edited = told["blocks"][1]
    assert {"before": "10.99", "after": "11.49"} in edited["runs"]


def test_versions_are_named_from_the_end_and_by_date(store: SmallStore) -> None:
    second_day = datetime.fromtimestamp(T0 + 90_000, UTC).isoformat()
    by_date, from_end = (
        json.loads(diff(store.path, f"{HOST}/offer", "--json", "--", *names).stdout)
        for names in (("1", second_day), ("-2", "-1"))
    )
    assert by_date == from_end
    assert by_date["after"]["number"] == 2


def test_an_alias_stands_for_its_page(store: SmallStore) -> None:
    assert diff(store.path, f"{HOST}/other-name", "1", "2").stdout == (
        diff(store.path, f"{HOST}/offer", "1", "2").stdout
    )


def test_html_is_one_page_that_loads_nothing_and_trusts_nobody(
    tmp_path: Path, store: SmallStore
) -> None:
    page = store.page("/hostile")
    version(store, page, T0, html("a quiet page that says nothing &amp; more"))
    version(store, page, T0 + 1, html("a quiet page that says &lt;script&gt; &amp; more"))
    file = tmp_path / "diff.html"
    result = diff(store.path, f"{HOST}/hostile", "--html", str(file))
    assert result.exit_code == 0
    written = file.read_text("utf-8")
    assert "<script" not in written
    assert "&lt;" in written
    assert 'src="' not in written
    assert "default-src 'none'" in written
    assert "<ins>" in written
    assert "written:" in result.stderr


def test_html_may_go_to_stdout(store: SmallStore) -> None:
    assert diff(store.path, f"{HOST}/offer", "1", "2", "--html", "-").stdout.startswith(
        "<!doctype html>"
    )


def test_context_says_how_much_is_shown_of_what_stayed(store: SmallStore) -> None:
    none = diff(store.path, f"{HOST}/offer", "1", "2", "--context", "0").stdout
    assert "… 1 unchanged" in none
    assert "Heading" not in none
    assert "Heading" in diff(store.path, f"{HOST}/offer", "1", "2", "--context", "1").stdout


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("/young",), 0, "has one version in the store; a diff needs two"),
        (("/missing",), 1, "is not known"),
        (("/offer", "9"), 2, "version 9: accepted are 1 to 3, or from the end -1 to -2"),
        (("/noisy",), 0, "has not changed significantly; --all compares its 2 versions"),
        (("/offer", "yesterday"), 2, "yesterday: no version or time; accepted are 1 to 3"),
        (("/offer", "1999-01-01"), 1, "1999-01-01: no version then; the first is of"),
        (("/offer", "--json", "--html", "x"), 2, "give --html or --json, not both"),
        (("/offer", "--html", "/no/such/folder/x.html"), 1, "cannot be written"),
    ],
)
def test_what_cannot_be_is_told_in_one_line(
    store: SmallStore, arguments: tuple[str, ...], code: int, message: str
) -> None:
    result = diff(store.path, HOST + arguments[0], *arguments[1:])
    assert result.exit_code == code
    assert message in result.stderr
    assert result.stderr.count("\n") == 1


def test_bytes_that_are_not_kept_are_told(store: SmallStore) -> None:
    page = store.page("/pruned")
    version(store, page, T0, html("gone"), keep=False)
    version(store, page, T0 + 1, html("there"))
    result = diff(store.path, f"{HOST}/pruned")
    assert result.exit_code == 1
    assert "the bytes of version 1 are not kept" in result.stderr


# -- what differs at every visit -----------------------------------------------

PAGE = "<main><h1>Tea</h1><p>{}</p><div class=seen>Drunk {} times.</div></main>"


def blocks(text: str, times: int) -> Blocks:
    return blocks_of(PAGE.format(text, times))


def history(of: Blocks, volatile: int) -> PageHistory:
    """That of a page whose block at this position was replaced at every visit."""
    slot = Layout.made(of.places, of.places).items()[volatile].slots[0]
    memory = PageMemory(9, {slot: SlotHistory(1, 0b111, 3, volatile=True)})
    return PageHistory(sketch(of.texts, of.places).to_bytes(), memory.to_bytes(), 0)


@pytest.fixture
def difference() -> VersionDifference:
    old, new = blocks("Green tea.", 7), blocks("Black tea.", 8)
    before, after = (
        StoredVersion(n, n, 100.0 * n, "text/html", body_kept=True, same_text=False) for n in (1, 2)
    )
    volatile = volatile_blocks(history(new, 2), new)
    return VersionDifference(
        "https://a.example/", before, after, align(old.texts, new.texts), volatile
    )


def test_the_blocks_at_volatile_slots_are_known(difference: VersionDifference) -> None:
    assert difference.volatile == {2}
    changed = [b for b in difference.blocks if difference.is_volatile(b)]
    assert [block.text for block in changed] == ["Drunk 8 times."]


def test_a_page_without_memory_has_none() -> None:
    new = blocks("Green tea.", 7)
    assert volatile_blocks(PageHistory(b"", None, 0), new) == frozenset()


def test_on_a_screen_they_are_named_and_not_marked_word_by_word(
    difference: VersionDifference, capsys: pytest.CaptureFixture[str]
) -> None:
    print_difference(difference, 2, 300.0)
    lines = capsys.readouterr().out.splitlines()
    assert "~ Drunk 8 times.  (differs at every visit)" in lines
    assert "~ [-Green-]{+Black+} tea." in lines


def test_on_a_page_they_are_dimmed(difference: VersionDifference) -> None:
    page = page_of(difference, 2)
    assert '<p class="block edited volatile">' in page
    assert page.count("differs at every visit") == 1


def test_json_says_so(difference: VersionDifference) -> None:
    told = difference.as_json()["blocks"]
    assert isinstance(told, list)
    assert [block["volatile"] for block in told] == [False, True]
