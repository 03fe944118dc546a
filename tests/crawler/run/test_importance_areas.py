"""The areas of a site."""

from freshet.crawler.run.importance import Areas
from freshet.scheduler.sources import AREAS

ORIGIN = "https://a.example"


def codes(*paths: str) -> list[int]:
    return list(Areas()([f"{ORIGIN}{path}" for path in paths]))


def test_areas_are_directories_below_that_of_the_first_page() -> None:
    assert codes("/", "/about", "/docs/a", "/docs/b/c", "/blog/", "/?q=/x/") == [0, 0, 1, 1, 2, 0]
    assert codes("/docs/", "/docs/x", "/docs/api/f", "/blog/x", "/docs/api/") == [0, 0, 1, 0, 1]


def test_numbers_in_names_are_alike() -> None:
    assert codes("/", "/2024/x", "/2025/y", "/v1/x", "/v22/y") == [0, 1, 1, 2, 2]


def test_what_comes_after_the_last_number_shares_it_and_each_host_has_its_own() -> None:
    letters = [f"/{chr(97 + n)}/x" for n in range(20)]
    assert codes("/", *letters)[-5:] == [AREAS - 1] * 5
    assert Areas()(["https://a.example/", "https://b.example/x/y"]).tolist() == [0, 0]
