"""Print the software bill of materials of the lock, in CycloneDX 1.5 (https://cyclonedx.org/).

It has no time and no random number: the SBOMs of the same lock and version are equal.
"""

import json
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import NAMESPACE_URL, uuid5

ROOT = Path(__file__).parents[1]
_LOCKED = re.compile(
    r"^([a-z0-9][a-z0-9._-]*)==([^ ;\\\n]+)[^\\\n]*\\?\n((?: +--hash=.*\n)*)", re.MULTILINE
)
_HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")


def components(lock: str) -> Iterator[dict[str, Any]]:
    """Yield the packages of a lock, each with its hashes, one for each file that may be used."""
    for name, version, hashes in _LOCKED.findall(lock):
        purl = f"pkg:pypi/{name}@{version}"
        files = [{"alg": "SHA-256", "content": each} for each in _HASH.findall(hashes)]
        yield {
            "type": "library", "bom-ref": purl, "name": name, "version": version, "purl": purl,
            "externalReferences": [
                {
                    "type": "distribution", "url": f"https://pypi.org/project/{name}/{version}/",
                    "hashes": files,
                }
            ],
        }  # fmt: skip


def bill(lock: str, project: dict[str, Any]) -> dict[str, Any]:
    """Return the SBOM of a project with a lock."""
    found = sorted(components(lock), key=lambda it: str(it["purl"]))
    own = f"pkg:pypi/{project['name']}@{project['version']}"
    serial = uuid5(NAMESPACE_URL, f"{own} {[each['purl'] for each in found]}")
    return {
        "bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1,
        "serialNumber": f"urn:uuid:{serial}",
        "metadata": {
            "component": {
                "type": "application", "bom-ref": own, "name": project["name"],
                "version": project["version"], "purl": own,
            }
        },
        "components": found,
        "dependencies": [{"ref": own, "dependsOn": [each["purl"] for each in found]}],
    }  # fmt: skip


def main() -> None:
    """The command ``scripts/sbom``."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    made = bill((ROOT / "requirements.lock").read_text("utf-8"), project)
    sys.stdout.write(json.dumps(made, indent=1) + "\n")


if __name__ == "__main__":
    main()
