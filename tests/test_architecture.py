"""The measures of the tree: names, imports and documents."""

import ast
import functools
import graphlib
import os
import re
import subprocess
import sys
import tomllib
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import pytest
from hatchling.builders.wheel import WheelBuilder

from freshet.compiled.build import library
from tests.integration import test_commands
from tests.integration.scripted import scripted

ROOT = Path(__file__).parents[1]
PACKAGES = ("config", "crawler", "scheduler", "storage")
QUESTIONS = frozenset("How What When Where Whether Which Who Whom Whose Why".split())

Node = TypeVar("Node", bound=ast.AST)


@dataclass(frozen=True, slots=True)
class Module:
    """One source file: its dotted name without the prefix ``freshet.``, and its tree."""

    name: str
    path: Path
    nodes: tuple[ast.AST, ...]

    @classmethod
    def read(cls, path: Path) -> "Module":
        text = path.read_text(encoding="utf-8")
        parts = path.relative_to(ROOT).with_suffix("").parts
        dotted = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        return cls(dotted, path, tuple(ast.walk(ast.parse(text))))

    def each(self, kind: type[Node]) -> Iterator[Node]:
        return (node for node in self.nodes if isinstance(node, kind))

    def classes(self) -> list[str]:
        """Return the public classes at the top of the module."""
        top = next(self.each(ast.Module)).body
        names = [node.name for node in top if isinstance(node, ast.ClassDef)]
        return [each for each in names if not each.startswith("_")]

    def imported(self) -> set[str]:
        """Return the absolute names that the module imports, modules and their members alike."""
        names = {alias.name for node in self.each(ast.Import) for alias in node.names}
        for node in self.each(ast.ImportFrom):
            if node.module and not node.level:
                names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
        return names | {each.removeprefix("freshet.") for each in names}


def files(*folders: str, endings: tuple[str, ...] = (".py",)) -> list[Path]:
    """Return the files of these folders; links (freshet/crawler and so on) are not followed."""
    return sorted(
        Path(folder, file)
        for top in folders
        for folder, _, names in os.walk(ROOT / top, followlinks=False)
        for file in names
        if file.endswith(endings)
    )


@functools.cache
def modules() -> dict[str, Module]:
    return {each.name: each for each in map(Module.read, files("freshet", *PACKAGES))}


@functools.cache
def imports() -> dict[str, set[str]]:
    """Return which modules each module imports; of a package and a module in it, the module."""
    edges = {}
    for module in modules().values():
        found = module.imported() & modules().keys() - {module.name}
        shallow = {each for each in found for other in found if other.startswith(f"{each}.")}
        edges[module.name] = {each for each in found if each not in shallow or "." not in each}
    return edges


def page(relative: str) -> str:
    return (ROOT / relative).read_text(encoding="utf-8")


def name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def test_imports_have_no_cycle() -> None:
    graphlib.TopologicalSorter(imports()).prepare()


def test_each_module_can_be_imported() -> None:
    # Also those that a verb imports when it needs them.
    names = [name if name.startswith("freshet") else f"freshet.{name}" for name in modules()]
    program = "import importlib, sys; [*map(importlib.import_module, sys.argv[1:])]"
    done = subprocess.run(
        [sys.executable, "-c", program, *names], capture_output=True, text=True, check=False
    )
    assert not done.returncode, done.stderr


def test_only_the_door_and_its_extension_know_how_shards_are_stored() -> None:
    importers = {each for each, imported in imports().items() if "storage.shards" in imported}
    others = {each for each in importers if not each.startswith("crawler.extensions.shards.")}
    assert others == {"storage.stores"}
    assert len(importers) <= 6


def test_everything_is_imported_as_freshet() -> None:
    short = [
        f"{module.name}: {line}"
        for module in modules().values()
        for node in (*module.each(ast.Import), *module.each(ast.ImportFrom))
        if (line := ast.unparse(node)).split()[1].split(".")[0] in PACKAGES
    ]
    assert short == []


