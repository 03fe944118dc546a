"""Which pages say what another one says, in whatever order they come."""

import random
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from freshet.crawler.admission import copies as copies_module
from freshet.crawler.admission.admit import Admission, Scope
from freshet.crawler.admission.copies import Copies
from freshet.crawler.admission.traps import TrapLimits
from freshet.crawler.reduce.sketch import Sketch, sketch
from freshet.storage.entries import CopyFinding
from freshet.storage.records import DueUrl

SITE = "https://a.example"


def text(seed: int, *, end: str = "", backwards: bool = False) -> Sketch:
    chance = random.Random(seed)
    blocks = [" ".join(f"w{chance.randrange(9_999)}" for _ in range(40)) for _ in range(6)]
    return sketch((blocks[::-1] if backwards else blocks) + ([end] if end else []))


class Site:
    """Pages that are visited; ``store`` is what an earlier run left."""

    def __init__(self, *store: tuple[int, str, bytes]) -> None:
        self.recalled: list[int] = []
        self._store = store
        self._ids: dict[str, int] = {}
        self.admission = Admission(Scope("host", [f"{SITE}/"]), TrapLimits())
        self._copies = Copies(self.admission, self)

    async def texts(self, host_id: int, limit: int) -> Sequence[tuple[int, str, bytes]]:
        self.recalled.append(host_id)
        return self._store[:limit]

    def id_of(self, path: str) -> int:
        return self._ids.setdefault(path, len(self._ids) + 1)

    async def visit(self, path: str, text: Sketch, host_id: int = 1) -> tuple[CopyFinding, ...]:
        due = DueUrl(self.id_of(path), SITE + path, SITE + path, host_id, 0.0)
        return (await self._copies.find(due, text))[0]

    async def copied(self, path: str, text: Sketch) -> dict[str, str | None]:
        """The originals by the paths of the pages of which something was found."""
        found = await self.visit(path, text)
        paths = {number: each for each, number in self._ids.items()}
        return {paths[f.page_id]: paths[f.original_id] if f.original_id else None for f in found}


@pytest.fixture
def site() -> Site:
    return Site()


async def test_an_order_a_printer_version_and_a_session_are_copies(site: Site) -> None:
    assert await site.copied("/list?c=1", text(1)) == {"/list?c=1": None}
    assert await site.copied("/list?c=1&print=1", text(1)) == {"/list?c=1&print=1": "/list?c=1"}
    turned = text(1, backwards=True)
    assert await site.copied("/list?c=1&sort=up", turned) == {"/list?c=1&sort=up": "/list?c=1"}


async def test_pages_and_products_that_differ_in_a_line_are_no_copies(site: Site) -> None:
    for n in range(20):
        assert await site.copied(f"/list?page={n}", text(n + 50)) == {f"/list?page={n}": None}
        path = f"/product?id={n}"
        assert await site.copied(path, text(1, end=f"Article number {n}")) == {path: None}


async def test_versions_and_products_that_are_nearly_the_same_are_no_copies(site: Site) -> None:
    await site.visit("/manual", text(1))
    for n in range(20):
        path = f"/manual?version={n}"
        assert await site.copied(path, text(1, end=f"This is version {n}")) == {path: None}


async def test_texts_of_few_words_are_alike_by_chance(site: Site) -> None:
    for n in range(4):
        path = f"/photo?id={n}"
        assert await site.copied(path, sketch(["Previous picture", "Next picture"])) == {path: None}


async def test_a_copy_that_comes_before_its_original_is_found_out(site: Site) -> None:
    session = "/list?c=1&sid=0123456789abcdef1"
    assert await site.copied(session, text(1)) == {session: None}
    assert await site.copied("/list?c=1", text(1)) == {"/list?c=1": None, session: "/list?c=1"}


async def test_pages_without_parameters_count_nowhere_but_are_originals(site: Site) -> None:
    assert await site.copied("/about", text(1)) == {}
    assert await site.copied("/imprint", text(1)) == {}
    assert await site.copied("/about?ref=x", text(1)) == {"/about?ref=x": "/about"}


async def test_hosts_are_apart(site: Site) -> None:
    await site.visit("/a?x=1", text(1), host_id=1)
    (found,) = await site.visit("/b?x=1&y=1", text(1), host_id=2)
    assert found.original_id is None


async def test_after_a_restart_the_store_says_what_is_known_once() -> None:
    site = Site((77, f"{SITE}/list", text(1).to_bytes()))
    for n in range(3):
        (found,) = await site.visit(f"/list?print={n}", text(1))
        assert (found.original_id, found.pattern) == (77, "/list?print")
    assert site.recalled == [1]


