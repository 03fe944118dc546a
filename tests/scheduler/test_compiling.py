import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numba
import numpy as np
import pytest

from freshet.scheduler import arrays
from freshet.scheduler.arrays import Floats


def total(column: Floats) -> float:
    result = 0.0
    for value in column:
        result += value
    return result


@arrays.part
def squared(x: float) -> float:
    return x * x


def squares(column: Floats) -> float:
    result = 0.0
    for value in column:
        result += squared(value)
    return result


def test_a_loop_may_call_parts_that_are_compiled() -> None:
    assert arrays.compiled(squares)(np.arange(4.0)) == 14.0


def test_a_compiled_loop_gives_what_the_loop_gives() -> None:
    column = np.arange(1000) / 7
    assert arrays.compiled(total)(column) == pytest.approx(total(column), rel=1e-14)


def test_a_loop_is_compiled_once() -> None:
    assert arrays.compiled(total) is arrays.compiled(total)


def test_code_is_kept_on_disk_for_the_sources_that_it_was_made_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A function that a loop calls may stand in another file, and may have been changed there."""
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))

    def was_kept() -> bool:
        code: Any = arrays._Waiting(total, from_python=True).code
        assert code(np.ones(3)) == 3
        return bool(code.stats.cache_hits)

    assert (was_kept(), was_kept()) == (False, True)
    monkeypatch.setattr(arrays, "_fingerprint", lambda module: b"other sources")
    assert (was_kept(), was_kept()) == (False, True)


@pytest.mark.parametrize(
    "imported", ["freshet.scheduler.old import a, b", "freshet.scheduler import old"]
)
def test_a_fingerprint_is_that_of_a_module_and_of_all_that_it_imports(
    imported: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sources = {
        "ours": f"import math\nfrom {imported}\n",
        "freshet.scheduler.old": "from freshet.scheduler.older import (\n    c,\n)\n",
        "freshet.scheduler.older": "def c(): ...\n",
    }
    found = set()
    for changed in ("", *sources):
        for name, text in sources.items():
            path = tmp_path / f"{name}.py"
            path.write_text(text + "def d(): ...\n" * (name == changed))
            monkeypatch.setitem(sys.modules, name, SimpleNamespace(__file__=str(path)))
        found.add(arrays._fingerprint.__wrapped__("ours"))
    assert len(found) == 4


def test_where_nothing_can_be_kept_on_disk_the_loop_is_compiled_all_the_same() -> None:
    # A function without a file is one for which there is no cache directory.
    names: dict[str, Callable[[float], float]] = {}
    exec("def twice(x): return 2 * x", names)
    assert arrays.compiled(names["twice"])(4.0) == 8
