from freshet.crawler.synthetic_web.content import Place
from freshet.crawler.synthetic_web.difficult_sites import notes
from freshet.crawler.synthetic_web.web import START_AT, SyntheticWeb, WebSpec
from tests.crawler.synthetic_web.browsing import get, main_text, responder_for

WEB = SyntheticWeb.of(1, [notes(WebSpec().plot("notes"))], START_AT, START_AT + 1)


def test_duplicates_show_what_the_original_shows_and_name_it() -> None:
    responder = responder_for(WEB)
    targets = ("/original", "/duplicate", "/duplicate?view=wide")
    bodies = [get(responder, Place("notes", target), START_AT).body for target in targets]
    assert len({main_text(body) for body in bodies}) == 1
    assert all(
        b'<link rel="canonical" href="http://notes.localhost/original">' in b for b in bodies
    )


def test_directives_come_in_the_page_and_in_the_header() -> None:
    responder = responder_for(WEB)
    in_page = get(responder, Place("notes", "/nofollow"), START_AT)
    in_header = get(responder, Place("notes", "/noindex-by-header"), START_AT)
    assert b'<meta name="robots" content="noindex, nofollow">' in in_page.body
    assert in_page.header("X-Robots-Tag") is None
    assert in_header.header("X-Robots-Tag") == "noindex, noarchive"
