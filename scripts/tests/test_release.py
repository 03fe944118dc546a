"""What is released is made as docs/RELEASING.md says."""

import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from freshet.compiled import build

ROOT = Path(__file__).parents[2]


def test_the_workflow_makes_tries_and_then_publishes() -> None:
    text = (ROOT / ".github/workflows/release.yml").read_text("utf-8")
    jobs = yaml.safe_load(text)["jobs"]
    ran = [step.get("run", "") for job in jobs.values() for step in job["steps"]]
    assert "scripts/test" in ran
    assert "scripts/release" in ran
    assert sum("scripts/deploy/try_wheel.sh" in each for each in ran) == 2
    assert jobs["publish"]["needs"] == ["try", "try-macos"]
    assert jobs["publish"]["if"] == "startsWith(github.ref, 'refs/tags/v')"
    for name in ("scripts/release", "scripts/deploy/try_wheel.sh"):
        assert (ROOT / name).stat().st_mode & 0o100


def test_the_platforms_of_wheels_are_those_that_are_promised() -> None:
    listed = [sys.executable, str(ROOT / "freshet/compiled/build.py"), "--wheels"]
    done = subprocess.run(listed, capture_output=True, text=True, check=False)
    assert done.returncode == 0
    tags = done.stdout.split()
    assert {tag.partition("_")[0] for tag in tags} == {"manylinux", "musllinux", "macosx"}
    assert len({build.library(wheel=tag).name for tag in tags}) == 4  # the libc is in no name
    assert {build.library(wheel=tag).suffix for tag in tags if "macos" in tag} == {".dylib"}


def test_a_platform_that_is_none_is_named() -> None:
    with pytest.raises(RuntimeError, match=r"FRESHET_WHEEL=win_amd64 is none of manylinux_2_17"):
        build.build(wheel="win_amd64")
