"""The ladder from the main text on: what is read when, and what is to be stored."""

from collections.abc import Set
from dataclasses import replace
from typing import Any

import pytest

from freshet.crawler.compare.detection import SAMPLE_PAGES, Content, Detector, Verdict
from freshet.crawler.compare.history import PageMemory
from freshet.crawler.compare.minor import STOOD
from freshet.crawler.reduce.blocks import Blocks, alike
from freshet.crawler.reduce.page import having
from freshet.crawler.reduce.sketch import Sketch, sketch
from freshet.storage.entries import REBASED
from freshet.storage.records import Digests, DueUrl, PageHistory

URL = "https://a.example/"
PAGE: Content = (b"<p>", "text/html")
OLD = [f"Paragraph {n} of some prose." for n in range(10)]
NEW = [*OLD[:-1], "An edited paragraph."]


class Store:
    """What a detector asks, and that it did."""

    def __init__(self, last: PageHistory | None, before: PageHistory | None = None) -> None:
        self.asked: list[str] = []
        self._last = last
        self._before = before
        self.read_again: Sketch | None = None
        self.last_text: Blocks | None = None
        self.last_content: Content | None = (b"", "text/html")
        self.wholes: list[Blocks | None] = []
        self.pages = 6
        self.others: list[PageHistory] = []

    async def history(self, page_id: int) -> PageHistory | None:
        self.asked.append("page")
        return self._last

    async def predecessor(self, page_id: int) -> PageHistory | None:
        self.asked.append("predecessor")
        return self._before

    async def sample(self, host_id: int, most: int) -> list[PageHistory]:
        assert most == SAMPLE_PAGES
        self.asked.append("host")
        if self.others:
            return self.others
        return [self._last] * self.pages if self._last is not None else []

    async def not_content(self, host_id: int) -> bytes | None:
        return None

    async def channels(self, page_id: int) -> None:
        return None

    async def content(self, page_id: int) -> Content | None:
        self.asked.append("content")
        return self.last_content

    async def again(self, due: DueUrl) -> Sketch | None:
        return self.read_again

    async def text(self, due: DueUrl, content: Content) -> Blocks | None:
        assert content is self.last_content
        self.asked.append("text")
        return self.last_text

    async def standing(self, due: DueUrl, content: Content, digests: Set[int]) -> Blocks | None:
        is_last = content is self.last_content
        self.asked.append("last standing" if is_last else "standing")
        whole = self.wholes[is_last]
        return None if whole is None else having(whole, digests)

    def detector(self, significant_below: float = 1.0) -> Detector:
        return Detector(self, significant_below=significant_below)


def history(texts: list[str], still: int = 0) -> PageHistory:
    return PageHistory(sketch(texts).to_bytes(), None, still)


def due(last: list[str] | None) -> DueUrl:
    digests = None if last is None else Digests(b"body", sketch(last).text_digest)
    return DueUrl(1, URL, URL, 1, 0.0, digests=digests)


async def test_a_history_that_was_read_already_is_not_read_again() -> None:
    store = Store(None)
    found = await store.detector().detect(due(OLD), sketch(NEW), 1.0, history(OLD))
    assert found.kind == "changed"
    assert store.asked == ["host"]


async def test_of_a_first_text_only_its_old_url_is_asked_for_and_of_an_equal_one_nothing() -> None:
    store = Store(history(OLD))
    assert await store.detector().detect(due(None), sketch(NEW), 1.0) == Verdict("new")
    assert store.asked == ["predecessor"]
    found = await store.detector().detect(due(OLD), sketch(OLD), 1.0)
    assert found == Verdict("unchanged", "text", keeps_sketch=False)
    assert store.asked == ["predecessor"]


async def test_a_text_of_another_extraction_is_a_new_baseline_that_forgets_the_blocks() -> None:
    store, known = Store(history(OLD)), due(OLD)
    for text in (OLD, NEW):
        found = await store.detector().detect(known, sketch(text), 1.0, text_version="2")
        assert (found.kind, found.keeps_sketch, found.reason) == ("new", True, REBASED)
        assert found.memory == PageMemory().to_bytes()
    assert store.asked == []
    again = replace(known, digests=Digests(b"body", sketch(OLD).text_digest, "2"))
    found = await store.detector().detect(again, sketch(NEW), 1.0, text_version="2")
    assert found.kind == "changed"


async def test_where_the_last_bytes_are_kept_both_texts_are_read_in_the_same_way() -> None:
    store, known = Store(history(OLD)), due(OLD)
    store.read_again = sketch(NEW)
    for text, kind in ((NEW, "unchanged"), (OLD, "changed")):
        found = await store.detector().detect(known, sketch(text), 1.0, text_version="2")
        assert (found.kind, found.keeps_sketch) == (kind, True)


