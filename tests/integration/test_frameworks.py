"""The classes of the guide hand the passages of a store to LangChain and to LlamaIndex."""

import asyncio
import json
import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import freshet
from tests.integration.test_changefeed import Site, page, site

__all__ = ["site"]

ROOT = Path(__file__).parents[2]
GUIDE = (ROOT / "docs/guide/frameworks.md").read_text("utf-8")
#: For each framework a class, and a call of it.
BLOCKS = re.findall(r"^```python\n(.*?)^```", GUIDE, re.MULTILINE | re.DOTALL)
EXAMPLES = {"langchain": BLOCKS[:2], "llama-index": BLOCKS[2:]}
LINES = 20
#: Runs an example with what is in the folder, behind our own environment.
PROGRAM = """
import json, sys
sys.path.append(sys.argv[1])
exec(sys.argv[2])
print(json.dumps([[getattr(it, "id", None) or it.id_, it.metadata["source"]] for it in documents]))
"""


def passages(site: Site) -> list[list[str]]:
    with freshet.Store(site.db) as store:
        return [[it.id, it.url] for it in store.chunks()]


def test_each_class_is_short() -> None:
    assert len(BLOCKS) == 4
    for made, called in EXAMPLES.values():
        assert len(made.splitlines()) <= LINES
        assert len(called.splitlines()) == 1


class Base:
    """Stands in for the class that a framework offers: it makes a list of what is yielded."""

    def load(self) -> list[Any]:
        return [*self.lazy_load()]  # type: ignore[attr-defined]

    def load_data(self, *given: object) -> list[Any]:
        return [*self.lazy_load_data(*given)]  # type: ignore[attr-defined]


class Document:
    """Stands in for that of a framework: it keeps what it is made of."""

    def __init__(self, **said: Any) -> None:
        self.said = said


@pytest.mark.parametrize("name", EXAMPLES)
async def test_all_passages_are_handed_over(
    site: Site, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The frameworks themselves come with dozens of packages: the long test installs them."""
    site.pages["/kept"] = page("kept", "<h2>Below</h2><p>A part of its own.</p>" * 30)
    await site.crawl()
    for module in (
        "langchain_core.document_loaders", "langchain_core.documents",
        "llama_index.core.readers.base", "llama_index.core.schema",
    ):  # fmt: skip
        made = ModuleType(module)
        made.__dict__.update(BaseLoader=Base, BaseReader=Base, Document=Document)
        monkeypatch.setitem(sys.modules, module, made)
    monkeypatch.chdir(site.db.parent)
    place: dict[str, Any] = {}
    for block in EXAMPLES[name]:
        exec(block, place)
    said = [each.said for each in place["documents"]]
    assert len(said) > 5
    expected = await asyncio.to_thread(passages, site)
    assert [[it.get("id") or it["id_"], it["metadata"]["source"]] for it in said] == expected


@pytest.fixture(scope="session")
def frameworks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the frameworks, in the versions of our benchmark."""
    folder = tmp_path_factory.mktemp("frameworks")
    asyncio.run(_install(folder))
    return folder


async def _install(folder: Path) -> None:
    said = (ROOT / "scripts/competitors/splitters.txt").read_text("utf-8")
    (wanted,) = re.findall(r"^llama-index-core==\S+$", said, re.MULTILINE)
    words = ["-m", "pip", "install", "--quiet", "--target", str(folder), "langchain-core", wanted]
    done = await asyncio.create_subprocess_exec(sys.executable, *words)
    assert await done.wait() == 0


@pytest.mark.long
@pytest.mark.parametrize("name", EXAMPLES)
async def test_the_frameworks_take_them(site: Site, name: str, frameworks: Path) -> None:
    program = await asyncio.create_subprocess_exec(
        sys.executable, "-c", PROGRAM, str(frameworks), "".join(EXAMPLES[name]),
        cwd=site.db.parent, stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    out, _ = await asyncio.wait_for(program.communicate(), 120)
    assert program.returncode == 0
    assert json.loads(out) == await asyncio.to_thread(passages, site)
