"""Pages that the core reads by one call are those that are read step by step."""

from contextlib import suppress
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from freshet.crawler.reduce import native
from freshet.crawler.reduce.page import _at_once, _in_steps, parse
from freshet.crawler.reduce.sketch import sketch
from freshet.crawler.reduce.tree import NO_HINTS, SelectorHints
from tests.crawler.reduce.kinds import KINDS, SHELLS, page
from tests.crawler.reduce.test_tree import PIECES

URL = "https://h.example/a/b/?q=1"
#: Markup at which Python is asked something, or that the head is read for.
ASKED = """
<title>Ä&nbsp;page</title> | <title></title> | <svg><title>T</title></svg> | <h1>Ä page</h1>
<h1>A page</h1> | <title>A page</title> | <base href=/x/> | <base href> | <base href="ftp://x/">
<base target=a> | <base href="//u:p@h.example/y/z?q"> | <html lang=de> | <html xml:lang=fr lang>
<meta name=robots content=noindex> | <meta name=" Freshet " content=a>
<meta name=robotß content=b>
<noscript><meta http-equiv=refresh content="0;url=/n"></noscript> | <meta charset=utf-8>
<meta http-equiv=Refresh content="3;url=/r"> | <meta http-equiv=content-language content=it>
<meta http-equiv=content-language content="a,b"> | <meta http-equiv=refresh>
<link rel=canonical href=/c> | <link rel="Alternate x" type="application/rss+xml;q" href=feed>
<link rel=feed href=/f.json> | <link rel="next stylesheet" href=/s>
<link rel=next href="n?p=2">
<link rel=prev type="text/HTML;x" href=p title="Be&#10;fore"> | <link rel=Ⅷ href=/v>
<link href=/w>
<link rel=alternate type=image/png href=/i> | <link rel=hub href=//hub.example/>
<link rel=self href>
<a href=../é?ü>é</a> | <a href="x;y=1">y</a> | <a href="/(S(1))/">s</a> | <a href=mailto:a@b>m</a>
<area href=q title="A&#10;b"> | <iframe src=/fr title=F></iframe> | <a rel=nofollow href=z>z</a>
<p>3 hours ago</p> | <p>Last updated: 2024-01-02</p> | <p>vor 3 Stunden</p> | <p>Last updated: é</p>
<p>e&#769;t&#233;</p> | <p>&#173;</p> | <p>a☐b☑</p> | <li>☐ Milk</li> | <p>© 2024 X</p>
<time datetime=2024-01-02>now</time> | <time datetime="3 hours">x</time> | <time>y</time>
<button>Read more</button> | <button>€ 20</button> | <button>Fold</button> | <p>Read more</p>
<input type=checkbox checked> | <div hidden> | <div hidden=until-found> | <div aria-hidden=true>
<div aria-hidden=true class=tab-pane> | <div class=ünï id=ß> | <x-y class=z>
<p hidden class=tabsy>
<p>ÀÉÎ Straße</p> | <p>漢字かな</p> | <p>İΣς</p> | <p>١٢٣</p> | <section role=tabpanel hidden>
<p>Some prose, long enough to count as a text of its own, and it ends here.</p> | <nav> | </nav>
<a data-cfemail=0d6c4d6f23627f6a>x</a> | <x-z><template shadowrootmode=open><p>in</template></x-z>
""".replace("\n", " | ").split(" | ")[1:-1]


def agree(html: str, most: int = 50_000) -> None:
    body = html.encode("utf-8", "replace")
    found, wanted = _at_once(body, URL, "freshet", most), _in_steps(body, URL, NO_HINTS, most)
    for name in ("title", "language", "canonical", "feeds", "hub_links", "meta_refresh"):
        assert getattr(found.head, name)() == getattr(wanted.head, name)(), name
    assert found.head.robots_meta("Freshet") == wanted.head.robots_meta("Freshet")
    assert found.head.base_url == wanted.head.base_url
    assert (found.links, found.is_cut) == (wanted.links, wanted.is_cut)
    assert found.blocks == wanted.blocks
    assert found.sketch == sketch(wanted.blocks.texts, wanted.blocks.places)
    (tree, pieces), (other_tree, others) = found.chosen(), wanted.chosen()
    assert tree == other_tree
    assert [(it.kind, it.nodes, it.holder, it.link) for it in pieces] == [
        (it.kind, it.nodes, it.holder, it.link) for it in others
    ]


@given(st.lists(st.sampled_from([*ASKED, *PIECES]), max_size=40), st.booleans())
def test_any_markup_is_read_alike(parts: list[str], is_cut: bool) -> None:
    agree("".join(parts), 2 if is_cut else 50_000)


def test_pages_with_much_to_ask_are_read_alike() -> None:
    rng = Random(57)
    for _ in range(60):
        agree(" ".join(rng.choices(ASKED, k=200)))


@pytest.mark.parametrize("shell", SHELLS)
def test_pages_of_every_kind_are_read_alike(shell: str) -> None:
    for cases in KINDS.values():
        for case in cases.values():
            agree(page(shell, case.html, is_big=False))


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, MemoryError, RecursionError])
def test_what_goes_wrong_with_an_answer_is_raised(
    monkeypatch: pytest.MonkeyPatch, error: type[BaseException]
) -> None:
    def fail(question: bytes) -> bytes:
        raise error(len(question))

    body = "<title>é</title><base href=/x/><h1>é</h1><p>Text, and more of it.".encode()
    for about in (0, 4):
        with monkeypatch.context() as patch:
            answers = [fail if i == about else it for i, it in enumerate(native._ANSWERS)]
            patch.setattr(native, "_ANSWERS", answers)
            with pytest.raises(error):
                parse(body, URL, "text/html")
    assert parse(body, URL, "text/html").title == "é"


def test_answers_of_another_form_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    body = (
        "<title>é</title><base href=/x/><div class=é><h1>é</h1><p>Text, and more of it, é."
        "<time datetime=2024>n</time><button>B</button><a href=é>é</a></div>"
    ).encode()
    for about in range(len(native._ANSWERS)):
        for wrong in (b"", b"\0\1\2"):

            def said(question: bytes, wrong: bytes = wrong) -> bytes:
                return wrong

            with monkeypatch.context() as patch:
                others = [said if i == about else it for i, it in enumerate(native._ANSWERS)]
                patch.setattr(native, "_ANSWERS", others)
                # Nothing is read that is not there: the checked build would stop.
                with suppress(MemoryError, ValueError):
                    parse(body, URL, "text/html")


def test_pages_of_sites_with_selectors_have_the_same_head_and_links() -> None:
    body = b"<title>T</title><a href=x>X</a><div class=a><p>One.</div><div class=b><p>Two.</div>"
    plain = parse(body, URL, "text/html")
    chosen = parse(body, URL, "text/html", hints=SelectorHints(include=(".b",)))
    assert (chosen.title, chosen.links) == (plain.title, plain.links)
    assert chosen.blocks.texts == ("Two.",)