def test_help_loads_neither_scipy_nor_datasketch() -> None:
    """They are imported where they are used: both take longer than the rest together."""
    program = (
        "import sys; from freshet.crawler.cli import run; sys.argv[1:] = ['crawl', '--help']\n"
        "try: run()\nexcept SystemExit: pass\n"
        "assert not {'scipy', 'datasketch'} & set(sys.modules), 'loaded'"
    )
    subprocess.run([sys.executable, "-c", program], check=True, capture_output=True)


def test_the_list_of_verbs_loads_of_extensions_their_lists_of_verbs_alone() -> None:
    program = (
        "import sys; from freshet.crawler.cli import run; sys.argv[1:] = ['--help']\n"
        "try: run()\nexcept SystemExit: print(*sys.modules, file=sys.stderr)"
    )
    loaded = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True
    ).stderr.split()
    ours = [each for each in loaded if each.startswith("freshet.crawler.extensions.")]
    with_verbs = set("alerts connectors feeds identity lab mcp readers search shards".split())
    assert {each.split(".")[3] for each in ours} == with_verbs
    assert {each.rpartition(".")[2] for each in ours if each.count(".") > 3} == {"verbs"}
    assert {"aiohttp", "jinja2", "numpy", "playwright", "ray", "aiosqlite"}.isdisjoint(loaded)


async def test_a_crawl_of_one_page_loads_no_module_that_is_not_listed(tmp_path: Path) -> None:
    """The list is that of November 2026: a module that is loaded no more leaves it."""
    tell = "import atexit, sys; atexit.register(lambda: print(*sys.modules, file=sys.stderr))"
    async with scripted({"a": {"/": test_commands.page(0)}}) as sites:
        words = ("crawl", f"{sites.origin('a')}/", *test_commands.LOCAL, "--db", "a.db")
        code, _, told = await test_commands.Shell(tmp_path)(*words, before=tell)
    loaded = {each for each in told.split() if re.fullmatch(r"freshet(\.\w+)*", each)}
    listed = {each for each in page("tests/loaded_modules.txt").splitlines() if each[0] != "#"}
    assert code == 0
    assert loaded - listed == set(), "import it where it is used"
    assert listed - loaded == set(), "loaded no more: take it off the list"
    assert len(loaded) <= 120


def test_exceptions_that_cross_modules_are_in_errors() -> None:
    # A refusal knows what each of the others means over HTTP.
    own = {"HttpRefusal"}
    elsewhere = {
        node.name: module.name
        for module in modules().values()
        if module.name.startswith(("crawler.", "storage.")) and not module.name.endswith(".errors")
        for node in module.each(ast.ClassDef)
        if {"Exception", "OSError", "StoreError", "CrawlError"} & set(map(ast.unparse, node.bases))
    }
    crossing = {
        f"{elsewhere[alias.name]}: {alias.name}"
        for module in modules().values()
        for node in module.each(ast.ImportFrom)
        for alias in node.names
        if alias.name in elsewhere and node.module == f"freshet.{elsewhere[alias.name]}"
        if alias.name not in own
    }
    assert crossing == set()


def test_no_class_name_is_defined_twice() -> None:
    counts = Counter(found for each in modules().values() for found in each.classes())
    assert {found: count for found, count in counts.items() if count > 1} == {}


def test_no_call_has_six_positional_arguments() -> None:
    long = [
        f"{name(module.path)}:{call.lineno}"
        for module in modules().values()
        for call in module.each(ast.Call)
        if sum(not isinstance(each, ast.Starred) for each in call.args) >= 6
    ]
    assert long == []


#: Limits of complexity, as ADR 0024 has them; a limit changes by another ADR.
COMPLEXITY = 10
BRANCHES = (
    ast.If, ast.For, ast.While, ast.AsyncFor, ast.ExceptHandler, ast.IfExp, ast.comprehension,
    ast.Assert, ast.match_case,
)  # fmt: skip


def complexity(function: ast.AST) -> int:
    """Return the number of independent paths through a function, those of its inner ones too."""
    nodes = list(ast.walk(function))
    choices = sum(len(node.values) - 1 for node in nodes if isinstance(node, ast.BoolOp))
    return 1 + sum(isinstance(node, BRANCHES) for node in nodes) + choices


