"""Which links lead into the frontier, and what is said of the others."""

import pytest

from freshet.crawler.admission.admit import Admission, Scope, sitemap_links
from freshet.crawler.admission.traps import TrapLimits
from freshet.storage.records import Links, Targets

SITE = "https://a.example"


def admission(max_depth: int = 256, extensions: frozenset[str] = frozenset()) -> Admission:
    scope = Scope("host", [f"{SITE}/"])
    return Admission(
        scope, TrapLimits(), depth_at=lambda _: max_depth, excluded_extensions=extensions
    )


def targets_of(
    found: Links, depth: int = 0, *, judge: Admission | None = None, nofollow: bool = False
) -> Targets:
    targets = Targets()
    (judge or admission()).links(targets, found, range(len(found)), depth, nofollow=nofollow)
    return targets


def links(*urls: str, rels: tuple[str, ...] | None = None) -> Links:
    return Links(urls, urls, rels or ("",) * len(urls), ("",) * len(urls))


def test_links_in_scope_become_targets_and_the_others_are_offsite_columns() -> None:
    found = links(f"{SITE}/1", "https://b.example/", f"{SITE}/2")
    targets = Targets()
    offsite = admission().links(targets, found, range(3), 3, nofollow=False)
    assert (targets.urls, targets.column("origins")) == ([f"{SITE}/1", f"{SITE}/2"], [SITE, SITE])
    assert (targets.column("depths"), targets.column("roles")) == ([4, 4], ["page", "page"])
    assert targets.column("held_back") == [None, None]
    assert offsite == {1}


def test_settled_links_in_scope_need_no_judgement_until_the_scope_moves() -> None:
    judge = admission()
    judge.settled = {f"{SITE}/1", f"{SITE}/3", "https://b.example/"}
    found = links(f"{SITE}/1", "https://b.example/", f"{SITE}/2", f"{SITE}/3")
    assert judge.unsettled(found) == [0, 1, 2, 3]
    assert judge.links(Targets(), found, [0, 1, 2, 3], 0, nofollow=False) == {1}
    assert judge.unsettled(found) == [1, 2]
    judge.scope.move_seed(f"{SITE}/", "https://b.example/")
    assert judge.unsettled(found) == [0, 1, 2, 3]
    assert judge.links(Targets(), found, [0, 1, 2, 3], 0, nofollow=False) == {0, 2, 3}


def test_nofollow_links_and_all_of_a_nofollow_page_are_known_but_held_back() -> None:
    found = links(f"{SITE}/1", f"{SITE}/2", f"{SITE}/3", rels=("nofollow", "next", "a nofollow"))
    assert targets_of(found).column("held_back") == ["nofollow", None, "nofollow"]
    assert targets_of(found, nofollow=True).column("held_back") == ["nofollow"] * 3
    judge = admission()
    judge.follow_nofollow = True
    assert targets_of(found, judge=judge, nofollow=True).column("held_back") == [None] * 3


@pytest.mark.parametrize(
    ("max_depth", "depth", "held"), [(2, 1, None), (2, 2, "depth"), (0, 9_999, None)]
)
def test_depth_is_limited_unless_the_limit_is_0(
    max_depth: int, depth: int, held: str | None
) -> None:
    targets = targets_of(links(f"{SITE}/1"), depth, judge=admission(max_depth))
    assert targets.column("held_back") == [held]


@pytest.mark.parametrize(
    ("path", "held"),
    [("/film.MP4", "extension"), ("/film.mp4?download=1", "extension"), ("/mp4", None),
     ("/film.mp4/", None), ("/?file=film.mp4", None), ("/film.html", None), ("/", None)],
)  # fmt: skip
def test_excluded_endings_of_the_path_are_held_back(path: str, held: str | None) -> None:
    found = links(f"{SITE}{path}")
    targets = targets_of(found, judge=admission(extensions=frozenset({"mp4", "example"})))
    assert targets.column("held_back") == [held]


