"""What a page says by itself, and when that is enough."""

from dataclasses import replace

import pytest

from freshet.crawler.compare.not_content.host import HostJudge
from freshet.crawler.compare.not_content.page import NotContentKind, PageFacts, says_nothing
from tests.crawler.compare.not_content.facts import facts_of

FILLER = (
    "<p>" + "The river ran past the mill and on to the sea, as it had always done. " * 12 + "</p>"
)


def kind_of(facts: PageFacts) -> NotContentKind | None:
    found = HostJudge().judge(facts, 0.0)
    return None if found is None else found.kind


@pytest.mark.parametrize(
    ("title", "main", "kind"),
    [
        ("Page not found", "<h1>404</h1><p>We can't find that page.</p>", NotContentKind.SOFT_404),
        ("Error", "<h1>Internal Server Error</h1><p>Try again later.</p>",
         NotContentKind.ERROR_PAGE),
        ("Log in",
         "<form><label>Password</label><input type=password><button>Log in</button></form>",
         NotContentKind.LOGIN_WALL),
        ("Your privacy",
         "<h1>We value your privacy</h1><p>Our partners use cookies.</p><button>Agree</button>",
         NotContentKind.CONSENT_WALL),
        ("Just a moment...",
         "<p>Checking your browser before you proceed.</p><div id=captcha-box></div>",
         NotContentKind.CAPTCHA),
        # SiteGround.
        ("",
         "<meta http-equiv=refresh content='0;/.well-known/sgcaptcha/?r=%2Fa&y=ipc:192.0.2.1'>",
         NotContentKind.CAPTCHA),
        # A script that states an error counts where hardly anything is said.
        ("", "<div id=app><p>Oops</p></div><script>s={'statusCode':500}</script>",
         NotContentKind.ERROR_PAGE),
        # Nothing but a cookie and a reload.
        ("", "<script>document.cookie='a=1';location.reload()</script>", NotContentKind.CAPTCHA),
        ("Slow down", "<h1>Too many requests</h1><p>Please wait 60 seconds and try again.</p>",
         NotContentKind.RATE_LIMITED_PAGE),
    ],
)  # fmt: skip
def test_a_page_that_says_what_it_is_and_nothing_else_is_a_block_page(
    title: str, main: str, kind: NotContentKind
) -> None:
    assert kind_of(facts_of(main, title=title)) is kind


@pytest.mark.parametrize(
    ("title", "main"),
    [
        ("404 Not Found: what it means", "<h1>404 Not Found: what it means</h1>" + FILLER),
        ("All systems operational", "<h1>Status</h1><p>All systems operational.</p>"),
        ("Garden chairs", "<h1>Garden chairs</h1><p>There are no products here yet.</p>"),
        ("Moved", "<h1>Moved</h1><p>We moved to 4 Rope Walk. Come and see the view.</p>"),
        ("Error 404 — lexicon", "<h1>Error 404</h1><p>See also “page not found”.</p>"),
        ("The mill",
         "<header><form><input type=password></form></header><h1>The mill</h1>" + FILLER),
        ("The mill", "<div>We value your privacy. <button>Accept all</button></div>" + FILLER),
    ],
)  # fmt: skip
def test_a_page_about_such_things_or_with_text_of_its_own_is_kept(title: str, main: str) -> None:
    assert kind_of(facts_of(main, title=title)) is None


def test_a_retry_after_header_speaks_for_a_limit() -> None:
    plain = facts_of("<p>Please wait a moment and try again.</p>")
    told = facts_of("<p>Please wait a moment and try again.</p>", retry_after=True)
    assert kind_of(plain) is None
    assert kind_of(told) is NotContentKind.RATE_LIMITED_PAGE


PROGRAM = "<script type=module src=/assets/index-4f2c9a1b.js></script>"
NOTICE = "<noscript>You need to enable JavaScript to run this app.</noscript>"


@pytest.mark.parametrize(
    "main",
    [
        f"<div id=root></div>{PROGRAM}",
        f"{NOTICE}<div id=start></div><script src=/js/start.js></script>",
        "<app-root></app-root><script src=main.js></script>",
        "<script defer src=/build/bundle.js></script>",
        f"<div id=app><img src=/logo.svg>Loading …</div>{PROGRAM}",
        "<div id=app></div><script src=https://cdn.example/app.3f2a81cc.js></script>",
        f"<nav><a href=/>Acme</a></nav><div id=app></div>{PROGRAM}<footer>Acme, 2026</footer>",
        f"<header>Acme</header><main><template data-dgst=BAILOUT></template></main>{PROGRAM}",
        f"<div id=app></div><p>Please enable JavaScript to use this site.</p>{PROGRAM}",
        f"<noscript><iframe src=//t.example/ns></iframe></noscript><div id=root></div>{PROGRAM}",
        # Meteor, ReDoc, Blazor, AngularJS, ExtJS; and X, whose notice has a heading and links.
        "<div id=react-target></div><script src=/8f3c1d7b.js?meteor_js_resource=true></script>",
        "<redoc spec-url=/api.json></redoc><script src=//cdn.example/redoc.main.js></script>",
        (
            "<div id=app><svg></svg></div><div id=blazor-error-ui>An unhandled error has occurred."
            "<a>Reload</a></div><script src=_framework/blazor.webassembly.js></script>"
        ),
        "<li ng-repeat='p in all'>{{p.name}}</li><script src=angular.js></script>",
        "<script src=bootstrap.js></script>",
        (
            "<div id=react-root></div><noscript><h1>JavaScript is not available.</h1>"
            "<p>JavaScript is disabled.</p><a href=/t>Terms</a></noscript>"
            "<script src=//cdn.example/main.js></script>"
        ),
    ],
)
def test_a_page_that_only_scripts_would_build_needs_javascript(main: str) -> None:
    assert kind_of(facts_of(main)) is NotContentKind.NEEDS_JAVASCRIPT


