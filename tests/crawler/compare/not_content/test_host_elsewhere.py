"""A short text that URLs of four names show is doubtful, and nothing more."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from freshet.crawler.compare.not_content.host import HostJudge, ShownTexts
from freshet.crawler.compare.not_content.page import NotContent, Proof
from tests.crawler.compare.not_content.facts import facts_of
from tests.crawler.compare.not_content.test_check import Checked
from tests.crawler.stages import SITE, answer

#: Stop pages in languages, or words, that no list has.
STOPS = (
    "Tovuti hii imezuiwa kwa amri ya mahakama, tafadhali wasiliana na mtoa huduma wako",
    "ეს ვებგვერდი დაბლოკილია კომისიის გადაწყვეტილების საფუძველზე",
    "Բովանդակությունը հասանելի չէ ձեր երկրում, կապվեք օպերատորի հետ",
    "ይህ ድረ ገጽ በሕግ መሠረት ተዘግቷል እባክዎ አቅራቢዎን ያነጋግሩ",
    "Энэ вэб хуудас хориотой байна та оператортойгоо холбогдоно уу",
    "Tha an làrach seo dùinte le òrdugh, cuir fios gu do sholaraiche",
    "Mae'r safle hwn wedi ei gau drwy orchymyn, holwch eich darparwr",
    "Daim ntawv no raug kaw los ntawm tsoom fwv, hu rau koj lub tuam txhab",
    "This leaf has blown off the tree and the squirrels know no more than we",
    "The lighthouse keeper has gone to bed and wishes all ships a calm night",
)


def body(text: str) -> bytes:
    return f"<title>Net</title><body><main><p>{text}</p></main></body>".encode()


async def seen(host: Checked, pages: Sequence[str]) -> list[NotContent | None]:
    checked = [await host.see(n, body(text)) for n, text in enumerate(pages, 1)]
    assert not any(each.verdict or each.retractions for each in checked)
    return [each.doubt for each in checked]


@pytest.mark.parametrize("text", STOPS)
async def test_the_fourth_name_that_shows_a_text_makes_it_doubtful(text: str) -> None:
    others = [f"A letter about the weather, number {n}, from a reader" for n in range(4)]
    found = await seen(Checked(), [*others, text, text, text, text, text])
    assert found[:7] == [None] * 7
    for each in found[7:]:
        assert each is not None
        assert each.proofs == {Proof.ELSEWHERE}
        assert "four names" in each.why


@pytest.mark.parametrize("text", STOPS[:3])
async def test_a_probe_that_shows_it_too_takes_nothing_back(text: str) -> None:
    host = Checked()
    await seen(host, [text] * 4)
    host.nowhere = answer(body(text), f"{SITE}/nowhere")
    await seen(host, [text] * 6)


@pytest.mark.parametrize(
    "paths",
    [
        ["/about", "/about-us", "/imprint"],
        [f"/about?from={n}" for n in range(9)],
        [f"/{lang}/about" for lang in ("en", "de", "fr", "it", "es")],
        [f"/{n}.0/about.html" for n in range(9)],
        [f"/{n}/index.html" for n in "aaa"],
    ],
)
def test_copies_of_a_page_are_content(paths: Sequence[str]) -> None:
    shown, text = ShownTexts(), f"<main><p>{STOPS[-1]}</p></main>"
    assert not any(shown.is_elsewhere(facts_of(text, path=path)) for path in paths)


def test_pages_of_hardly_any_words_are_no_text_that_several_names_show() -> None:
    shown = ShownTexts()
    for path in "abcdefgh":
        assert not shown.is_elsewhere(facts_of("<main><p>Soon</p></main>", path=f"/{path}"))
        assert not shown.is_elsewhere(facts_of("<img src=/a.png>", path=f"/{path}"))


@given(st.lists(st.sampled_from("abcdefg"), max_size=20))
def test_it_depends_on_the_names_alone(names: list[str]) -> None:
    shown, text = ShownTexts(), f"<main><p>{STOPS[0]}</p></main>"
    for n, name in enumerate(names, 1):
        expected = len(set(names[:n])) >= 4
        assert shown.is_elsewhere(facts_of(text, path=f"/{name}")) is expected


@pytest.mark.parametrize("at", range(3))
def test_it_is_no_second_proof(at: int) -> None:
    judge = HostJudge()
    facts = facts_of("<h1>Page not found</h1><p>Sorry, it could not be found.</p>", path=f"/{at}")
    alone = judge.judge(facts, 0.0)
    assert alone is not None
    assert Proof.ELSEWHERE not in alone.proofs