def test_a_bounded_pattern_is_named_with_its_kind_and_cap_unless_it_is_held_back() -> None:
    found = links(f"{SITE}/list?page=7", f"{SITE}/plain", f"{SITE}/a/a/a/a/a/a")
    targets = targets_of(found)
    assert targets.column("trap_shapes")[0] == "/list?page"
    assert targets.column("trap_kinds") == ["trap: query", None, "trap: path"]
    assert targets.column("trap_caps") == [TrapLimits().max_query_urls, 0, 0]
    held_back = links(f"{SITE}/list?page=7", rels=("nofollow",))
    assert targets_of(held_back).column("trap_shapes") == [None]


def entries_of(*urls: str, depth: int = 0, index: bool, judge: Admission | None = None) -> Targets:
    targets = Targets()
    entries = list(zip(urls, urls, strict=True))
    (judge or admission()).sitemap(targets, entries, depth, index=index)
    return targets


def test_entries_of_a_sitemap_in_scope_and_all_of_an_index_are_targets() -> None:
    targets = entries_of(f"{SITE}/1", "https://b.example/", index=False)
    assert (targets.urls, targets.column("depths")) == ([f"{SITE}/1"], [1])
    no_xml = admission(extensions=frozenset({"xml"}))
    targets = entries_of("https://cdn.example/1.xml", index=True, judge=no_xml)
    assert (targets.column("roles"), targets.column("held_back")) == (["sitemap"], [None])


def test_indexes_of_indexes_are_followed_down_to_a_depth() -> None:
    depth, held = 0, None
    while held is None:
        targets = entries_of(f"{SITE}/{depth}.xml", depth=depth, index=True)
        depth, (held,) = targets.column("depths")[0], targets.column("held_back")
    assert (depth, held) == (5, "depth")


def test_a_row_has_all_columns_whatever_was_added() -> None:
    targets = Targets()
    judge = admission()
    judge.add(targets, f"{SITE}/", f"{SITE}/", depth=0)
    judge.add(targets, f"{SITE}/x", f"{SITE}/x", depth=1, role="feed", redirects=2)
    judge.add(targets, f"{SITE}/y", f"{SITE}/y", depth=1, held_back="nofollow")
    assert [len(row) for row in targets] == [len(Targets.COLUMNS)] * 3
    assert targets.column("held_back") == [None, None, "nofollow"]
    assert targets.column("redirects") == [0, 2, 0]


def test_sitemap_entries_as_links_say_that_they_are() -> None:
    found = sitemap_links([(f"{SITE}/1", f"{SITE}/1?utm_source=x")])
    assert found == Links((f"{SITE}/1",), (f"{SITE}/1?utm_source=x",), ("sitemap",), ("",))
    # What goes on the wire is kept beside the canonical URL.
    assert targets_of(found).column("fetch_urls") == [f"{SITE}/1?utm_source=x"]


def test_combinations_of_values_that_recur_are_one_pattern_and_have_to_prove_themselves() -> None:
    judge = admission()
    paths = [f"/shop/{a}/{b}" for a in "rgb" for b in "rgb"] + [f"/shop/{a}" for a in "rgb"]
    targets_of(links(*(SITE + path for path in paths)), judge=judge)
    targets = targets_of(links(f"{SITE}/shop/r/g", f"{SITE}/shop/r/new"), judge=judge)
    assert targets.column("patterns") == ["/shop/… (recurring values)", None]
    assert judge.proof(f"{SITE}/shop/r/g") == "combined"
    assert judge.proof(f"{SITE}/shop/r/new") is None
    assert judge.proof(f"{SITE}/calendar/2026/11") == "dated"


def test_queries_with_too_many_parameters_are_one_shape_of_their_path() -> None:
    names = "abcdefghij"
    found = links(*(f"{SITE}/list?{'&'.join(f'{n}=1' for n in names[i:])}" for i in range(3)))
    targets = targets_of(found)
    many = "/list?… (more than 8 parameters)"
    assert targets.column("trap_shapes") == [many, many, "/list?c&d&e&f&g&h&i&j"]
