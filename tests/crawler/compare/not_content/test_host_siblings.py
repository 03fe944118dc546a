"""Pages of a template, such as release announcements, are no evidence against one another."""

import pytest

from freshet.crawler.compare.not_content.host import HostJudge
from freshet.crawler.compare.not_content.page import PageFacts
from tests.crawler.compare.not_content.facts import facts_of

AT = 1_790_000_000.0
NUMBERS = ["1.4.2", "1.5.0", "1.5.1", "2.0.0", "2.1.3"]
DATES = ["3 May 2019", "14 July 2020", "1 March 2021", "30 June 2022", "9 April 2024"]
NAMES = ["Almond", "Birch", "Cedar", "Dogwood", "Elder"]

#: Texts of templates: {n} is a number, {d} a date, {t} a name. Each has words of a block page.
TEMPLATES = {
    "release": "<h1>Release {n}</h1><p>Version {n} of the library is out. Known errors of the last "
    "release were fixed, and the old interface is no longer available.</p>"
    "<p><a href=/get/{n}>Download {n}</a> <a href=/notes/{n}>Notes</a></p>",
    "withdrawn": "<h1>{n}</h1><p>Version {n} was withdrawn on {d}: it is no longer available. "
    "An error in the packages could damage an index.</p>",
    "advisory": "<h1>Advisory {n}</h1><p>Access was denied to users without a password, although "
    "anonymous access is allowed. Fixed on {d} in version {n}.</p>",
    "outage": "<h1>Report of {d}</h1><p>The mirror was not available on {d} from noon, as disks "
    "were replaced. Please try again if an error stays.</p>",
    "key": "<h1>Key of {t}</h1><p>Access to the archive is denied with keys made before {d}: key "
    "{n} has expired. Please sign in once to renew it.</p>",
    "incident": "<h1>Incident {n}</h1><p>An internal error of the scheduler delayed the builds of "
    "{d}. The service is available again.</p>",
    "meeting": "<h1>Meeting of {d}</h1><p>Minutes are not available yet. Please log in to the wiki "
    "to add topics to the agenda of the next one.</p>",
    "ticket": "<h1>Ticket {n}</h1><p>The page could not be found where the address ended in a dot. "
    "Fixed in {n}, closed on {d}.</p>",
    "seminar": "<h1>{t}</h1><p>The talk of {d} is no longer open: you must register before the "
    "first of the month.</p>",
    "dataset": "<h1>{t}</h1><p>Data set {n}. Access is restricted to members, who sign in with "
    "their library card.</p>",
    "end": "<h1>{t} {n}</h1><p>This series is not supported any more. The page of the current "
    "series exists since {d}, and has what you are looking for.</p>",
    "weather": "<h1>Station {n}</h1><p>Data of {d} is not available. The sensor returned an error "
    "after {n} readings, and was replaced.</p>",
    "course": "<h1>{t}</h1><p>This course was removed from the programme on {d} and could not be "
    "found a teacher for again.</p>",
}  # fmt: skip

#: Of these the pages are doubtful: hardly more than what a block page says.
SAYS_SO = frozenset({"advisory"})


def sibling(name: str, k: int, *, titled: bool = True) -> PageFacts:
    values = {"n": NUMBERS[k], "d": DATES[k], "t": NAMES[k]}
    main = TEMPLATES[name].format(**values)
    title = main.partition("</h1>")[0].removeprefix("<h1>") if titled else "News of the project"
    return facts_of(f"<main>{main}</main>", title=title, path=f"/news/post-{'abcde'[k]}")


@pytest.mark.parametrize("name", TEMPLATES)
@pytest.mark.parametrize("titled", [True, False])
def test_pages_that_differ_in_numbers_dates_or_titles_are_content(name: str, titled: bool) -> None:
    judge = HostJudge()
    judge.learn_probe(None, AT)
    found = [judge.judge(sibling(name, k, titled=titled), AT) for k in range(5)]
    assert found == [None] * 5 or (
        name in SAYS_SO and not any(it and it.is_refused for it in found)
    )


@pytest.mark.parametrize("name", TEMPLATES)
def test_a_sibling_that_is_a_block_page_takes_none_of_the_others_with_it(name: str) -> None:
    judge = HostJudge()
    judge.learn_probe(None, AT)
    for k in range(4):
        found = judge.judge(sibling(name, k), AT)
        assert found is None or (name in SAYS_SO and not found.is_refused)
    assert judge.learn_probe(sibling(name, 4), AT) == {} or name in SAYS_SO