def complex_functions() -> dict[str, int]:
    """Return the functions beyond the limit with their complexity, the worst of each name."""
    found: dict[str, int] = {}
    for module in modules().values():
        for node in module.nodes:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                name = f"{module.name}:{node.name}"
                found[name] = max(complexity(node), found.get(name, 0))
    return {name: value for name, value in found.items() if value > COMPLEXITY}


def test_no_function_becomes_more_complex_than_it_was_and_no_other_one_does() -> None:
    """The exceptions are those of November 2026: what is simpler by now leaves the list."""
    listed = tomllib.loads(page("tests/complex_functions.toml"))["functions"]
    found = complex_functions()
    grown = {name: value for name, value in found.items() if value > listed.get(name, COMPLEXITY)}
    assert grown == {}, f"over {COMPLEXITY}, or more than before: split them by meaning"
    assert listed.keys() - found.keys() == set(), "simple by now: take them off the list"
    assert len(found) <= 15
    assert max(found.values()) <= 15


#: Attributes of one class at most, as ADR 0025 has it. Callables in dataclasses are all listed.
ATTRIBUTES = 20


def attributes(node: ast.ClassDef) -> int:
    """Return how many attributes the methods of a class set."""
    stored = (
        each.attr
        for each in ast.walk(node)
        if isinstance(each, ast.Attribute)
        if isinstance(each.ctx, ast.Store)
        if isinstance(each.value, ast.Name) and each.value.id == "self"
    )
    return len(set(stored))


def callables(node: ast.ClassDef) -> int:
    """Return how many fields of a dataclass are functions."""
    if not any("dataclass" in ast.unparse(each) for each in node.decorator_list):
        return 0
    fields = (each for each in node.body if isinstance(each, ast.AnnAssign))
    return sum("Callable" in ast.unparse(each.annotation) for each in fields)


@pytest.mark.parametrize(
    ("kind", "measure", "limit"),
    [("attributes", attributes, ATTRIBUTES), ("callables", callables, 0)],
)
def test_no_class_holds_more_than_it_did_and_no_other_one_does(
    kind: str, measure: Callable[[ast.ClassDef], int], limit: int
) -> None:
    """The exceptions are those of November 2026: what is smaller by now leaves the list."""
    listed = tomllib.loads(page("tests/large_classes.toml"))[kind]
    found = {
        f"{module.name}:{node.name}": value
        for module in modules().values()
        for node in module.each(ast.ClassDef)
        if (value := measure(node)) > limit
    }
    grown = {name: value for name, value in found.items() if value > listed.get(name, limit)}
    assert grown == {}, "more than before: split the class, or give it an object with methods"
    less = {name: value for name, value in listed.items() if value > found.get(name, limit)}
    assert less == {}, "smaller by now: take it off the list, or lower its entry"
    assert sum(found.values()) <= 20


def test_no_docstring_begins_with_a_question_word() -> None:
    asking = [
        f"{module.name}: {text.splitlines()[0]}"
        for module in modules().values()
        for node in module.nodes
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        if (text := ast.get_docstring(node))
        if text.split()[0].strip(".,:`\"'") in QUESTIONS
    ]
    assert asking == []


def test_the_readme_is_read_in_five_minutes() -> None:
    text = page("README.md")
    assert len(text.splitlines()) <= 120
    assert len(text.split()) <= 1_200


def test_the_architecture_opens_with_the_data_flow() -> None:
    opening = "A due URL leaves the frontier, is fetched politely, is reduced to a sketch,"
    words = page("docs/ARCHITECTURE.md").replace("> ", "").split()
    assert opening in " ".join(words[:40])


def test_the_page_for_contributors_names_files_that_exist() -> None:
    text = page("CONTRIBUTING.md")
    named = re.findall(r"`((?:config|crawler|docs|freshet|scheduler|storage|tests)/[\w./]+)`", text)
    missing = [each for each in named if not (ROOT / each).exists() and "N" not in each]
    assert len(text.splitlines()) <= 80
    assert len(named) > 10
    assert missing == []