async def test_what_moved_here_is_not_compared_across_extractions() -> None:
    store = Store(None, before=history(OLD))
    moved = due(None)
    found = await store.detector().detect(moved, sketch(NEW), 1.0, text_version="2")
    assert found == Verdict("new")


async def test_a_differing_text_is_judged_by_the_history_of_its_page() -> None:
    store = Store(history(OLD, still=4))
    detector = store.detector()
    detector.visited(1)
    found = await detector.detect(due(OLD), sketch(NEW), 1.0)
    assert (found.kind, found.rung) == ("changed", "blocks")
    assert found.memory is not None
    assert PageMemory.from_bytes(found.memory).comparisons == 5
    assert store.asked == ["page", "host"]


async def test_the_sample_of_a_host_is_read_once_for_its_first_texts() -> None:
    store = Store(history(OLD))
    detector = store.detector()
    for times in (1, 2):
        for _ in range(4):
            await detector.detect(due(OLD), sketch(NEW), 1.0)
        assert store.asked.count("host") == times


async def test_the_pages_of_a_small_host_are_read_for_each_differing_text() -> None:
    store = Store(history(OLD))
    store.pages = 5
    detector = store.detector()
    for times in (1, 2, 3):
        await detector.detect(due(OLD), sketch(NEW), 1.0)
        assert store.asked.count("host") == times


def blocks(texts: list[str]) -> Blocks:
    return alike(tuple(texts), "paragraph", 0)


@pytest.mark.parametrize(
    ("new", "rung"),
    [
        (["Home", "Nix"], "minor"), (["Home"], "minor"), (["Home", "Nix (Beta)", "Forum"], "minor"),
        (["Home", "Nix: 10 €"], "blocks"), (["Home", "Nix", "Write to a@b.example"], "blocks"),
        (["Home", "Nix, which is a long line of words that all the pages now have"], "blocks"),
    ],
)  # fmt: skip
async def test_a_menu_of_a_host_with_two_pages_is_minor(new: list[str], rung: str) -> None:
    def page(menu: list[str], own: str) -> Blocks:
        texts = (*menu, *(f"{own}: {line}" for line in OLD))
        places = (*(7,) * len(menu), *(1,) * len(OLD))
        return replace(alike(texts, "text", 1), places=places)

    before, after = page(["Home", "Nix (Beta)"], "One"), page(new, "One")
    known = [before, page(["Home", "Nix (Beta)"], "Two")]
    kept = [PageHistory(sketch(it.texts, it.places).to_bytes(), None, 0) for it in known]
    store = Store(kept[0])
    store.others, store.last_text = kept, before
    digests = Digests(b"body", sketch(before.texts).text_digest)
    last = DueUrl(1, URL, URL, 1, 0.0, digests=digests)
    found = await store.detector().detect(
        last, sketch(after.texts, after.places), 1.0, text=after, content=PAGE
    )
    assert found.rung == rung


async def test_the_last_text_is_read_only_where_a_difference_may_be_minor() -> None:
    store, quoted = Store(history(OLD)), [*OLD[:-1], OLD[-1].rstrip(".")]
    detector = store.detector()
    for new in (OLD, quoted):
        await detector.detect(due(OLD), sketch(new), 1.0)
    assert "text" not in store.asked
    found = await detector.detect(due(OLD), sketch(quoted), 1.0, text=blocks(quoted), content=PAGE)
    assert (found.kind, store.asked.count("text")) == ("changed", 1)
    store.last_text = blocks(OLD)
    found = await detector.detect(due(OLD), sketch(quoted), 1.0, text=blocks(quoted), content=PAGE)
    assert (found.kind, found.rung, found.keeps_sketch) == ("unchanged", "minor", True)
    assert found.memory is not None
    assert PageMemory.from_bytes(found.memory).deltas == ()
    found = await detector.detect(due(OLD), sketch(NEW), 1.0, text=blocks(NEW), content=PAGE)
    assert found.kind == "changed"
    store.last_text = blocks(NEW)
    found = await detector.detect(due(OLD), sketch(quoted), 1.0, text=blocks(quoted), content=PAGE)
    assert found.kind == "changed"


BOTH = ["content", "last standing"]


@pytest.mark.parametrize(
    ("old", "new", "asked"),
    [
        # A block that came has a word that the last bytes lack.
        ((OLD[:-1], b"Paragraphs of prose"), (NEW, b"an EDITED PARAGRAPH, edited"), BOTH[:1]),
        # All of its words were there, or are divided by markup on both.
        ((OLD[:-1], b"edited paragraph."), (NEW, b"an edited paragraph."), BOTH),
        ((OLD[:-1], b"a"), (NEW, b"ed&shy;ited para&shy;graph"), BOTH),
    ],
)
async def test_what_has_a_new_word_is_looked_for_in_bytes_alone(
    old: tuple[list[str], bytes], new: tuple[list[str], bytes], asked: list[str]
) -> None:
    store = Store(history(old[0]))
    store.last_content, store.wholes = (old[1], "text/html"), [blocks(new[0]), blocks(old[0])]
    told: Any = {"text": blocks(new[0]), "content": (new[1], "text/html")}
    found = await store.detector().detect(due(old[0]), sketch(new[0]), 1.0, **told)
    assert (found.rung, store.asked[2:]) == ("blocks", asked)


