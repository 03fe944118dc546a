"""The not-content check: what a page shows, what its host showed before, and what a probe shows."""

import asyncio
from dataclasses import replace
from random import Random

import pytest

from freshet.crawler.compare.not_content.check import CheckedPage, NotContentCheck
from freshet.crawler.compare.not_content.host import HostJudge
from freshet.crawler.compare.not_content.page import NotContentKind
from freshet.crawler.reduce.page import ParsedPage
from freshet.crawler.reduce.parser_process import Parser
from freshet.crawler.reduce.sketch import sketch
from freshet.storage.records import Digests, Doubt, DueUrl, FetchResult, PageHistory
from tests.crawler.stages import NOON, NOT_FOUND, PAGE, PROSE, SITE, Past, answer

#: A page that does not say that it is none, but shows the same for any URL.
HOME = b"<title>Shop</title><body><p>Welcome to our shop of bells.</p></body>"

#: One that says so, and nothing else proves it.
SAYS_SO = (
    b"<title>Page not found</title><body><h1>Page not found</h1>"
    b"<p>Sorry, the page you requested could not be found.</p></body>"
)
DOUBT = Doubt("soft_404", 0.9, "its title says that there is nothing here")


def due(number: int, digests: Digests | None = None) -> DueUrl:
    url = f"{SITE}/{number}"
    return DueUrl(number, url, url, host_id=1, due_at=NOON, digests=digests)


class Checked:
    """A check of one host's pages; ``probes`` are the URLs that were asked for."""

    def __init__(self, nowhere: FetchResult | None = None) -> None:
        self.past = Past()
        self.probes: list[str] = []
        self.nowhere = nowhere
        self._parser = Parser()
        self._check = NotContentCheck(self.past, self._parser, Random(0), probes=self)

    async def ask(self, host_id: int, url: str) -> FetchResult | None:
        self.probes.append(url)
        await asyncio.sleep(0)
        return self.nowhere

    async def see(
        self,
        number: int,
        body: bytes,
        digests: Digests | None = None,
        kind: str = "text/html",
        doubt: Doubt | None = None,
    ) -> CheckedPage:
        result = answer(body, f"{SITE}/{number}", at=NOON + number, Content_Type=kind)
        parsed = await self._parser.parse(body, result.url, kind)
        assert isinstance(parsed, ParsedPage)
        text = sketch(parsed.blocks.texts, parsed.blocks.places)
        known = replace(due(number, digests), doubt=doubt)
        return await self._check.check(known, result, parsed, text)


async def test_a_page_of_many_words_is_content_and_costs_no_probe() -> None:
    host = Checked()
    long = PAGE.replace(PROSE.encode(), 10 * PROSE.encode())
    assert [await host.see(n, long) for n in range(3)] == [CheckedPage()] * 3
    assert host.probes == []


async def test_plain_text_is_content_whatever_it_says() -> None:
    assert await Checked().see(1, b"404 Not Found", kind="text/plain") == CheckedPage()


async def test_a_page_that_says_what_it_is_is_known_by_itself() -> None:
    checked = await Checked().see(1, NOT_FOUND)
    assert checked.verdict is not None
    assert checked.verdict.kind is NotContentKind.SOFT_404
    assert checked.not_content is not None


async def test_what_a_host_shows_for_any_url_is_doubtful() -> None:
    host = Checked(answer(HOME, f"{SITE}/nowhere"))
    await host.see(1, HOME)
    second = await host.see(2, HOME)
    assert len(host.probes) == 1
    assert (second.verdict, second.retractions) == (None, ())
    assert second.doubt is not None
    assert second.doubt.kind is NotContentKind.SOFT_404
    assert HostJudge.from_bytes(second.not_content).shows_pages(NOON + 3)


async def test_a_host_that_answers_honestly_is_probed_once() -> None:
    host = Checked(FetchResult(f"{SITE}/nowhere", "gone", NOON, 0.1, 404))
    assert [(await host.see(n, HOME)).verdict for n in range(1, 5)] == [None] * 4
    assert len(host.probes) == 1


