"""The script that follows the documents in an empty Debian types what they say, and counts it."""

import re
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from freshet.compiled import build
from scripts.deploy.empty_debian import HOME, Failed, Terminal
from scripts.deploy.first_minutes import GOALS, Goal, Step, documented, reach
from scripts.deploy.small_web import SmallWeb

ROOT = Path(__file__).parents[2]
README = """# Freshet

`freshet prose` and freshet plain are not typed.

```sh
freshet crawl example.org --max-pages 5      # five pages
freshet watch https://shop.example/tea#price --below 10
freshet replay crawl.db \\
    --policy uniform
  freshet indented
```

```python
freshet python
```

```
$ freshet shown
```
"""


@pytest.fixture
def documents(tmp_path: Path) -> Path:
    (tmp_path / "docs/guide").mkdir(parents=True)
    (tmp_path / "README.md").write_text(README, "utf-8")
    page = "# Install\n\n```sh\npipx install ./freshet.whl   # a wheel\nfreshet crawl other\n```\n"
    (tmp_path / "docs/guide/install.md").write_text(page, "utf-8")
    (tmp_path / "docs/guide/archive.md").write_text("```sh\nfreshet archive warcs\n```\n", "utf-8")
    return tmp_path


@pytest.mark.parametrize(
    ("begins", "command", "page"),
    [
        ("freshet crawl", "freshet crawl example.org --max-pages 5", "README.md"),
        ("freshet crawl other", "freshet crawl other", "docs/guide/install.md"),
        ("freshet watch", "freshet watch https://shop.example/tea#price --below 10", "README.md"),
        ("freshet replay", "freshet replay crawl.db      --policy uniform", "README.md"),
        ("pipx install", "pipx install ./freshet.whl", "docs/guide/install.md"),
        ("freshet archive", "freshet archive warcs", "docs/guide/archive.md"),
    ],
)
def test_a_command_is_the_first_of_the_documents_that_begins_so(
    documents: Path, begins: str, command: str, page: str
) -> None:
    assert documented(begins, documents) == (command, page)


@pytest.mark.parametrize(
    "begins",
    ["freshet prose", "freshet plain", "freshet indented", "freshet python", "freshet shown", "$"],
)
def test_what_no_document_says_is_not_typed(documents: Path, begins: str) -> None:
    with pytest.raises(Failed, match=r"no command of README\.md or docs/guide/ begins with"):
        documented(begins, documents)


@pytest.mark.parametrize("name", GOALS)
def test_each_goal_types_commands_of_the_documents(name: str) -> None:
    goal = GOALS[name]
    typed = [documented(step.begins)[0] for step in goal.steps if not step.again]
    assert len(typed) <= goal.at_most
    hosts = {url.partition("/")[0] for url in goal.pages}
    named = set(re.findall(r"[a-z0-9.-]+\.example(?:\.org)?\b", " ".join(typed)))
    assert named <= hosts | {"me@example.org".partition("@")[2]}


def test_the_wheel_of_the_documents_is_that_of_the_version() -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["version"]
    text = (ROOT / "docs/guide/install.md").read_text("utf-8")
    assert set(re.findall(r"freshet-(\S+?)-py3", text)) == {version}
    rows = re.findall(r"^\|.*\| `(\S+)\.whl` \|$", text, re.MULTILINE)
    assert sorted(rows) == sorted(build._TARGETS)


class Scripted(Terminal):
    """A terminal on which each command has the effect that it is told to have."""

    def __init__(self, root: Path, effect: Callable[[str], None], status: int = 0) -> None:
        super().__init__(root, {}, 0.0)
        self.effect, self.status = effect, status
        self.commands: list[str] = []

    def type(
        self, command: str, *, days_ahead: float = 0.0, speed: int = 1,
        is_over: Callable[[], bool] | None = None,
    ) -> int:  # fmt: skip
        self.commands.append(command)
        self.effect(command)
        return self.status


PIPX = Step("pipx install ./freshet", shows="done")
GOAL = Goal(at_most=1, pages={"shop.example/": "9"}, steps=(PIPX,))


@pytest.mark.parametrize(
    ("goal", "failure"),
    [
        (GOAL, None),
        (replace(GOAL, steps=(PIPX, replace(PIPX, again=True))), None),
        (replace(GOAL, steps=(PIPX, PIPX)), "2 commands, where at most 1 should do"),
        (replace(GOAL, steps=(PIPX, PIPX), at_most=2), None),
        (replace(GOAL, steps=(replace(PIPX, shows="d.ne"),)), None),
        (replace(GOAL, steps=(replace(PIPX, shows="other"),)), "without showing 'other'"),
        (replace(GOAL, steps=(replace(PIPX, mails="sold"),)), None),
        (replace(GOAL, steps=(replace(PIPX, mails="lost"),)), "without a mail with 'lost'"),
        (replace(GOAL, steps=(replace(PIPX, makes="made.txt"),)), None),
        (replace(GOAL, steps=(replace(PIPX, makes="no.txt"),)), "without the file no.txt"),
        (replace(GOAL, files={"sites.txt": "a.example\n"}), None),
        (replace(GOAL, steps=(Step("freshet unheard-of"),)), "no command of README.md"),
    ],
)
def test_a_goal_is_reached_by_what_its_commands_do(
    tmp_path: Path, goal: Goal, failure: str | None
) -> None:
    web = SmallWeb()
    (tmp_path / HOME).mkdir(parents=True)

    def effect(command: str) -> None:
        assert web.pages == {"shop.example/": "9"}
        terminal.shown = "all done"
        web.mails.append("Subject: sold out")
        (tmp_path / HOME / "made.txt").touch()

    terminal = Scripted(tmp_path, effect)
    if failure is None:
        typed = reach(goal, terminal, web)
        assert len(typed) <= goal.at_most
        assert typed == terminal.commands[: len(typed)]
        assert {each.name for each in (tmp_path / HOME).iterdir()} == {"made.txt", *goal.files}
    else:
        with pytest.raises(Failed, match=failure):
            reach(goal, terminal, web)


def test_a_command_that_fails_ends_a_goal(tmp_path: Path) -> None:
    terminal = Scripted(tmp_path, lambda command: None, status=2)
    with pytest.raises(Failed, match="it ended with exit code 2"):
        reach(GOAL, terminal, SmallWeb())


class Here(Terminal):
    """A terminal on this machine."""

    def entering(self, command: str) -> Sequence[str]:
        return ["sh", "-c", command]


def test_questions_are_answered_and_colours_left_out(tmp_path: Path) -> None:
    terminal = Here(tmp_path, {r"name:": "Ada", r"\?": ""}, 60.0)
    ask = "printf 'Your name: '; read name; printf 'Sure? '; read sure"
    status = terminal.type(f'{ask}; printf \'\\033[1m%s%s.\\033[0m\\n\' "$name" "$sure"; exit 3')
    assert status == 3
    assert terminal.shown.endswith("Ada.\n")


def test_what_stays_is_interrupted_when_it_has_done_its_work(tmp_path: Path) -> None:
    terminal = Here(tmp_path, {}, 60.0)
    command = "trap 'echo bye; exit 0' INT; echo up; while :; do read line; done"
    assert terminal.type(command, is_over=lambda: "up" in terminal.shown) == 0
    assert terminal.shown.endswith("bye\n")


def test_what_is_not_over_in_time_is_ended(tmp_path: Path) -> None:
    with pytest.raises(Failed, match="not over after 0 s"):
        Here(tmp_path, {}, 0.0).type("read line")
