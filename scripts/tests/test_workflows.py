"""What runs at the forge is pinned, may do little, and takes no text of others for a command."""

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from scripts.sbom_of_lock import ROOT, bill

WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))
PINNED = re.compile(r"uses: [\w.-]+/[\w./-]+@[0-9a-f]{40} # v\d+(\.\d+)*$")


def read(path: Path) -> dict[Any, Any]:
    found: dict[Any, Any] = yaml.safe_load(path.read_text("utf-8"))
    return found


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda it: it.stem)
def test_actions_are_pinned_to_commits_and_may_read_only(path: Path) -> None:
    lines = [line.strip().removeprefix("- ") for line in path.read_text("utf-8").splitlines()]
    used = [line for line in lines if line.startswith("uses:")]
    assert used
    assert [line for line in used if not PINNED.match(line)] == []
    workflow = read(path)
    assert workflow["permissions"] == {"contents": "read"}
    # YAML takes "on" for a truth value.
    assert "pull_request_target" not in workflow[True]
    for job in workflow["jobs"].values():
        may = job.get("permissions", {})
        assert may.keys() <= {"id-token", "contents"}
        assert not may or "refs/tags" in job["if"], "only a release writes anything"
        for step in job["steps"]:
            assert "${{ github.event" not in step.get("run", "")
            if step.get("uses", "").startswith("actions/checkout@"):
                assert step["with"] == {"persist-credentials": False}


def test_changes_are_tested_and_the_lock_is_audited_each_week() -> None:
    workflow = read(ROOT / ".github/workflows/check.yml")
    assert {"push", "pull_request", "schedule"} <= workflow[True].keys()
    ran = {
        name: [step.get("run", "") for step in job["steps"]]
        for name, job in workflow["jobs"].items()
    }
    assert "scripts/test" in ran["test"]
    assert any(each.startswith("scripts/audit ") for each in ran["audit"])
    assert "if" not in workflow["jobs"]["audit"]


def test_an_sbom_has_each_locked_package_with_its_hashes() -> None:
    made = [
        subprocess.run([ROOT / "scripts/sbom"], capture_output=True, text=True, check=True).stdout
        for _ in range(2)
    ]
    assert made[0] == made[1]
    found = json.loads(made[0])
    assert (found["bomFormat"], found["specVersion"]) == ("CycloneDX", "1.5")
    lock = (ROOT / "requirements.lock").read_text("utf-8")
    locked = re.findall(r"^([^\s#=]+)==([^\s;\\]+)", lock, re.MULTILINE)
    assert sorted((it["name"], it["version"]) for it in found["components"]) == sorted(locked)
    files = [it["externalReferences"][0]["hashes"] for it in found["components"]]
    hashes = [each["content"] for some in files for each in some]
    assert sorted(hashes) == sorted(re.findall(r"sha256:([0-9a-f]{64})", lock))
    assert all(files)
    text = (ROOT / ".github/workflows/release.yml").read_text("utf-8")
    assert "scripts/sbom > sbom/" in text
    assert "sbom/*" in text


def test_a_package_without_hashes_or_with_a_condition_is_listed() -> None:
    lock = "a==1 ; python_version > '3'\nb-c==2.0 \\\n    --hash=sha256:" + "0" * 64 + "\n# via x\n"
    found = bill(lock, {"name": "x", "version": "1"})["components"]
    assert [(it["name"], it["version"]) for it in found] == [("a", "1"), ("b-c", "2.0")]