async def test_pages_of_a_host_that_come_together_share_its_probe() -> None:
    host = Checked(answer(SAYS_SO, f"{SITE}/nowhere"))
    found = await asyncio.gather(*(host.see(n, SAYS_SO) for n in range(1, 5)))
    assert len(host.probes) == 1
    assert all(each.verdict is not None for each in found)


async def test_the_history_that_had_to_be_read_is_passed_on() -> None:
    host = Checked()
    old = sketch(["An article of some words that stood here until yesterday."] * 3)
    host.past.histories[1] = history = PageHistory(old.to_bytes(), None, 0)
    checked = await host.see(1, NOT_FOUND, Digests(b"old", old.text_digest))
    assert checked.history == history
    assert checked.verdict is not None


async def seen_again(body: bytes, doubt: Doubt | None, host: Checked) -> CheckedPage:
    """The result for a page whose text was captured before."""
    parsed = await Parser().parse(body, f"{SITE}/1", "text/html")
    assert isinstance(parsed, ParsedPage)
    text = sketch(parsed.blocks.texts, parsed.blocks.places)
    return await host.see(1, body, Digests(b"old", text.text_digest), doubt=doubt)


async def test_a_wall_whose_text_was_doubtful_takes_its_captures_back() -> None:
    checked = await seen_again(NOT_FOUND, DOUBT, Checked())
    (retraction,) = checked.retractions
    assert (retraction.page_id, retraction.at, retraction.reason) == (1, None, "soft_404")
    assert checked.verdict is not None


async def test_a_wall_whose_text_was_content_takes_nothing_back() -> None:
    checked = await seen_again(NOT_FOUND, None, Checked())
    assert checked.verdict is not None
    assert checked.retractions == ()


@pytest.mark.parametrize("urls", range(2, 12))
async def test_what_other_urls_show_takes_no_capture_back(urls: int) -> None:
    host = Checked()
    for number in range(urls, 0, -1):
        old = sketch([f"An article of some words that stood at {number} until yesterday."] * 3)
        host.past.histories[number] = PageHistory(old.to_bytes(), None, 0)
        checked = await host.see(number, SAYS_SO, Digests(b"old", old.text_digest))
        assert (checked.verdict is None) == (number == urls)
        assert checked.retractions == ()
    assert (await seen_again(SAYS_SO, DOUBT, host)).retractions == ()


async def test_a_probe_takes_the_doubtful_captures_of_a_run_back() -> None:
    host = Checked(FetchResult(f"{SITE}/nowhere", "gone", NOON, 0.1, 404))
    first = await host.see(1, SAYS_SO)
    assert first.doubt is not None
    host.nowhere = answer(SAYS_SO, f"{SITE}/nowhere")
    second = await host.see(2, SAYS_SO)
    assert second.verdict is not None
    assert {each.page_id: each.at for each in second.retractions} == {1: NOON + 1}


#: Words that say what a block page says, among as many others as a notice has.
NOTICE = SAYS_SO.replace(b"</body>", f"<p>{PROSE}</p><p>{PROSE}</p></body>".encode())


async def test_words_that_were_content_are_no_sign_while_they_stay_the_same() -> None:
    assert (await Checked().see(1, NOTICE)).doubt is not None
    assert await seen_again(NOTICE, None, Checked()) == CheckedPage()


async def test_few_words_are_judged_each_time_as_their_markup_may_tell() -> None:
    assert (await seen_again(SAYS_SO, None, Checked())).doubt is not None


async def test_what_a_probe_shows_is_judged_although_it_was_content() -> None:
    host = Checked(answer(NOTICE, f"{SITE}/nowhere"))
    await host.see(2, NOTICE)
    assert host.probes
    found = await seen_again(NOTICE, None, host)
    assert found.verdict is not None
    assert "for a URL that cannot exist" in found.verdict.why


#: A long text that a page had, block by block.
CLAUSES = [
    " ".join(f"{word}{n}" for word in "we say here what each of us".split()) for n in range(20)
]