async def test_memory_is_bounded_and_what_is_forgotten_is_an_original(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(copies_module, "_DIGESTS", 6)
    site = Site()
    for n in range(10):
        await site.visit(f"/{n}", text(n))
    assert len(site._copies._digests) == 6
    assert await site.copied("/9?x=1", text(9)) == {"/9?x=1": "/9"}
    assert await site.copied("/1?x=1", text(1)) == {"/1?x=1": None}


async def test_a_page_is_the_original_of_its_last_text_only(site: Site) -> None:
    for n in range(10):
        await site.visit("/list", text(n))
    assert len(site._copies._digests) == 2
    assert await site.copied("/other?x=1", text(8)) == {"/other?x=1": None}
    assert await site.copied("/list?x=1", text(9)) == {"/list?x=1": "/list"}
    # What a simpler page has taken over stays its own.
    assert await site.copied("/b?x=1", text(20)) == {"/b?x=1": None}
    assert await site.copied("/b", text(20)) == {"/b?x=1": "/b"}
    await site.visit("/b?x=1", text(21))
    assert await site.copied("/b?y=1", text(20)) == {"/b?y=1": "/b"}


_PAGES = st.lists(
    st.tuples(st.integers(0, 3), st.sampled_from(["", "&print=1", "&sort=up", "&sort=up&print=1"])),
    unique=True,
    min_size=1,
)


@given(_PAGES)
async def test_in_any_order_each_text_has_one_original_that_is_simplest(
    pages: list[tuple[int, str]],
) -> None:
    site, original = Site(), dict[str, str | None]()
    for number, suffix in pages:
        original |= await site.copied(f"/list?c={number}{suffix}", text(number))
    for number in {n for n, _ in pages}:
        own = [f"/list?c={n}{suffix}" for n, suffix in pages if n == number]
        alone = [path for path in own if original[path] is None]
        assert len(alone) == 1
        assert alone[0].count("&") == min(path.count("&") for path in own)
        assert {original[path] for path in own} - {None} <= set(own)


WARES = [" ".join(f"ware{n} has words of its own".split()) for n in range(40)]


def listing(title: str, *numbers: int) -> Sketch:
    return sketch([title, *(WARES[n] for n in numbers)])


async def barren(site: Site, path: str, text: Sketch) -> bool:
    return any(f.is_barren for f in await site.visit(path, text) if f.page_id == site.id_of(path))


async def test_lists_of_known_wares_are_barren_where_their_urls_are_combinations(
    site: Site,
) -> None:
    for path in ("/shop/red/wool", "/shop/wool/red", "/shop/red", "/shop/wool"):
        site.admission.pattern(SITE + path)
    await site.visit("/shop", listing("Shop", *range(20)))
    assert not await barren(site, "/shop/red", listing("Red", 1, 2, 3, 4, 5))
    assert await barren(site, "/shop/red/wool", listing("Red and wool", 2, 4, 5, 7, 9))
    # With wares that no other list shows.
    assert not await barren(site, "/shop/wool/red", listing("Wool and red", 2, 4, 5, 30))


async def test_months_without_events_are_barren_and_others_are_not(site: Site) -> None:
    turn = ["Previous month", "Next month"]
    assert not await barren(site, "/calendar/2026/01", sketch(["January 2026", *turn]))
    assert await barren(site, "/calendar/2026/02", sketch(["February 2026", *turn]))
    concert = "A concert in the old hall"
    assert not await barren(site, "/calendar/2026/03", sketch(["March 2026", concert, *turn]))
    assert await barren(site, "/calendar?month=2026-04", sketch(["April 2026", *turn]))


async def test_pictures_with_few_words_are_not_barren(site: Site) -> None:
    paths = [f"/photo?album={a}&number={n}" for a in range(4) for n in range(4)]
    for path in (*paths, *paths):
        site.admission.pattern(SITE + path)
        assert not await barren(site, path, sketch(["Previous picture", "Next picture"]))


async def test_articles_with_a_template_are_never_barren(site: Site) -> None:
    common = [f"Sentence {n} of what stands on all pages of this site" for n in range(6)]
    paths = [f"/{a}/{b}/{c}" for a in "xyz" for b in "uvw" for c in "rst"]
    for path in (*paths, *paths):
        site.admission.pattern(SITE + path)
    assert site.admission.pattern(SITE + paths[0]) is not None
    for path in paths:
        text = sketch([f"Title of {path}", *common, f"The only line of {path} of its own"])
        assert not await barren(site, path, text)


@given(st.lists(st.lists(st.sampled_from("abcdefgh"), max_size=6), max_size=12))
async def test_a_month_is_barren_if_no_more_than_its_heading_is_new(pages: list[list[str]]) -> None:
    site, before = Site(), set[str]()
    for number, blocks in enumerate(pages, 1):
        is_known = len(set(blocks) - before) <= 1 and not before.isdisjoint(blocks)
        assert await barren(site, f"/calendar/2026/{number:02}", sketch(blocks)) is is_known
        before |= set(blocks)


async def test_a_page_does_not_make_its_own_blocks_old(site: Site) -> None:
    for _ in range(2):
        assert not await barren(site, "/calendar/2026/01", sketch(["a", "b"]))


async def test_blocks_that_are_forgotten_look_new(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(copies_module, "_BITS", 2)
    site, blocks = Site(), [f"block {n}" for n in range(64)]
    for month in ("01", "02"):
        assert not await barren(site, f"/calendar/2026/{month}", sketch(blocks))


@given(
    st.lists(st.tuples(st.integers(1, 3), st.lists(st.integers(0, 40)))), st.sampled_from([2, 8])
)
def test_the_core_takes_blocks_as_a_table_of_pages_does(
    pages: list[tuple[int, list[int]]], bits: int
) -> None:
    scatter, known = 0x9E3779B97F4A7C15, dict[int, tuple[int, int]]()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(copies_module, "_BITS", bits)
        shown = copies_module._Shown()
        for page_id, (host_id, numbers) in enumerate(pages, 1):
            digests = np.array([number * 0x9E37 for number in numbers], np.uint64)
            said = Sketch(0, np.zeros(128, np.uint32), digests, digests, b"")
            marks = sorted(
                {((d * scatter + host_id) * scatter) % 2**64 | 1 for d in digests.tolist()}
            )
            found = {mark: known.get(mark >> (64 - bits), (0, 0)) for mark in marks}
            owners = {
                m: page if known_mark == m else page_id for m, (known_mark, page) in found.items()
            }
            known |= {mark >> (64 - bits): (mark, owner) for mark, owner in owners.items()}
            new, others = shown.take(host_id, page_id, said)
            assert others.tolist() == [owner for owner in owners.values() if owner != page_id]
            assert new == len(marks) - len(others)
