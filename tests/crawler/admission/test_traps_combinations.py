"""Combinations are told by values that recur, whatever the site calls them."""

from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from freshet.crawler.admission import traps as combinations_module
from freshet.crawler.admission.traps import Combinations

SITE = "https://a.example"


def seen(*targets: str, least: int = 2) -> Combinations:
    found = Combinations(least)
    for target in targets:
        found.note(SITE + target)
    return found


def pattern(found: Combinations, target: str) -> str | None:
    return found.pattern(found.note(SITE + target))


FACETS = [f"/shop/{'/'.join(p)}" for p in permutations(("red", "large", "wool"))]
FILTERS = [
    f"/list?colour={c}&size={s}&sort={o}" for c in "rgb" for s in "sml" for o in ("up", "down")
]


def test_filters_in_a_path_or_in_both_are_one_pattern_however_deep() -> None:
    found = seen(*FACETS)
    for target in ("/shop/red/large", "/shop/wool/red/large", "/shop/large/wool/red/wool"):
        assert pattern(found, target) == "/shop/… (recurring values)"
    # Hosts are apart.
    assert found.pattern(found.note("https://b.example/shop/red/large")) is None
    both = seen(*FACETS, *(f"{f}?sort={o}" for f in FACETS for o in ("up", "down")))
    assert pattern(both, "/shop/wool/red?sort=up") == "/shop/…?… (recurring values)"


def test_many_parameters_that_recur_are_one_pattern_and_few_keep_their_names() -> None:
    found = seen(*FILTERS)
    assert pattern(found, "/list?colour=r&size=m&sort=up") == "/list?… (recurring values)"
    few = found.note(f"{SITE}/list?colour=r&size=m")
    assert found.is_combined(few)
    assert found.pattern(few) is None


@pytest.mark.parametrize(
    "new", ["/shop/red/large/shirt-17", "/shop/red/shirt-17", "/list?colour=r&size=s&id=17"]
)
def test_what_no_other_url_has_makes_no_combination(new: str) -> None:
    found = seen(*FACETS, *FILTERS)
    assert pattern(found, new) is None
    assert pattern(found, new) is None
    assert not found.is_combined(found.note(SITE + new))


def test_ordinary_paths_are_no_combinations() -> None:
    articles = [f"/20{y}/{m:02}/{m + 9}/title-{y}-{m}" for y in range(20, 26) for m in range(1, 12)]
    people = [f"/people/name-{n}/{part}" for n in range(50) for part in ("", "books", "talks")]
    products = [f"/product?id={n}" for n in range(50)]
    found = seen(*articles, *people, *products)
    assert {pattern(found, t) for t in (*articles, *people, *products)} == {None}


_PAGES = [f"{part}/{page}" for part in ("intro", "clauses", "api") for page in ("a", "b", "c")]
TREES = {
    "versions": [f"/docs/{v}/{p}.html" for v in ("master", "v0.6.0", "v1.1") for p in _PAGES],
    "drafts": [f"/docs/{v}/{p}.html" for v in ("discussions-36-1", "new-web") for p in _PAGES],
    "versions without extensions": [f"/{v}/{p}" for v in ("1.0", "2.0", "latest") for p in _PAGES],
    "folders": [f"/docs/{v}/{p}/" for v in ("stable", "dev", "3.x") for p in _PAGES],
    "releases": [f"/manual/{v}/{p}" for v in ("release-2.1", "r3.0_1") for p in _PAGES],
    "languages": [f"/{v}/{p}" for v in ("en", "de", "pt-br", "zh_CN") for p in _PAGES],
    "both": [f"/{x}/{v}/{p}" for x in ("en", "fr") for v in ("v1", "v2") for p in _PAGES],
    "both, other order": [
        f"/{v}/{x}/{p}" for x in ("en", "fr") for v in ("9.1", "10.2") for p in _PAGES
    ],
    "languages, one without": [f"{v}/{p}" for v in ("", "/en", "/fr") for p in _PAGES],
    "languages of folders, one without": [f"/a{v}/{p}/" for v in ("", "/zh-cn") for p in _PAGES],
    "versions, one without": [f"/docs{v}/{p}" for v in ("", "/2.1", "/latest") for p in _PAGES],
    "releases, one without": [f"/manual{v}/{p}/" for v in ("", "/v3") for p in _PAGES],
    "old ones in a folder": [f"{v}/{p}" for v in ("/guide", "/guide/old/1.x") for p in _PAGES],
    "both, either without": [
        f"{x}{v}/docs/{p}" for x in ("", "/en") for v in ("", "/1.11.6", "/2.0.0") for p in _PAGES
    ],
    "both behind the folder": [
        f"/docs{v}{x}/{p}" for x in ("", "/ja") for v in ("", "/3.4", "/next") for p in _PAGES
    ],
    "products": [f"/{v}/docs/{p}.html" for v in ("anvil", "rocket") for p in _PAGES],
    "deep": [f"/a/{v}/x/{p}.htm" for v in ("one", "two", "three") for p in _PAGES],
    "Javadoc": [f"/{v}/org/{p}.html" for v in ("core-8_1", "core-8_2") for p in _PAGES],
    "index files": [f"/docs/{v}/{p}/index.html" for v in ("draft-7", "web") for p in _PAGES],
    "Markdown": [f"/{v}/{p}.md" for v in ("left", "right") for p in _PAGES],
}


@pytest.mark.parametrize("name", TREES)
def test_versions_and_translations_of_a_manual_are_no_combinations(name: str) -> None:
    found = seen(*TREES[name])
    assert {pattern(found, target) for target in TREES[name]} == {None}


def test_a_number_in_what_does_not_recur_is_left_out() -> None:
    found = seen(*(f"/user/{n}/{p}" for n in (17, 18) for p in ("a/b", "b/a", "b", "a")))
    assert pattern(found, "/user/17/a/b") == "/user/#/… (recurring values)"


def test_nothing_is_a_combination_where_it_is_turned_off() -> None:
    found = seen(*FACETS, *FILTERS, least=0)
    assert found.note(SITE + FACETS[0]) is None
    assert found.pattern(None) is None


def test_of_what_is_forgotten_nothing_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(combinations_module, "_VALUES", 8)
    found = seen(*FACETS, *(f"/page-{n}" for n in range(8)))
    assert len(found._rests) == 8
    assert pattern(found, FACETS[0]) is None


@given(st.text(max_size=30), st.lists(st.text(max_size=30), max_size=3))
def test_any_url_can_be_taken_in(target: str, others: list[str]) -> None:
    found = seen(*(f"/{each}" for each in others))
    parts = found.note(f"{SITE}/{target}")
    assert (found.pattern(parts) is None) or found.is_combined(parts)
