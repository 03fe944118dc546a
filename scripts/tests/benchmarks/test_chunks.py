"""The edit of bench chunks, and what it counts."""

import json
import sys
from pathlib import Path
from random import Random

from scripts.benchmarks import chunks

PAGE = "<html><body><main><h1>Mills</h1>{}</main></body></html>"
WORDS = "The mill stands by the river, and grinds what the farmers bring to it in autumn."


def test_an_edit_adds_one_sentence_to_a_paragraph() -> None:
    body = PAGE.format(f"<p>{WORDS}</p><p>{WORDS}</p>").encode()
    changed = chunks.edited(body, Random(1))
    assert changed is not None
    assert changed.count(b"added later") == 1
    assert b" This sentence" in changed
    assert chunks.edited(b"<p>No end</p>", Random(1)) is None


def test_only_new_texts_of_edited_pages_are_counted(tmp_path: Path) -> None:
    for n in range(20):
        sections = "".join(f"<h2>Part {m}</h2><p>{f'{n} {m} {WORDS} ' * 12}.</p>" for m in range(5))
        (tmp_path / f"{n}.html").write_text(PAGE.format(sections), "utf-8")
    # A splitter that cuts nothing: a page with an edit is embedded whole.
    whole = tmp_path / "python"
    program = "import json, sys; p = json.load(sys.stdin); json.dump({'whole': [[m] for _, m in p]}"
    whole.write_text(f'#!/bin/sh\nexec {sys.executable} -c "{program}, sys.stdout)"\n', "utf-8")
    whole.chmod(0o755)
    found = chunks.measure(tmp_path, str(whole), 1)
    assert (found["pages"], found["edited"]) == (20, 1)
    assert found["whole"] == {"embedded again": 1, "of all": 1}
    assert found["freshet"]["embedded again"] == 1
    assert found["freshet"]["of all"] == 5
    assert json.dumps(found)
