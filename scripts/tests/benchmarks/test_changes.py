"""The figures of changes beside the versions of others, and the fit of what is minor."""

import asyncio
import subprocess
import zlib
from contextlib import closing
from pathlib import Path
from random import Random

import numpy as np
import pytest

from freshet.crawler.compare.minor import REASONS
from freshet.crawler.reduce.blocks import Blocks, alike
from scripts.benchmarks import changes, minor_fit
from scripts.benchmarks.changes import Repository, Seen, by_service, counted, judged

DAY_S = 86_400


def commit(repository: Path, name: str, text: str, at: int, message: str) -> str:
    def git(*command: str) -> str:
        done = subprocess.run(
            ["git", "-c", "user.name=a", "-c", "user.email=a@b.example", *command],
            cwd=repository, check=True, capture_output=True, text=True,
            env={"PATH": "/usr/bin:/bin", "GIT_AUTHOR_DATE": f"{at} +0000",
                 "GIT_COMMITTER_DATE": f"{at} +0000", "HOME": str(repository)},
        )  # fmt: skip
        return done.stdout.strip()

    if not (repository / ".git").exists():
        git("init", "-q")
    file = repository / name
    file.parent.mkdir(exist_ok=True)
    file.write_text(text, "utf-8")
    git("add", "-A")
    git("commit", "-q", "-m", message)
    return git("rev-parse", "HEAD")


def page(fee: int, views: int) -> str:
    lines = "".join(f"<p>Clause {n} of the terms is as it was.</p>" for n in range(8))
    return f"<main>{lines}<p>The fee is {fee} euros.</p></main><p>Number of views ({views})</p>"


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    """A collection with a document of four visits: a version, views, a new fee, and views."""
    snapshots, versions = tmp_path / "a-snapshots", tmp_path / "a-versions"
    snapshots.mkdir()
    versions.mkdir()
    for day, (fee, views, subject) in enumerate([
        (5, 10, "First record of"), (5, 20, ""), (6, 20, "Record new changes of"), (6, 30, ""),
    ]):  # fmt: skip
        at = 1_700_000_000 + day * DAY_S
        told = "Record new changes\n\nX-source-document-location: https://x.example/t"
        seen = commit(snapshots, "X/Terms.html", page(fee, views), at, told)
        if subject:
            said = f"{subject} X Terms\n\nfrom snapshot https://x.example/commit/{seen}"
            commit(versions, "X/Terms.md", f"# Terms\n\nThe fee is {fee} euros.", at, said)
    return tmp_path


def test_the_label_of_a_visit_is_in_what_words_the_version_differs(archive: Path) -> None:
    ((name, snapshots, versions),) = changes.collections(archive)
    ((visits,),) = by_service(snapshots, versions, 10)
    assert name == "a"
    assert [each.words for each in visits] == [None, set(), {"5", "6"}, set()]
    found = asyncio.run(judged([visits]))
    told = counted(found)
    assert {key: told[key] for key in ("true", "found", "same", "false")} == {
        "true": 1, "found": 1, "same": 2, "false": 0,
    }  # fmt: skip


def test_a_file_that_a_commit_lacks_is_named(archive: Path) -> None:
    with closing(Repository(archive / "a-snapshots")) as repository:
        first, *_ = repository.commits()
        with pytest.raises(ValueError, match="no X/Other"):
            repository.file(first[0], "X/Other.html")


def test_without_folders_nothing_is_measured_or_fitted(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.argv", ["command"])
    changes.main()
    minor_fit.main()
    out, err = capsys.readouterr()
    assert (out, err.count("nothing is")) == ("", 2)


def test_a_visit_is_judged_by_the_visit_before() -> None:
    labels = None, frozenset[str](), frozenset({"b"})
    texts = [(*(f"Clause {n}" for n in range(8)), last) for last in ("a", "a", "b")]
    visits = [
        Seen(
            "X/T", n, "", "", Blocks(*zip(*((t, "text", 1) for t in text), strict=True)), words,
            zlib.compress("".join(f"<p>{each}</p>" for each in text).encode()),
        )
        for n, (text, words) in enumerate(zip(texts, labels, strict=True))
    ]  # fmt: skip
    found = asyncio.run(judged([visits]))
    assert [each.found.kind for each in found] == ["new", "unchanged", "changed"]
    assert found[2].shows


def test_the_fit_separates_what_differs_and_a_change_weighs_more() -> None:
    values = np.array([[0.0], [0.0], [1.0], [1.0]])
    labels = np.array([0.0, 1.0, 0.0, 1.0])
    free, slope = minor_fit.fitted(values, labels, np.where(labels > 0, 10.0, 1.0))
    assert free == pytest.approx(np.log(10), abs=0.2)
    assert abs(slope) < 0.1
    _, slope = minor_fit.fitted(values, np.array([0.0, 0.0, 1.0, 1.0]), np.ones(4))
    assert slope > 0.5


def test_twins_are_made_of_each_kind() -> None:
    texts = tuple(f'It\'s the "{n}" - a sentence of {n} words, or so.' for n in range(60))
    made = list(minor_fit.twins(alike(texts, "paragraph", 1), Random(1)))
    rows = [
        minor_fit.row(pair, is_change=it, collection="a", host="b", source="twins")
        for pair, it in made
    ]
    assert {each.reason for each in rows if each is not None} == set(REASONS)
    assert {it for _, it in made} == {True, False}
