"""What a host's pages tell of one another."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from freshet.crawler.compare.not_content.host import (
    ANSWER_LASTS_S,
    PROBE_LASTS_S,
    HostJudge,
    PageFingerprint,
    SimilarPages,
    probe_url,
)
from freshet.crawler.compare.not_content.page import (
    NotContentKind,
    PageFacts,
    Proof,
    is_another_text,
)
from freshet.crawler.reduce.sketch import sketch
from tests.crawler.compare.not_content.facts import facts_of

AT = 1_790_000_000.0
BARE = "<h1>The loom stands still</h1><p>Our weavers wish you a fine day and many blankets.</p>"
WEAK = "<h1>The loom stands still</h1><p>That item has left the building some time ago.</p>"
WEAK += "<p>Our weavers wish you a fine day and many warm blankets in the winter.</p>"


def bare(path: str, *, before: bytes | None = None) -> PageFacts:
    return facts_of(BARE, title="Loom", path=path, before=before)


def back(path: str) -> PageFacts:
    """The page at a URL that had content of its own before."""
    return bare(path, before=path.encode())


@pytest.fixture
def judge() -> HostJudge:
    return HostJudge()


def test_a_page_like_that_of_an_impossible_url_is_a_soft_404(judge: HostJudge) -> None:
    judge.learn_probe(bare("/things/zq7"), AT)
    found = judge.judge(bare("/things/chair"), AT + 1)
    assert found is not None
    assert found.kind is NotContentKind.SOFT_404
    assert "cannot exist" in found.why
    assert found.proofs == {Proof.PROBE}


def test_what_a_host_shows_for_impossible_urls_is_compared_until_it_is_old(
    judge: HostJudge,
) -> None:
    """A small host is rarely asked again."""
    judge.learn_probe(bare("/things/zq7"), AT)
    later = HostJudge.from_bytes(judge.to_bytes())
    later.learn_probe(None, AT + PROBE_LASTS_S + 1)
    found = later.judge(bare("/things/chair"), AT + 2 * PROBE_LASTS_S)
    assert found is not None
    assert found.proofs == {Proof.PROBE}
    assert later.judge(bare("/things/desk"), AT + ANSWER_LASTS_S + 1) is None


def test_the_root_may_show_what_a_host_shows_everywhere(judge: HostJudge) -> None:
    judge.learn_probe(bare("/things/zq7"), AT)
    assert judge.judge(bare("/"), AT + 1) is None


def test_an_empty_shell_is_no_soft_404_although_the_probe_shows_it_too(judge: HostJudge) -> None:
    shell = "<div id=root>Loading</div>"
    judge.learn_probe(facts_of(shell, title="App", path="/zq7"), AT)
    assert judge.judge(facts_of(shell, title="App", path="/a"), AT + 1) is None


def test_a_probe_is_wanted_once_and_again_when_its_answer_is_old(judge: HostJudge) -> None:
    assert judge.wants_probe(AT)
    judge.learn_probe(None, AT)
    assert not judge.wants_probe(AT + 1)
    assert not judge.wants_probe(AT + PROBE_LASTS_S + 1)
    assert judge.wants_probe(AT + ANSWER_LASTS_S + 1)
    judge.judge(facts_of(WEAK, path="/doubtful"), AT + PROBE_LASTS_S)
    assert judge.wants_probe(AT + PROBE_LASTS_S + 1)


def test_a_doubtful_page_is_worth_another_probe_but_not_ever_more(judge: HostJudge) -> None:
    for n in range(10):
        if not judge.wants_probe(AT + n):
            break
        judge.learn_probe(None, AT + n)
        judge.judge(facts_of(WEAK, path=f"/items/{n}"), AT + n)
    assert len(judge.probes) <= 3
    assert not judge.wants_probe(AT + 20)


def test_a_page_in_place_of_different_contents_is_doubtful(judge: HostJudge) -> None:
    found = [judge.judge(back(f"/things/{n}"), AT) for n in "abcd"]
    assert found[0] is None
    assert all(each is not None and each.proofs == {Proof.RETURN} for each in found[1:])


def test_a_page_in_place_of_one_content_is_content(judge: HostJudge) -> None:
    """Two URLs of a page that was rewritten."""
    found = [judge.judge(bare(f"/things/{n}", before=b"one"), AT) for n in "abcd"]
    assert found == [None] * 4


def test_a_page_of_words_that_returns_is_refused(judge: HostJudge) -> None:
    wall = "<h1>Page not found</h1><p>Sorry, the page you requested could not be found.</p>"
    found = [
        judge.judge(facts_of(wall, title="Not found", path=f"/{n}", before=n.encode()), AT)
        for n in "abc"
    ]
    assert [each is not None and each.is_refused for each in found] == [False, True, True]


def test_a_probe_proves_the_doubtful_pages_before_it_and_no_others(judge: HostJudge) -> None:
    judge.judge(back("/things/lamp"), AT)
    assert judge.judge(back("/things/desk"), AT) is not None
    assert judge.judge(bare("/shelf"), AT) is None
    assert judge.judge(facts_of(WEAK, path="/items/oak"), AT) is None
    found = judge.learn_probe(bare("/things/zq7"), AT + 1)
    assert list(found) == ["https://shop.example/things/desk"]
    assert all(each.is_refused for each in found.values())
    assert judge.learn_probe(bare("/things/zq8"), AT + 2) == {}


def test_the_root_is_no_block_page_because_a_host_shows_it_everywhere(judge: HostJudge) -> None:
    assert judge.judge(bare("/"), AT) is None
    assert judge.learn_probe(bare("/things/zq7"), AT + 1) == {}
    assert judge.judge(bare("/things/chair"), AT + 2) is not None


def test_pages_of_hardly_any_words_are_not_taken_for_one_another(judge: HostJudge) -> None:
    judge.learn_probe(facts_of("<p>Log in</p>", title="Log in", path="/zq7"), AT)
    assert judge.judge(facts_of("<p>Log in</p>", title="Chairs", path="/a"), AT) is None


def test_pages_alike_at_a_first_visit_are_kept_without_a_cue(judge: HostJudge) -> None:
    assert [judge.judge(bare(f"/things/{n}"), AT) for n in "abcdef"] == [None] * 6


def test_pages_that_were_alike_as_content_stay_content(judge: HostJudge) -> None:
    for n in "abc":
        judge.judge(bare(f"/things/{n}"), AT)
    again = [judge.judge(back(f"/things/{n}"), AT + 9) for n in "defg"]
    assert again == [None] * 4


def test_empty_categories_are_kept(judge: HostJudge) -> None:
    for name in ("chairs", "tables", "lamps", "rugs", "clocks"):
        main = f"<h1>{name}</h1><p>There are no products in this category yet.</p>"
        assert judge.judge(facts_of(main, title=name, path=f"/c/{name}"), AT) is None


def test_a_product_in_several_categories_is_kept(judge: HostJudge) -> None:
    main = "<h1>Blue chair</h1><p>Made of oak and wool.</p><form><button>Buy</button></form>"
    for name in ("chairs", "sale", "new", "oak", "gifts", "wool"):
        assert (
            judge.judge(facts_of(main, title="Blue chair", path=f"/{name}/blue-chair"), AT) is None
        )


def test_judging_a_page_twice_teaches_nothing(judge: HostJudge) -> None:
    judge.judge(back("/a"), AT)
    before = judge.to_bytes()
    assert judge.judge(back("/a"), AT) is None
    assert judge.to_bytes() == before


def test_a_new_family_has_a_place_among_large_ones(judge: HostJudge) -> None:
    for n in range(40):
        main = "".join(
            f"<p>{word}{chr(97 + n % 26)}{chr(97 + n // 26)} stands</p>" for word in "xyzuvw"
        )
        judge.judge(facts_of(main, title=f"t{n}", path=f"/{n}a"), AT)
        judge.judge(facts_of(main, title=f"t{n}", path=f"/{n}b"), AT)
    found = [judge.judge(back(f"/things/{n}"), AT) for n in "abc"]
    assert found[-1] is not None
    assert len(judge.to_bytes()) <= 12_000


def test_an_edited_text_is_no_other_text() -> None:
    old = "the quick brown fox jumps over the lazy dog by the river near the old mill".split()
    text = " ".join(old)
    assert is_another_text(sketch([text]), sketch([text + " today"])) is False
    assert is_another_text(sketch([text]), sketch(["Please log in to read on."])) is True


HASHES = st.integers(0, 2**32 - 1)
PRINTS = st.builds(
    PageFingerprint,
    st.lists(HASHES, max_size=48, unique=True).map(lambda hashes: tuple(sorted(hashes))),
    st.integers(0, 0xFFFF), HASHES,
)  # fmt: skip
TIMES = st.floats(0, 4e9)
SITES = st.builds(
    HostJudge,
    st.lists(st.tuples(TIMES, st.none() | PRINTS), max_size=3).map(tuple),
    st.lists(
        st.builds(
            SimilarPages,
            PRINTS,
            TIMES,
            st.lists(HASHES, max_size=4, unique=True).map(tuple),
            st.lists(HASHES, max_size=4, unique=True).map(tuple),
            st.booleans(),
        ),
        max_size=14,
    ).map(tuple),
)


@given(SITES)
def test_what_is_known_survives_its_bytes_which_are_few(judge: HostJudge) -> None:
    data = judge.to_bytes()
    assert HostJudge.from_bytes(data) == judge
    assert len(data) <= 12_000


@given(SITES, st.data())
def test_bytes_cut_short_or_of_another_version_are_refused(
    judge: HostJudge, data: st.DataObject
) -> None:
    whole = judge.to_bytes()
    cut = data.draw(st.integers(0, len(whole) - 1))
    with pytest.raises(ValueError, match="damaged" if cut else "version"):
        HostJudge.from_bytes(whole[:cut])
    with pytest.raises(ValueError, match="damaged"):
        HostJudge.from_bytes(whole + b"x")
    with pytest.raises(ValueError, match="version"):
        HostJudge.from_bytes(b"\xff" + whole[1:])


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("https://h.example/shop/chair.html?id=3", "https://h.example/shop/zq7.html"),
        ("https://h.example/shop/chair", "https://h.example/shop/zq7"),
        ("https://h.example/shop/sofas/", "https://h.example/shop/zq7/"),
        ("https://h.example/shop/", "https://h.example/shop/zq7/"),
        ("https://h.example/", "https://h.example/zq7"),
        ("https://h.example", "https://h.example/zq7"),
        ("https://h.example/v1.2.3-notes", "https://h.example/zq7"),
    ],
)
def test_a_probe_stands_beside_the_page_with_the_same_ending(url: str, expected: str) -> None:
    assert probe_url(url, "zq7") == expected