def test_the_glossary_has_at_most_65_terms_each_with_a_source_in_alphabetical_order() -> None:
    lines = [each for each in page("docs/GLOSSARY.md").splitlines() if each.startswith("**")]
    terms = [match[1] for each in lines if (match := re.match(r"\*\*(.+?)\*\* – .+ \(.+\)$", each))]
    assert len(terms) == len(lines) <= 65
    assert terms == sorted(terms, key=str.casefold)


def test_the_architecture_is_one_page_that_names_at_most_40_files() -> None:
    text = page("docs/ARCHITECTURE.md")
    named = set(re.findall(r"[\w/]+\.(?:py|toml|md)\b", text))
    paths = [each.path for each in modules().values()] + files("tests")
    existing = {path.name for path in paths} | {name(path) for path in paths}
    assert len(text.splitlines()) <= 120
    assert len(named) <= 40
    assert {each for each in named if each.endswith(".py")} - existing == set()


def test_the_architecture_names_every_folder() -> None:
    text = page("docs/ARCHITECTURE.md")
    folders = {each.path.parent.name for each in modules().values()}
    assert {folder for folder in folders if f"{folder}/" not in text} == set()


def test_no_module_is_a_drawer_for_leftovers() -> None:
    drawers = {"base", "common", "helpers", "misc", "utils"}
    assert [each.name for each in modules().values() if each.path.stem in drawers] == []


def test_no_class_is_a_manager_or_a_base() -> None:
    classes = [node.name for each in modules().values() for node in each.each(ast.ClassDef)]
    assert [each for each in classes if re.search(r"^Base[A-Z]|Manager$", each)] == []


def test_no_name_is_a_word_that_only_this_project_had() -> None:
    own = re.compile(r"(?<![a-z])(?:errand|lane|walls|watchlist|refresher|unlearnt)s?(?![a-z])")
    assert [each.name for each in modules().values() if own.search(each.path.read_text())] == []


def test_every_dataclass_has_slots() -> None:
    loose = [
        f"{module.name}: {node.name}"
        for module in modules().values()
        for node in module.each(ast.ClassDef)
        for decorator in map(ast.unparse, node.decorator_list)
        if decorator.startswith("dataclass") and "slots=True" not in decorator
    ]
    assert loose == []


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> frozenset[str]:
    """Return the names of the files in a wheel of the project."""
    directory = tmp_path_factory.mktemp("wheel")
    (built,) = WheelBuilder(str(ROOT)).build(directory=str(directory), versions=["standard"])
    with zipfile.ZipFile(built) as archive:
        return frozenset(archive.namelist())


def test_an_environment_gets_exactly_one_name(wheel: frozenset[str]) -> None:
    tops = {file.split("/")[0] for file in wheel}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"freshet"}


def test_the_wheel_holds_what_the_packages_read(wheel: frozenset[str]) -> None:
    endings = (".html", ".json", ".sql", ".toml", ".txt")
    data = {f"freshet/{name(path)}" for path in files(*PACKAGES, endings=endings)}
    assert len(data) > 3
    assert data | {"freshet/py.typed"} <= wheel


def test_every_source_file_is_in_the_wheel(wheel: frozenset[str]) -> None:
    assert {f"freshet/{name(path)}" for path in files(*PACKAGES)} <= wheel
    assert set(map(name, files("freshet", endings=(".py", ".c", ".h")))) <= wheel


def test_the_wheel_holds_the_compiled_core_of_these_sources(wheel: frozenset[str]) -> None:
    assert [each for each in wheel if "/core-" in each] == [f"freshet/compiled/{library().name}"]


def test_no_group_in_a_pattern_is_possessive() -> None:
    """Python up to 3.11.4, as in Debian 12, matches such groups wrongly; atomic ones are right."""
    group = re.compile(r"\)[?*+]\+")
    found = [
        f"{name(path)}:{number}"
        for path in files(*PACKAGES)
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1)
        if group.search(line) and not line.startswith("_SAFE")  # signs, not a pattern
    ]
    assert found == []
