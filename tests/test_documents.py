"""README, guide and benchmarks beside the program: verbs, options, settings, policies and links."""

import ast
import asyncio
import functools
import json
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

import freshet
from freshet.config.loading import defaults_text, load
from freshet.crawler.cli.verbs import application, lines
from freshet.crawler.extensions.lab.synthetic_web.web import WebSpec, mixed
from freshet.scheduler import policy
from scripts import documents
from scripts.synthetic_server import serve
from tests.integration.quick import QUICK

ROOT = Path(__file__).parents[1]
INDEX = ROOT / "docs/guide/index.md"
GUIDE = sorted({*(ROOT / "docs/guide").glob("*.md")} - {INDEX})
PAGES = [ROOT / "README.md", INDEX, ROOT / "docs/BENCHMARKS.md", ROOT / "docs/SCALE.md", *GUIDE]
LINKED = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    INDEX,
    *sorted((ROOT / "docs").glob("*.md")),
    *GUIDE,
]
LINES_OF_A_PAGE = 220


def text(page: Path) -> str:
    return page.read_text(encoding="utf-8")


def code(page: Path) -> list[str]:
    """Return the blocks and spans of code on a page, one per line of a block."""
    blocks = re.findall(r"^```\w*\n(.*?)^```", text(page), re.MULTILINE | re.DOTALL)
    prose = re.sub(r"^```.*?^```", "", text(page), flags=re.MULTILINE | re.DOTALL)
    spans = [" ".join(span.split()) for span in re.findall(r"`([^`]+)`", prose)]
    return [line for block in blocks for line in block.splitlines()] + spans


def commands(page: Path) -> Iterator[tuple[str, set[str]]]:
    """Yield each verb that a page runs, with the long options that it gives."""
    for line in code(page):
        if match := re.match(r"(?:\$ |[A-Z_]+=\S+ )*freshet ([a-z]+)(?: show)?\b(.*)", line):
            yield match[1], set(re.findall(r"(--[a-z-]+)", match[2].split("#")[0]))


@functools.cache
def options() -> dict[str, set[str]]:
    """Return the options of each verb, those of its own verbs included."""
    found = {}
    for verb in lines():
        command = get_command(application([verb])).commands[verb]  # type: ignore[attr-defined]
        parts = [command, *getattr(command, "commands", {}).values()]
        params = [each for part in parts for each in part.params]
        found[verb] = {"--help"}.union(*(each.opts + each.secondary_opts for each in params))
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_command_of_a_page_exists_with_its_options(page: Path) -> None:
    wrong = [
        (verb, *sorted(given - options().get(verb, set())))
        for verb, given in commands(page)
        if verb not in options() or not given <= options()[verb]
    ]
    assert wrong == []


@pytest.mark.parametrize("page", [PAGES[0], *GUIDE], ids=lambda page: page.stem)
def test_every_option_of_the_guide_exists(page: Path) -> None:
    elsewhere = {"--with"}
    named = {match[0] for line in code(page) if (match := re.match(r"--[a-z-]+", line))}
    assert named - set().union(*options().values()) - elsewhere == set()


def test_the_guide_lists_every_verb_in_the_order_of_the_help() -> None:
    assert re.findall(r"^\| `(.+?)` \|", text(INDEX), re.MULTILINE) == list(lines())


def test_pages_of_the_guide_are_linked_short_and_begin_with_commands() -> None:
    for page in GUIDE:
        assert f"]({page.name})" in text(INDEX)
        lines = text(page).splitlines()
        assert len(lines) <= LINES_OF_A_PAGE, page.name
        assert lines[2].startswith("```"), page.name


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_setting_and_script_of_a_page_exists(page: Path) -> None:
    defaults = tomllib.loads(defaults_text())
    named = {span for line in code(page) for span in re.findall(r"^[a-z]+\.[a-z_]+$", line)}
    named |= {
        f"{group}.{key}".lower()
        for line in code(page)
        for group, key in re.findall(r"FRESHET_([A-Z]+)__([A-Z_]+)=", line)
    }
    keys = {f"{group}.{key}" for group, table in defaults.items() for key in table}
    groups = {name for name in named if name.split(".")[0] in defaults}
    assert groups - keys - {"crawl.db"} == set()
    scripts = {script for line in code(page) for script in re.findall(r"scripts/[\w./-]*\w", line)}
    assert {script for script in scripts if not (ROOT / script).exists()} == set()


def test_the_settings_of_the_guide_load(tmp_path: Path) -> None:
    groups = ("[alerts", "[daemon", "[receiver", "[[alerts", "[[sites")
    tried = 0
    for page in GUIDE:
        for block in re.findall(r"```toml\n(.*?)```", text(page), re.DOTALL):
            if block.startswith(groups):
                file = tmp_path / f"{page.stem}.toml"
                file.write_text(block, encoding="utf-8")
                load(file, {})
                tried += 1
    assert tried >= 4


