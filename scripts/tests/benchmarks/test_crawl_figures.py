"""The figures of the crawl benchmark say what was measured."""

from scripts.benchmarks.crawl_figures import Run, same_pages, spread, summary, table


def a_run(crawler: str, pages: int, cpu_s: float) -> Run:
    urls = frozenset(f"h/{n}" for n in range(pages))
    return Run(crawler, urls, pages + 1, 0, 0, cpu_s, cpu_s, 100.0)


def test_a_spread_is_the_median_and_the_ends() -> None:
    assert spread([3.0, 1.0, 2.0]) == {"median": 2.0, "min": 1.0, "max": 3.0}


def test_pages_per_cpu_second_count_different_pages() -> None:
    assert a_run("ours", 10, 2.0).pages_per_cpu_s == 5.0


def test_a_ratio_is_taken_within_its_round() -> None:
    rounds = [
        [a_run("ours", 10, 1.0), a_run("theirs", 10, 2.0)],
        # A busy machine: everybody takes ten times as long, and somebody else begins.
        [a_run("theirs", 10, 20.0), a_run("ours", 10, 10.0)],
    ]
    found = summary(rounds, "ours")
    assert found["ratios"] == {"ours / theirs": {"median": 2.0, "min": 2.0, "max": 2.0}}


def test_crawlers_that_fetched_the_same_pages_left_nothing_out() -> None:
    found = same_pages([a_run("ours", 10, 1.0), a_run("theirs", 10, 2.0)])
    assert found == {"all_together": 10, "left_out": {}}


def test_a_page_that_one_crawler_left_out_is_named() -> None:
    found = same_pages([a_run("ours", 10, 1.0), a_run("theirs", 9, 2.0)])
    assert found["left_out"] == {"theirs": {"count": 1, "examples": ["h/9"]}}


def test_the_table_sets_parts_in() -> None:
    lines = table({"page": 10.0, "page/links": 4.0}).splitlines()
    assert [line.rstrip("0123456789.").rstrip() for line in lines[1:]] == ["page", "  links"]