@pytest.mark.parametrize(
    "main",
    [
        "",
        "<script src='http://[::1/app'></script><script src='//[/a.js'></script>",
        f"<p>Hello</p><div id=root></div>{PROGRAM}",
        f"<div id=app><h1>Chairs</h1></div>{NOTICE}{PROGRAM}",
        "<script async src=https://t.example/gtag.js></script><script>ga('x')</script>",
        '<div id=app></div><script type=application/ld+json>{"text": "all of it"}</script>',
        "<script>location.href = '/en/'</script>",
        f"<nav><a href=/1>One</a> <a href=/2>Two</a> <a href=/3>Three</a></nav>{PROGRAM}",
        f"<div id=app><a href=1><img src=1.jpg></a><a href=2><img src=2.jpg></a></div>{PROGRAM}",
        f"<iframe src=/map></iframe>{PROGRAM}",
        f"<svg><text>Berlin</text></svg>{PROGRAM}",
        f"<meta http-equiv=refresh content='0; url=/en/'>{PROGRAM}",
        f"<div id=app><video src=1.mp4></video></div>{PROGRAM}",
        f"<h1>Search</h1><form><input name=q></form>{NOTICE}{PROGRAM}",
        f"<p>First.</p><div id=comments></div>{NOTICE}{PROGRAM}",
        f"<div id=app></div><noscript>JavaScript is off. {FILLER * 2}</noscript>{PROGRAM}",
    ],
)
def test_a_page_that_shows_anything_by_itself_does_not(main: str) -> None:
    assert kind_of(facts_of(main)) is None


def test_braces_without_end_are_read_once() -> None:
    # Minutes and more in a pattern that can divide them in several ways.
    assert not says_nothing("{{}}" * 5_000 + "x")
    assert not says_nothing("{" * 20_000)
    assert says_nothing("{{ a }}, {{ b }}")


@pytest.mark.parametrize(
    ("title", "main"),
    [
        ("Siden findes ikke", "<h1>Siden findes ikke</h1>"),
        ("Sivua ei löydy", "<h1>Sivua ei löydy</h1>"),
        ("Stránka nenalezena", "<h1>Stránka nenalezena</h1>"),
        ("Sayfa bulunamadı", "<h1>Sayfa bulunamadı</h1>"),
        ("페이지를 찾을 수 없습니다", "<h1>페이지를 찾을 수 없습니다</h1>"),
        ("الصفحة غير موجودة", "<h1>الصفحة غير موجودة</h1>"),
        ("Wonhu", "<div>404</div><div>Wonhu</div>"),
        ("ŋu mɔ mele", "<div>Error 403</div><div>ŋu mɔ mele</div>"),
        ("406 - Not Acceptable", "<h1>Error 406!</h1><p>Not acceptable for the client.</p>"),
        ("Přístup zamítnut", "<h1>Přístup zamítnut</h1><p>Přístup zakázán.</p>"),
        ("Domain for sale", "<h1>h.example</h1><p>This domain is for sale. Make an offer.</p>"),
    ],
)
def test_statuses_and_phrases_of_any_language_make_a_page_doubtful(title: str, main: str) -> None:
    assert kind_of(facts_of(main, title=title, lang="")) is not None


@pytest.mark.parametrize("said", [
    "Please log in to read on.", "Access denied.", "This page does not exist.",
    "An unexpected error occurred.", "Too many requests.",
])  # fmt: skip
def test_what_most_pages_of_a_host_show_is_no_proof(said: str) -> None:
    main = f"<p>{said}</p><p>The mill ran until the bridge was built, and longer.</p>"
    facts = facts_of(main, title="The mill")
    assert replace(facts, frame=frozenset(facts.blocks.texts[:1])).texts == facts.blocks.texts[1:]
    assert kind_of(replace(facts, frame=frozenset(facts.blocks.texts[:1]))) is None


def test_a_page_that_is_nearly_all_frame_is_judged_by_it() -> None:
    facts = facts_of("<p>Access to this page has been denied.</p><p>Ray 7</p>", title="Denied")
    assert replace(facts, frame=frozenset(facts.blocks.texts[:1])).texts == facts.blocks.texts


@pytest.mark.parametrize(
    ("title", "text"),
    [
        # Patterns read the first two in as many ways as two to their words; in a row of the others
        # they had to end before they were tried from each character anew.
        *(("error " * many, "Words") for many in (40, 4_000)),
        *(("", f"<p>{'error ' * many}</p>") for many in (40, 60_000)),
        *(("", f"<p>{sign * 180_000}</p>") for sign in ("1-", "a-", "0-f ")),
        ("", f"<p>line:1 {'1.' * 250_000}</p>"),
        ("", f"<meta http-equiv=refresh content='{'0' * 400_000}'>"),
        ("", f"<script type='application/ld+json'>{'[' * 400_000}</script>"),
        ("", f"<script type='application/ld+json'>{'{' * 400_000}</script>"),
    ],
    ids="abcdefghijk",
)
def test_no_row_of_signs_takes_hours(title: str, text: str) -> None:
    """Each of these took half a minute to years; they run in the event loop's process."""
    HostJudge().judge(facts_of(text, title=title), 0.0)