async def test_nothing_is_looked_for_where_the_last_bytes_are_not_kept() -> None:
    store = Store(history(OLD))
    store.last_content = None
    found = await store.detector().detect(
        due(OLD), sketch(SHORT), 1.0, text=blocks(SHORT), content=PAGE
    )
    assert (found.rung, store.asked) == ("blocks", ["page", "host", "content"])


SHORT, LAST = OLD[:-1], OLD[-1]
READ = ["standing", "last standing"]


@pytest.mark.parametrize(
    ("content", "wholes", "rung", "asked"),
    [
        # A block went, and came; both versions have it.
        ((OLD, SHORT), (OLD, [*SHORT, LAST]), "minor", READ),
        ((SHORT, OLD), ([*SHORT, LAST], OLD), "minor", READ[::-1]),
        # It is not on the new page, or was not on the old one.
        ((OLD, SHORT), (OLD, SHORT), "blocks", READ[:1]),
        ((SHORT, OLD), (SHORT, OLD), "blocks", READ[1:]),
        # It stands there once more, or once less.
        ((SHORT, OLD), ([*SHORT, LAST], [*OLD, LAST]), "blocks", READ[::-1]),
        ((OLD, SHORT), ([*OLD, LAST], [*SHORT, LAST]), "blocks", READ),
        # Two of them changed places beside the content.
        ((OLD, OLD[:-2]), (OLD, [*OLD[:-2], LAST, OLD[-2]]), "blocks", READ),
        # One block replaced another: an edit, whatever stands beside it.
        ((OLD, NEW), ([*OLD, NEW[-1]], [*NEW[:-1], LAST, NEW[-1]]), "blocks", []),
        # Selectors choose the content.
        ((OLD, SHORT), (OLD, None), "blocks", READ[:1]),
        ((SHORT, OLD), ([*SHORT, LAST], None), "blocks", READ[::-1]),
    ],
)
async def test_what_stands_on_both_versions_of_a_page_was_not_edited(
    content: tuple[list[str], list[str]],
    wholes: tuple[list[str] | None, list[str] | None],
    rung: str,
    asked: list[str],
) -> None:
    old, new = content
    store = Store(history(old))
    store.wholes = [
        None if texts is None else blocks(["Home", *texts, "Imprint"]) for texts in wholes[::-1]
    ]
    told: Any = {"text": blocks(new), "content": PAGE}
    found = await store.detector().detect(due(old), sketch(new), 1.0, **told)
    assert (found.rung, [it for it in store.asked if "standing" in it]) == (rung, asked)
    assert found.kind == ("unchanged" if rung == "minor" else "changed")
    assert (found.detail == STOOD) is (rung == "minor")


async def test_a_text_that_had_none_before_is_a_change_by_its_bytes() -> None:
    store = Store(None)
    without = replace(due(OLD), digests=Digests(b"body", None))
    found = await store.detector().detect(without, sketch(NEW), 1.0)
    assert found == Verdict("changed", "body")
    lost = await store.detector().detect(due(OLD), sketch(NEW), 1.0)
    assert lost == Verdict("changed", "body")


async def test_a_page_that_moved_is_compared_with_what_it_was() -> None:
    store = Store(None, before=history(OLD))
    moved = due(None)
    same = await store.detector().detect(moved, sketch(OLD), 1.0)
    assert (same.kind, same.rung, same.keeps_sketch) == ("unchanged", "text", True)
    edited = await store.detector().detect(moved, sketch(NEW), 1.0)
    assert (edited.kind, edited.blocks_added) == ("changed", 1)
    assert edited.memory is not None
    assert edited.detail == "it stood at another URL before"


async def test_another_text_behind_a_redirect_is_a_page_of_its_own() -> None:
    store = Store(None, before=history(OLD))
    other = sketch(["This is the home page of a shop that sells bicycles and bells."])
    for detector in (store.detector(), Store(None).detector()):
        assert await detector.detect(due(None), other, 1.0) == Verdict("new")


async def test_under_a_threshold_small_changes_are_none() -> None:
    detector = Store(history(OLD)).detector(significant_below=0.5)
    found = await detector.detect(due(OLD), sketch(NEW), 1.0)
    assert (found.kind, found.rung) == ("unchanged", "blocks")
