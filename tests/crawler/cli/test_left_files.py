"""What a kill leaves of a file goes when it is written again; packages are reproducible."""

import subprocess
import sys
from pathlib import Path

import pytest

from freshet.crawler.run.terminal import replaced
from tests.console import shown
from tests.crawler.archive.test_cdxj import archived
from tests.variants import first

KILLED = """
import os, signal, sys
from pathlib import Path
from freshet.crawler.run.terminal import replaced
with replaced(Path(sys.argv[1])) as whole:
    whole.write_text("half of it")
    os.kill(os.getpid(), signal.SIGKILL)
"""
NAMES = [
    "out.wacz", "out.cdxj", "a b.csv", "ä.jsonl", "[x]*?.csv", ".hidden", "-", "no-suffix",
    "x" * 200, "plan.parquet", "out.html", "日本.wacz",
]  # fmt: skip


@pytest.mark.parametrize("name", first(5, NAMES), ids=lambda it: it[:12])
def test_what_a_killed_command_left_goes_at_the_next_start(tmp_path: Path, name: str) -> None:
    output = tmp_path / name
    others = tmp_path / f".{name[:40]}.freshet-notes", tmp_path / f".{name[:40]}"
    for each in others:
        each.write_text("somebody's own")
    for _ in range(2):
        killed = subprocess.run([sys.executable, "-c", KILLED, output], check=False)
        assert killed.returncode == -9
    assert len(list(tmp_path.iterdir())) == len(others) + 1, "the second had removed the first's"
    with replaced(output) as whole:
        whole.write_text("all of it")
        # Another program that writes the same file does not take this one away.
        with replaced(output) as other:
            assert whole.exists()
            other.write_text("another")
    assert output.read_text() == "all of it"
    assert {each for each in tmp_path.iterdir() if each != output} == set(others)


async def test_two_packages_of_one_archive_are_equal(tmp_path: Path) -> None:
    folder = tmp_path / "warcs"
    await archived(folder)
    for name in ("a.wacz", "b.wacz"):
        shown("archive", folder, "--wacz", tmp_path / name)
    made = [(tmp_path / name).read_bytes() for name in ("a.wacz", "b.wacz")]
    assert made[0] == made[1]
    assert len(made[0]) > 1_000