@pytest.fixture
def quickly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Crawl in a folder of the test, as quickly as loopback allows."""
    monkeypatch.chdir(tmp_path)
    for name, value in QUICK.items():
        variable = f"FRESHET_{name.replace('.', '__').upper()}"
        monkeypatch.setenv(variable, json.dumps(value))
    monkeypatch.setenv("FRESHET_SEARCH__INDEX", "on")


async def run(block: str, place: dict[str, Any]) -> None:
    """Run some Python that may await."""
    program = compile(block, "block", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    if (work := eval(program, place)) is not None:
        await work


async def test_the_python_of_the_guide_runs(
    quickly: None, capsys: pytest.CaptureFixture[str]
) -> None:
    """Run its blocks in their order, on a store of a site that has changed between two crawls."""
    async with serve(mixed(WebSpec(hosts=1, pages_per_host=8))) as server:
        await freshet.crawl(server.url("news"))
        server.clock.advance(5 * 86_400.0)
        report = await freshet.crawl()
        site = {
            "https://example.org/page": report.changed_pages[0].url,
            "https://example.org/no-such-page": server.url("news", "/no-such-page"),
            "https://example.org": server.url("news").rstrip("/"),
        }
        place: dict[str, Any] = {"asyncio": asyncio}
        blocks = re.findall(
            r"^```python\n(.*?)^```", text(ROOT / "docs/guide/python.md"), re.MULTILINE | re.DOTALL
        )
        for block in blocks:
            for named, served in site.items():
                block = block.replace(named, served)  # noqa: PLW2901
            await run(block, place)
        place["store"].close()
    shown = capsys.readouterr().out
    assert len(blocks) == 9
    assert "changed" in shown
    assert "is not known; the nearest on that host" in shown


async def test_the_notebook_runs(quickly: None, capsys: pytest.CaptureFixture[str]) -> None:
    """Run its cells in their order, on a site that changes between them."""
    notebook = json.loads(text(ROOT / "docs/notebook.ipynb"))
    cells = [each for each in notebook["cells"] if each["cell_type"] == "code"]
    # Nobody's output is kept.
    assert [each["outputs"] for each in cells] == [[]] * len(cells)
    place: dict[str, Any] = {}
    async with serve(mixed(WebSpec(hosts=1, pages_per_host=8))) as server:
        for cell in cells:
            await run(
                "".join(cell["source"]).replace(
                    "https://example.org", server.url("news").rstrip("/")
                ),
                place,
            )
            server.clock.advance(86_400.0)
    shown = capsys.readouterr().out
    assert place["report"].changed == sum(it.kind == "changed" for it in place["changed"]) > 0
    assert re.search(r"^(added|edited|removed) ", shown, re.MULTILINE)
    assert "how often it changes" in shown


def test_the_guide_describes_every_policy_and_no_other() -> None:
    page = text(ROOT / "docs/guide/plan.md")
    rows = re.findall(r"^\| (`.+?`) \|", page[page.index("## Policies") :], re.MULTILINE)
    assert {name for row in rows for name in re.findall(r"`(.+?)`", row)} == set(policy.names())


def test_the_page_of_benchmarks_is_that_of_its_files() -> None:
    # The marks depend on how many commits were made since.
    unmarked = text(documents.PAGE).replace(documents.MARK, "")
    made = documents.page(lambda _: True).replace(documents.MARK, "")
    assert unmarked == made, "run python -m scripts.documents"


def test_a_figure_is_short_and_has_its_fields() -> None:
    for topic in documents.topics():
        for figure in topic["figures"]:
            assert {"figure", "measured"} <= figure.keys() <= {*documents.COLUMNS}
            for cell in figure.values():
                assert 0 < len(str(cell).split()) <= 25, cell
                assert "|" not in str(cell)


def numbers(words: str) -> set[str]:
    return set(re.findall(r"\d[\d,.]*\d|\d", words))


def test_the_figures_of_the_readme_are_those_of_the_benchmarks() -> None:
    figures = [figure for topic in documents.topics() for figure in topic["figures"]]
    rows = [line.split("|")[2:5] for line in text(PAGES[0]).splitlines() if "| `scripts/" in line]
    assert len(rows) >= 8
    for measured, weak_spot, cell in rows:
        command = " ".join(cell.strip(" `").split()[:2])
        known = [it for it in figures if f"{it.get('command', '')} ".startswith(f"{command} ")]
        named = numbers(" ".join(f"{it['figure']} {it['measured']}" for it in known))
        assert numbers(f"{measured} {weak_spot}") - named == set(), command


def anchors(page: Path) -> set[str]:
    titles = re.findall(r"^#+ (.+)$", text(page), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", LINKED, ids=lambda page: page.stem)
def test_every_link_leads_somewhere(page: Path) -> None:
    broken = []
    for link in re.findall(r"\]\(([^)\s]+)\)", text(page)):
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if "://" not in link and not (
            target.exists() and (not anchor or anchor in anchors(target))
        ):
            broken.append(link)
    assert broken == []


@pytest.mark.parametrize("page", LINKED, ids=lambda page: page.stem)
def test_pages_use_the_words_of_the_field(page: Path) -> None:
    own = r"\b(errands?|lanes?|looks?|refreshers?|robots book|walls?|watchlists?)\b"
    prose = re.sub(r"^```.*?^```|`[^`]+`", "", text(page), flags=re.MULTILINE | re.DOTALL)
    assert re.findall(own, prose, re.IGNORECASE) == []