async def replaced_by(said: str, old: list[str], doubt: Doubt | None = None) -> CheckedPage:
    """The result for a page that had another text."""
    host, before = Checked(), sketch(old)
    host.past.histories[1] = PageHistory(before.to_bytes(), None, 0)
    body = f"<html><title>A page</title><body><main>{said}</main></body></html>".encode()
    return await host.see(1, body, Digests(b"old", before.text_digest), doubt=doubt)


@pytest.mark.parametrize(
    "said",
    [
        "", "<h1>Vivaldi est en travaux.</h1><p>A très vite.</p>", "<p>Redirecting to the new home",
        "<p>Nous n'avons plus cette page.</p><a href=/>Retour</a>", "<p>Pronto de volta.</p>",
        "<p>Whoops, our bad. We are on it.</p><button>Refresh</button>", "<p>no backend</p>",
        "<p>Loading the app …</p>", "<p>Diese Seite ruht.</p>", "<p>ページを準備中です。</p>",
        "<p>Bad Gateway</p>", "<p>Click <a href=/new>here</a> if nothing happens.</p>",
    ],
)  # fmt: skip
async def test_a_few_words_in_place_of_a_long_text_are_doubtful(said: str) -> None:
    checked = await replaced_by(said, CLAUSES)
    assert checked.verdict is None
    assert checked.doubt is not None
    assert checked.doubt.proofs
    assert checked.retractions == ()


@pytest.mark.parametrize(
    ("said", "old"),
    [
        # A block stayed: the page was shortened.
        (f"<p>{CLAUSES[0]}</p><p>The other clauses are void.</p>", CLAUSES),
        # The text before was short as well.
        ("<p>We open on Monday.</p>", CLAUSES[:3]),
        # The new one is not short.
        ("".join(f"<p>Rule {n} is that nobody may enter here after dark.</p>" for n in range(8)),
         CLAUSES),
        # Nothing was there before.
        ("<p>We open on Monday.</p>", []),
    ],
)  # fmt: skip
async def test_other_new_texts_are_content(said: str, old: list[str]) -> None:
    assert (await replaced_by(said, old)).doubt is None


async def test_what_raised_a_doubt_by_its_place_is_doubtful_while_it_stays() -> None:
    first = (await replaced_by("<p>Pronto de volta.</p>", CLAUSES)).doubt
    assert first is not None
    doubt = Doubt(str(first.kind), first.probability, first.why)
    page = b"<html><title>A page</title><body><main><p>Pronto de volta.</p></main>%b</body></html>"
    again = await seen_again(page % b"<!-- 2 -->", doubt, Checked())
    assert again.doubt == first
    # Where words raised it, they are judged anew.
    again = await seen_again(page % b"<!-- 2 -->", DOUBT, Checked())
    assert again.doubt is None
    other = await seen_again(page.replace(b"Pronto", b"Presto") % b"", None, Checked())
    assert other.doubt is None


#: Error pages as hosts wrote them anew, each short, and one with the host's menu on it.
ANOTHER = [
    "<p>Presto de volta.</p>", "<p>Wir bauen um.</p>", "<h1>Oh!</h1><p>So etwas.</p>", "",
    "<p>Cette adresse a changé de nom.</p>", "<p>Soon more.</p><a href=/>Home</a>",
    "<p>ページはありません。</p>", "<p>Bad Gateway</p><p>4d2</p>", "<p>Redirecting …</p>",
    "<p>Loading the new app</p>", "<p>Nada por aquí.</p><button>Volver</button>",
]  # fmt: skip
MENU = "".join(f"<li><a href=/{n}>Section {n} of the magazine</a>" for n in range(40))


@pytest.mark.parametrize("said", ANOTHER)
async def test_other_few_words_in_place_of_doubtful_few_are_doubtful(said: str) -> None:
    first = (await replaced_by("<p>Pronto de volta.</p>", CLAUSES)).doubt
    assert first is not None
    doubt = Doubt(str(first.kind), first.probability, first.why)
    checked = await replaced_by(said, ["Pronto de volta."], doubt)
    assert checked.verdict is None
    assert checked.doubt is not None
    # What is read there again is long, or something else raised the doubt.
    long = "".join(f"<p>{text}</p>" for text in CLAUSES)
    assert (await replaced_by(long, ["Pronto de volta."], doubt)).doubt is None
    assert (await replaced_by("<p>We moved.</p>", ["Pronto de volta."], DOUBT)).doubt is None


