"""The fuzz run: what a seed makes, and that a wrong outcome is found and kept."""

import graphlib
import json
import logging
import re
from pathlib import Path
from random import Random

import pytest

from scripts.benchmarks import fuzz_inputs, fuzzing
from scripts.benchmarks.fuzz_commands import Case, run_command


def everything(seed: int) -> list[bytes]:
    rng = Random(seed)
    documents = [fuzz_inputs.document(rng, rule) for rule in fuzz_inputs.GRAMMAR]
    answer = fuzz_inputs.http_answer(rng, "html", "h0.localhost:1", 1.0)
    return [*documents, answer, fuzz_inputs.warc(rng)]


def test_every_rule_of_the_grammar_expands_and_a_seed_always_gives_the_same() -> None:
    assert everything(7) == everything(7)
    assert everything(7) != everything(8)


def test_the_first_alternative_of_each_rule_comes_to_an_end() -> None:
    calls = {
        rule: set(re.findall(r"«(\w+)»", first))
        for rule, (first, *_) in fuzz_inputs.GRAMMAR.items()
    }
    assert set(graphlib.TopologicalSorter(calls).static_order()) == set(calls)


@pytest.mark.parametrize("target", ["archives", "core", "lists", "settings"])
def test_a_case_is_measured(target: str, tmp_path: Path) -> None:
    outcome = fuzzing.Outcome()
    with fuzzing._listening() as listener:
        fuzzing.one(target, 1, outcome, listener, tmp_path)
    assert (outcome.cases, outcome.findings) == (1, [])
    assert outcome.inputs >= 1


def test_what_is_wrong_is_found_and_its_inputs_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def wrong(case: Case) -> None:
        case.written("a.txt", b"\xff")
        logging.getLogger("x").error("an error")
        run_command(case, ["config", "show", "--config", "nothing"])
        raise ValueError("odd")

    monkeypatch.setitem(fuzzing.TARGETS, "lists", wrong)
    outcome = fuzzing.Outcome()
    with fuzzing._listening() as listener:
        fuzzing.one("lists", 1, outcome, listener, tmp_path)
    assert [str(each["wrong"])[:9] for each in outcome.findings] == ["Traceback", "log: an e"]
    first = (tmp_path / "lists-1.jsonl").read_text().splitlines()[0]
    assert json.loads(first) == ["a.txt", "\xff"]
