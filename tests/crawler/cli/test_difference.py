"""What differs at every visit is shown, and told apart."""

import pytest
from selectolax.lexbor import LexborHTMLParser

from freshet.crawler.cli.diff import page_of, print_difference
from freshet.crawler.compare.diff import align
from freshet.crawler.compare.history import PageMemory, SlotHistory
from freshet.crawler.compare.layout import Layout
from freshet.crawler.documents import VersionDifference, volatile_blocks
from freshet.crawler.reduce.main_text import main_text
from freshet.crawler.reduce.markup import Blocks, read
from freshet.crawler.reduce.sketch import sketch
from freshet.storage.queries.page import StoredVersion
from freshet.storage.records import PageHistory

PAGE = "<main><h1>Tea</h1><p>{}</p><div class=seen>Drunk {} times.</div></main>"


def blocks(text: str, times: int) -> Blocks:
    return main_text(read(LexborHTMLParser(PAGE.format(text, times)).html or ""))


def history(of: Blocks, volatile: int) -> PageHistory:
    """That of a page whose block at this position was replaced at every visit."""
    slot = Layout(of.places, of.places).items()[volatile].slots[0]
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
