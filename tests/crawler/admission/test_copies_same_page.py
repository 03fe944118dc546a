"""Pages that show the same, whatever was chosen as their main text, and such as do not."""

import pytest

from freshet.crawler.admission import copies
from freshet.crawler.admission.copies import CopyCandidate, ParameterPairs, show_the_same

URL = "https://h.example/a"
MAIN = ["The oak grows slowly in poor soil.", "Its wood is hard and lasts for centuries."]
MENU = ["Home", "Trees", "Contact the gardeners"]


def page(
    body: str, *texts: str, url: str = URL, kind: str = "text/html; charset=utf-8"
) -> CopyCandidate:
    return CopyCandidate(url, texts, body.encode(), kind)


def html(*paragraphs: str, menu: str = "") -> str:
    said = "".join(f"<p>{each}</p>" for each in paragraphs)
    return f"<html><head><title>Oaks</title></head><body><nav>{menu}</nav>{said}</body></html>"


PLAIN = page(html(*MAIN, menu="<br>".join(MENU)), *MAIN)

SAME = {
    "a menu in the main text": page(html(*MAIN, menu="<br>".join(MENU)), *MENU, *MAIN),
    "a paragraph that is not chosen": page(html(*MAIN), MAIN[0]),
    "a marked word": page(
        html(MAIN[0].replace("grow", "<mark class='x'>grow</mark>"), MAIN[1]), MAIN[1]
    ),
    "a word in bold": page(html(MAIN[0].replace("oak", "<b>oak</b>"), MAIN[1]), MAIN[1]),
    "other white space": page(html(*(each.replace(" ", "\n ") for each in MAIN)), MAIN[0]),
    "entities": page(html(*(each.replace("a", "&#97;") for each in MAIN)), MAIN[0]),
    "its address": page(
        html(*MAIN, f"Printed from {URL}?print=1"), *MAIN, f"Printed from {URL}?print=1"
    ),
    "scripts": page(html(*MAIN) + "<script>var x = '<p>another</p>'</script>", MAIN[1]),
    "comments": page(html(*MAIN) + "<!-- <p>another</p> -->", MAIN[1]),
    "a rule of signs as a block": page(html(*MAIN, "* * *"), *MAIN, "* * *"),
    "capitals": page(html(*(each.upper() for each in MAIN)), MAIN[0].upper()),
}


@pytest.mark.parametrize("kind", SAME)
def test_what_stands_on_both_pages_is_the_same(kind: str) -> None:
    assert show_the_same(PLAIN, SAME[kind])
    assert show_the_same(SAME[kind], PLAIN)


OTHERS = {
    "a sentence more": html(*MAIN, "It was planted in 1810."),
    "a sentence less": html(MAIN[0]),
    "another word": html(MAIN[0].replace("slowly", "fast"), MAIN[1]),
    "another number": html(MAIN[0], f"{MAIN[1]} 300 years."),
    "another language": html("Die Eiche wächst langsam.", "Ihr Holz ist hart."),
    "a version": html(*MAIN, "This is version 3.12."),
    "another order of words": html("In poor soil grows the oak slowly.", MAIN[1]),
    "an empty page": html(),
    "a price": html(*MAIN, "Now 20 €"),
    "a line with another host's address": html(*MAIN, "Printed from https://other.example/b"),
}


@pytest.mark.parametrize("kind", OTHERS)
def test_what_one_page_lacks_is_not_the_same(kind: str) -> None:
    paragraphs = [each.split("</p>")[0] for each in OTHERS[kind].split("<p>")[1:]]
    other = page(OTHERS[kind], *paragraphs)
    assert not show_the_same(PLAIN, other)
    assert not show_the_same(other, PLAIN)


async def learn(
    pairs: ParameterPairs, store: dict[int, CopyCandidate], *, is_kept: bool
) -> dict[str, bool]:
    """Of each document a plain page and one with a menu in its main text."""
    found: dict[str, bool] = {}
    for n in range(6):
        main = [f"{each} {n}" for each in MAIN]
        body = html(*main, menu="<br>".join(MENU))
        for k, (query, texts) in enumerate((("", main), ("?view=print", [*MENU, *main]))):
            url, page_id = f"https://h.example/{n}{query}", 2 * n + k
            store[page_id] = page(body, *texts, url=url)
            learnt = await pairs.learn(
                1, page_id, url, (" ".join(texts).encode(),), is_short=False,
                shown=store[page_id] if is_kept else None,
            )  # fmt: skip
            found.update({each.name: each.makes_copies for each in learnt})
    return found


@pytest.mark.parametrize("is_kept", [True, False], ids=["of this run", "of the store"])
async def test_main_texts_that_differ_by_choice_are_equal_pairs(is_kept: bool) -> None:
    store: dict[int, CopyCandidate] = {}

    async def again(page_id: int, _url: str) -> CopyCandidate | None:
        return store.get(page_id)

    assert await learn(ParameterPairs(4, again), store, is_kept=is_kept) == {"?view=print": True}


async def test_without_the_bytes_texts_that_differ_are_pages_that_differ() -> None:
    async def again(_page_id: int, _url: str) -> CopyCandidate | None:
        return None

    found = await learn(ParameterPairs(4, again), {}, is_kept=False)
    assert found == {"?view": False, "?view=print": False}


async def test_large_pages_are_not_looked_at_once_more(monkeypatch: pytest.MonkeyPatch) -> None:
    store: dict[int, CopyCandidate] = {}

    async def again(page_id: int, _url: str) -> CopyCandidate | None:
        return store.get(page_id)

    monkeypatch.setattr(copies, "MOST_BYTES", 64)
    found = await learn(ParameterPairs(4, again), store, is_kept=True)
    assert found == {"?view": False, "?view=print": False}
