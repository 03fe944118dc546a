"""urlwatch's jobs, and YAML that would hurt who builds it."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from freshet.crawler.admission import importers
from freshet.crawler.admission.importers import SkippedEntry, WatchedSite
from freshet.crawler.errors import UnreadableList

JOBS = """\
name: "The homepage"
url: "https://example.org/"
max_tries: 3
---
name: A list
command: "ls -l"
---
navigate: https://app.example/
---
url: https://example.org/post
data: {a: b}
filter:
  - html2text
---
url: https://example.org/off
enabled: false
---
"""


def test_jobs_give_their_url_and_name_and_what_is_lost() -> None:
    assert importers.read_urlwatch(JOBS.encode()) == [
        WatchedSite("job 1", "https://example.org/", "The homepage"),
        SkippedEntry("job 2", "A list", "a command, which is never run"),
        WatchedSite("job 3", "https://app.example/", lost=("a browser that runs JavaScript",)),
        WatchedSite("job 4", "https://example.org/post", lost=("data", "filter")),
        SkippedEntry("job 5", "https://example.org/off", "not enabled"),
    ]


def test_a_list_of_jobs_is_read_like_documents() -> None:
    data = b"- url: https://a.example/\n- url: https://b.example/\n- just words\n"
    assert importers.read_urlwatch(data) == [
        WatchedSite("job 1", "https://a.example/"),
        WatchedSite("job 2", "https://b.example/"),
        SkippedEntry("job 3", "just words", "not a job"),
    ]


@pytest.mark.parametrize(
    "tag", ["python/object/apply:os.system", "python/object/new:os.system", "python/name:os.system"]
)
def test_tags_build_nothing(tmp_path: Path, tag: str) -> None:
    mark = tmp_path / "mark"
    found = importers.read_urlwatch(f"url: !!{tag} ['touch {mark}']\n".encode())
    assert found == [SkippedEntry("job 1", "", "no URL")]
    assert not mark.exists()


def test_references_are_refused_before_they_grow() -> None:
    laughs = ["a0: &a0 [lol, lol, lol]"]
    laughs += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 20)]
    with pytest.raises(UnreadableList, match=r"line 2: a reference \(\*a0\) is not supported"):
        importers.read_urlwatch("\n".join(laughs).encode())
    with pytest.raises(UnreadableList, match="a reference"):
        importers.read_urlwatch(b"url: x\nself: &s [*s]\n")


BROKEN = (b"url: [", b"a: b: c", b"\xff\xfe", b"? [a]\n: b\n", b"%YAML 9\n--- a", b"url: \x00")
DEEP = (b"url: " + b"[" * 100_000, b"url: " + b"{a: " * 100_000, b"- " * 100_000)


@pytest.mark.parametrize(
    ("given", "message"),
    [(BROKEN, " "), (DEEP, "nested too deeply"), ([b"[" * 100_000_000], "larger than 4 MiB")],
    ids=["broken", "deep", "large"],
)
def test_what_is_no_yaml_is_refused_in_a_sentence(given: Sequence[bytes], message: str) -> None:
    for data in given:
        with pytest.raises(UnreadableList, match=message):
            importers.read_urlwatch(data)
