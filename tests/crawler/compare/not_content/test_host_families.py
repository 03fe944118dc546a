"""Pages at several URLs of a host are block pages only if the host shows them anywhere."""

import pytest

from freshet.crawler.compare.not_content.host import MOST_PROBES, HostJudge
from freshet.crawler.compare.not_content.page import PageFacts
from tests.crawler.compare.not_content.facts import facts_of

AT = 1_790_000_000.0

#: Paragraphs of manuals with the words of block pages.
PARAGRAPHS = {
    "groups": "Checking with the base-passwd maintainer is no longer required (or desirable) when "
    "creating a new dynamic user or group in a package.",
    "warning": "Warning 1: Do not include a line keyed by “*” in the file, because that would mean "
    "that every address matches, thus rendering the test useless.",
    "menu": "You can access this command from the image menubar through Image → Fit Canvas to "
    "Selection.",
    "affinity": "If the declared type of the column contains any of the strings 'CHAR', 'CLOB', or "
    "'TEXT' then that column has TEXT affinity.",
    "format": "Rather than using fopen() to write XML, JSON, CSV, or some proprietary format into "
    "disk files used by your application, use a database.",
    "bounce": "By default, bounce and delivery warning messages contain the header line "
    "Auto-Submitted.",
    "import": "The repository to import to. If the directory doesn’t exist, it will be created. "
    "Default is the current directory.",
    "filter": "The filter operates only on selections and layers with an alpha channel. If the "
    "active layer does not have an alpha channel please add it first.",
    "home": "The canonical non-existent home is /nonexistent. Users who should not have a home "
    "directory should have their home directory set to this value.",
    "slider": "This slider acts on the length of all vectors, and so changes the strength of all "
    "brush strokes.",
    "signing": "Signing outgoing messages: this function is implemented in the SMTP transport. It "
    "can co-exist with all other features except cutthrough delivery.",
    "prerm": "Called during error handling when prerm upgrade fails. The new package will not yet "
    "be unpacked, and all the same constraints as for preinst upgrade apply.",
    "keys": "Any data that follows the keys is not relevant when checking that the domain matches "
    "the list item.",
    "stat": "If stat() cannot determine whether a file exists or not, delivery of the message is "
    "deferred. This can happen when file systems are unavailable.",
}  # fmt: skip

_BUY = "<form action=/basket><button>Add</button></form>"
_FIND = "<form action=/find><input name=q></form>"
#: Pages that several directories show, with a form or a note to search engines, and no cue.
SHOWN_OFTEN = {
    "product": f"<h1>Blue chair</h1><p>It is made of oak and wool, by hand.</p>{_BUY}",
    "book": f"<h1>The river</h1><p>A novel of two brothers who build a boat.</p>{_BUY}",
    "search": f"<h1>Opening hours</h1><p>Monday to Friday from nine to five, by day.</p>{_FIND}",
    "note": "<meta name=robots content=noindex><p>The print edition has the same text as this.</p>",
    "comments": "<h1>Bread</h1><p>Flour, water, salt and a day of rest for it.</p>"
    "<form><textarea name=c></textarea><button>Send</button></form>",
    "label": "<h1>Trains</h1><p>They leave on the hour, from the second platform.</p>"
    "<label>From</label><select><option>Here</option></select>",
    "vote": "<p>The committee will plant lime trees along the canal.</p><button>For</button>",
    "size": "<h1>Shirt</h1><p>Linen, washed, with buttons of shell and wood.</p>"
    "<label>Size</label><input name=size>",
    "letter": "<p>Our letter comes on the first of the month, with news of bees.</p>"
    "<form><input type=email name=e><button>Subscribe to it</button></form>",
    "quantity": "<h1>Nails</h1><p>Iron, cut, in boxes of a hundred and of ten.</p>"
    "<form><input type=number name=n></form>",
    "map": "<p>The museum stands between the old mill and the harbour.</p><button>Map</button>",
}
DIRECTORIES = ("north/one", "south/two", "east/three", "west/four", "middle/five")


def once(text: str, path: str) -> PageFacts:
    return facts_of(f"<main><p>{text}</p></main>", title="Notes", path=path)


def shown(name: str, path: str) -> PageFacts:
    return facts_of(SHOWN_OFTEN[name], title="Shop", path=path)


@pytest.mark.parametrize("name", PARAGRAPHS)
def test_a_text_at_two_urls_is_content(name: str) -> None:
    judge = HostJudge()
    judge.learn_probe(None, AT)
    found = [judge.judge(once(PARAGRAPHS[name], f"/notes/{n}"), AT) for n in ("a", "b")]
    assert found == [None, None]


@pytest.mark.parametrize("name", PARAGRAPHS)
def test_a_text_at_many_urls_of_an_honest_host_is_content(name: str) -> None:
    judge = HostJudge()
    judge.learn_probe(None, AT)
    found = [judge.judge(once(PARAGRAPHS[name], f"/{n}"), AT) for n in DIRECTORIES]
    assert found == [None] * 5


@pytest.mark.parametrize("name", SHOWN_OFTEN)
def test_a_page_with_a_form_in_many_directories_is_content(name: str) -> None:
    judge = HostJudge()
    assert [judge.judge(shown(name, f"/{n}"), AT) for n in DIRECTORIES] == [None] * 5


@pytest.mark.parametrize("name", [*PARAGRAPHS][:6])
def test_a_text_that_the_host_also_shows_for_a_made_up_url_is_none(name: str) -> None:
    judge = HostJudge()
    judge.learn_probe(once(PARAGRAPHS[name], "/notes/zq7"), AT)
    assert judge.judge(once(PARAGRAPHS[name], "/notes/a"), AT + 1) is not None


@pytest.mark.parametrize("name", SHOWN_OFTEN)
def test_a_page_with_a_form_that_the_host_shows_for_a_made_up_url_is_none(name: str) -> None:
    judge = HostJudge()
    judge.learn_probe(shown(name, "/north/zq7"), AT)
    assert judge.judge(shown(name, "/north/one"), AT + 1) is not None


LOGIN = (
    "<h1>Members</h1><p>Please log in to see the minutes of the choir.</p>"
    "<p>They are kept for those who sing in it.</p>"
)


def members(path: str) -> PageFacts:
    return facts_of(LOGIN, title="Choir", path=path)


def test_a_host_that_is_honest_is_asked_a_few_times_at_most() -> None:
    judge, probes = HostJudge(), 0
    for n in range(12):
        judge.judge(members(f"/choir/{n}"), AT + n)
        if judge.wants_probe(AT + n):
            probes += 1
            judge.learn_probe(None, AT + n)
    assert 1 <= probes <= MOST_PROBES
