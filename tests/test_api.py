"""The public Python API: the names of DESIGN, where they come from, and a light import."""

import ast
import inspect
import subprocess
import sys
from importlib import import_module, metadata
from pathlib import Path

import pytest

import freshet


def test_type_checkers_are_told_of_every_public_name_and_its_home() -> None:
    stub = ast.parse(Path(freshet.__file__).with_suffix(".pyi").read_text("utf-8"))
    homes = {
        each.asname or each.name: (str(node.module).removeprefix("freshet."), each.name)
        for node in stub.body
        if isinstance(node, ast.ImportFrom)
        for each in node.names
    }
    assert homes == freshet._HOMES  # type: ignore[attr-defined]
    for name, (home, attribute) in homes.items():
        assert getattr(freshet, name) is getattr(import_module(f"freshet.{home}"), attribute)
    (names,) = (node.value for node in stub.body if isinstance(node, ast.Assign))
    assert sorted(ast.literal_eval(names)) == sorted(freshet.__all__)


def test_the_api_answers() -> None:
    assert freshet.canonical_url("HTTP://One.Example:80/a#b") == "http://one.example/a"
    assert freshet.resolve_url("../b", "http://one.example/a/c") == "http://one.example/b"
    robots = b"User-agent: *\nDisallow: /private"
    assert freshet.robots_allowed(robots, "freshet", "http://one.example/")
    assert not freshet.robots_allowed(robots, "freshet", "http://one.example/private")
    plan = freshet.lambda_crawl([1.0, 1.0], [1.0, 1.0], 1.0)
    assert plan.crawl_rate.tolist() == pytest.approx([0.5, 0.5])


def test_the_version_is_that_of_the_distribution() -> None:
    assert freshet.__version__ == metadata.version("freshet")


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        freshet.nothing  # type: ignore[attr-defined]  # noqa: B018


def test_import_freshet_loads_no_other_package() -> None:
    # In a process of its own: this one has imported everything already.
    program = (
        "import sys; before = set(sys.modules); import freshet; "
        "print(sorted(m for m in set(sys.modules) - before if m.split('.')[0] in "
        "{'freshet', 'numpy', 'aiohttp', 'pydantic'}))"
    )
    result = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert result.stdout == "['freshet']\n"


def test_the_signatures_that_stay_are_importable_as_documented() -> None:
    """Others import these by their full paths: neither a path nor an argument is renamed."""
    expected = {
        "scheduler.policies.lambda_crawl.solve": "importance change_rate bandwidth "
        "complete_observations host host_capacity",
        "scheduler.costs.harmonic_cost": "importance change_rate crawl_rate "
        "complete_observations crawling",
        "scheduler.costs.binary_cost": "importance change_rate crawl_rate "
        "complete_observations crawling",
        "scheduler.estimate.poisson.estimate": "intervals changed smoothing",
        "scheduler.policies.whittle.index": "periods_since_crawl arrival_rate mean_utility decay "
        "cost period",
        "crawler.robots.allowed": "robots_txt user_agent url",
        "crawler.urls.resolve": "reference base",
        "crawler.urls.canonical": "url",
    }
    for path, names in expected.items():
        module, _, function = path.rpartition(".")
        found = inspect.signature(getattr(import_module(f"freshet.{module}"), function))
        assert [*found.parameters][: len(names.split())] == names.split(), path