@pytest.mark.parametrize(
    "said",
    ["<p>The address is no longer valid, or its content is gone.", MENU],
    ids=["few", "many"],
)
async def test_a_new_page_in_place_of_doubtful_ones_is_doubtful(said: str) -> None:
    host = Checked()
    why = "2 URLs with different content before show it now"
    old = sketch(["This page is not available, try another of our pages."])
    body = f"<html><title>Magazine</title><body><main><ul>{said}</ul></main></body></html>".encode()
    found = []
    for number in (1, 2):
        host.past.histories[number] = PageHistory(old.to_bytes(), None, 0)
        known = Doubt("error_page", 0.9, why)
        found.append(await host.see(number, body, Digests(b"old", old.text_digest), doubt=known))
    assert found[0].doubt is None
    assert found[1].doubt is not None
    assert why in found[1].doubt.why
    # It stays while the text stays, however long it is.
    doubt = Doubt("error_page", 0.1, found[1].doubt.why)
    assert (await seen_again(body, doubt, host)).doubt is not None


#: Pages of more than sixty words, as hosts show them in place of what they took away.
SHOWN = {
    "menu": MENU[:900],
    "home": "".join(f"<p>Rooms with a view of the valley, number {n}.</p>" for n in range(12)),
    "shop": "".join(f"<h3>Bell {n}</h3><p>Cast of bronze, for doors.</p>" for n in range(15)),
    "note": f"<p>{' '.join(f'This house has moved, as {n} others did.' for n in range(9))}</p>",
}


@pytest.mark.parametrize("said", SHOWN.values(), ids=SHOWN)
async def test_the_first_url_of_a_page_that_others_show_later_is_doubtful_too(said: str) -> None:
    host = Checked()
    body = f"<html><title>Inn</title><body><main><ul>{said}</ul></main></body></html>".encode()

    async def replaced(number: int) -> CheckedPage:
        old = sketch([f"{text} of {number}" for text in CLAUSES[number:]])
        host.past.histories[number] = PageHistory(old.to_bytes(), None, 0)
        return await host.see(number, body, Digests(b"old", old.text_digest))

    assert (await replaced(1)).doubt is None
    assert (await seen_again(body, None, host)).doubt is None
    assert (await replaced(2)).doubt is not None
    again = await seen_again(body, None, host)
    assert again.doubt is not None
    assert (again.verdict, again.retractions) == (None, ())
    assert "URLs with different content before" in again.doubt.why


async def test_a_page_that_always_stood_at_its_url_is_content_whatever_others_show_later() -> None:
    host = Checked()
    body = (
        f"<html><title>Inn</title><body><main><ul>{MENU[:900]}</ul></main></body></html>".encode()
    )
    await host.see(1, body)
    for number in (2, 3):
        old = sketch([f"{text} of {number}" for text in CLAUSES])
        host.past.histories[number] = PageHistory(old.to_bytes(), None, 0)
        await host.see(number, body, Digests(b"old", old.text_digest))
    assert await seen_again(body, None, host) == CheckedPage()


async def test_a_page_that_comes_back_from_several_error_pages_is_content() -> None:
    host = Checked()
    said = SHOWN["home"]
    body = f"<html><title>Inn</title><body><main>{said}</main></body></html>".encode()
    why = "a few words stand in place of all that it said"
    for number, doubt in enumerate((None, Doubt("error_page", 0.5, why), None)):
        error = sketch([f"Error {number}: this page is not available, please come back later."])
        host.past.histories[1] = PageHistory(error.to_bytes(), None, 0)
        checked = await host.see(1, body, Digests(b"old", error.text_digest), doubt=doubt)
        assert checked.doubt is None
