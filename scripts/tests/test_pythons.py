"""The other Pythons: which are found and taken, and what runs on them."""

import sys
from pathlib import Path

import pytest

from scripts import pythons
from scripts.pythons import Python

OWN = (3, 11, 7)


def program(path: Path, words: str, code: int = 0) -> Path:
    """Make a program that answers as a Python would."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\necho '{words}'\nexit {code}\n")
    path.chmod(0o755)
    return path


def test_pythons_of_the_path_and_of_pyenv_are_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:{tmp_path}/none:/usr/bin:/bin")
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path / "pyenv"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    program(tmp_path / "bin/python3.91", "[3, 91, 4]")
    program(tmp_path / "bin/python3.92", "pyenv: python3.92: command not found", 127)
    program(tmp_path / "bin/python3.93", "nonsense")
    program(tmp_path / "pyenv/versions/3.92.1/bin/python", "[3, 92, 1]")
    program(tmp_path / "home/.pyenv/versions/3.94.0/bin/python", "[3, 94, 0]")
    # Somebody's link to another version.
    program(tmp_path / "bin/python3.95", "[3, 91, 4]")
    found = pythons.installed([(3, minor) for minor in range(91, 97)])
    assert [python.version for python in found] == [(3, 91, 4), (3, 92, 1), (3, 94, 0)]


def test_our_own_python_is_asked_as_any_other() -> None:
    found = pythons.asked(Path(sys.executable))
    assert found == Python(tuple(sys.version_info[:3]), sys.executable)


@pytest.mark.parametrize(
    ("found", "taken"),
    [
        ([], []),
        ([(3, 11, 7)], []),
        ([(3, 11, 7), (3, 12, 1)], [(3, 12, 1)]),
        ([(3, 11, 2), (3, 11, 7)], [(3, 11, 2)]),
        ([(3, 11, 9), (3, 11, 2), (3, 11, 7)], [(3, 11, 2)]),
        ([(3, 12, 10), (3, 12, 9)], [(3, 12, 9)]),
        ([(3, 13, 0), (3, 12, 1), (3, 11, 2)], [(3, 11, 2), (3, 12, 1), (3, 13, 0)]),
    ],
)
def test_the_oldest_of_each_version_is_taken_but_not_our_own(
    found: list[tuple[int, ...]], taken: list[tuple[int, ...]]
) -> None:
    chosen = pythons.others([Python(version, "python") for version in found], OWN)
    assert [python.version for python in chosen] == taken


def test_every_supported_python_has_a_classifier() -> None:
    assert {(3, 11), (3, 12), (3, 13)} <= set(pythons.supported())


def test_the_quarter_is_one_and_has_tests_of_store_and_crawler() -> None:
    files = pythons.test_files()
    chosen = pythons.quarter(files)
    assert 0.2 < len(chosen) / len(files) < 0.3
    assert chosen == [name for name in files if name in set(pythons.quarter(reversed(files)))]
    assert {"tests/storage/test_database.py", "tests/storage/test_writer.py"} <= set(chosen)
    assert sum(name.startswith("tests/crawler/") for name in chosen) >= 20


@pytest.mark.parametrize(
    ("tests", "names"),
    [
        (False, ["the demo"]),
        (
            True,
            [
                "a quarter of the tests", "the demo with the newest versions",
                "a quarter of the tests with the newest versions",
            ],
        ),
    ],
)  # fmt: skip
def test_what_runs_is_installed_with_hashes_or_in_its_newest_versions(
    tmp_path: Path, tests: bool, names: list[str]
) -> None:
    trials = list(pythons.trials(Python((3, 12, 1), "python3.12"), tmp_path, tests=tests))
    assert [name for name, _ in trials] == names
    for name, commands in trials:
        installs = [command for command in commands if "install" in command]
        is_newest = "newest" in name
        assert all(("--upgrade" in command) == is_newest for command in installs)
        assert any("--require-hashes" in command for command in installs) != is_newest


def test_a_python_on_which_something_fails_is_told_and_ends_with_1(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    there = [Python((3, 97, 1), "/one"), Python((3, 98, 0), "/other")]
    monkeypatch.setattr("sys.argv", ["pythons.py"])
    monkeypatch.setattr(pythons, "installed", lambda versions: there)
    monkeypatch.setattr(pythons, "supported", lambda: [(3, 97), (3, 98), (3, 99)])
    monkeypatch.setattr(
        pythons, "trials", lambda python, place, tests: [("the demo", [[python.path]])]
    )
    monkeypatch.setattr(pythons, "succeeds", lambda command: command == ["/one"])
    with pytest.raises(SystemExit) as ended:
        pythons.main()
    told = capsys.readouterr().out
    assert ended.value.code == 1
    assert "Python 3.97.1 (/one): the demo passed" in told
    assert "Python 3.98.0 (/other): the demo FAILED" in told
    assert "Python 3.99: not run" in told
