"""A contact is asked for once, on a terminal; elsewhere the line to type is told."""

import os
import pty
import shlex
import stat
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Final

import pytest
from typer.testing import CliRunner, Result

from freshet.config.loading import load
from freshet.crawler.run import terminal
from tests.console import app, freshet

#: No request goes there: private addresses are refused.
HOST: Final = "10.11.12.13"
CRAWL: Final = ("crawl", HOST, "--db", "a.db", "--patience", "0", "--json")
CHECK: Final = ("check", HOST, "--db", "a.db")


@pytest.fixture(autouse=True)
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's own file, in an empty directory that is the working directory, too."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "xdg"))
    return tmp_path / "xdg/freshet/config.toml"


@pytest.fixture
def typed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(terminal, "asks", lambda: True)


def answering(*lines: str, arguments: tuple[str, ...] = CRAWL) -> Result:
    return CliRunner().invoke(app, arguments, input="".join(f"{line}\n" for line in lines))


@pytest.mark.parametrize(
    ("verb", "typed_after"),
    [
        ("crawl", [HOST]),
        ("crawl", [HOST, "--max-pages", "50"]),
        ("crawl", [f"http://{HOST}/?q=a&b", "--max-pages", "50"]),
        ("crawl", ["--sites", "sites.txt"]),
        ("crawl", ["127.0.0.1:1", HOST]),
        ("check", [HOST]),
        ("check", [f"http://{HOST}/?q=a&b", "--blocks", "3"]),
        ("daemon", [HOST, "--budget", "9/day"]),
        ("daemon", ["--sites", "sites.txt", "--budget", "9/day"]),
        ("daemon", [HOST, "--budget", "9/day", "--db", "b.db"]),
    ],
)
def test_without_a_terminal_the_line_to_type_is_told_and_nothing_written(
    tmp_path: Path, verb: str, typed_after: list[str]
) -> None:
    (tmp_path / "sites.txt").write_text(f"{HOST}\n")
    before = sorted(tmp_path.iterdir())
    result = freshet(verb, *typed_after)
    assert result.exit_code == 2
    (line,) = result.stderr.splitlines()
    assert line.startswith(
        f"freshet: {HOST} is a public host, and a crawler must say who runs it: "
    )
    assert line.endswith(f": freshet {verb} {shlex.join(typed_after)} --contact you@example.org")
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.usefixtures("typed")
@pytest.mark.parametrize(
    ("answer", "stored"),
    [("me@example.org", "mailto:me@example.org"), ("  https://example.org/bot ", "https://example.org/bot"),
     ("mailto:a@b.example", "mailto:a@b.example")],
)  # fmt: skip
def test_an_answer_is_stored_for_all_crawls_and_not_asked_for_again(
    own: Path, answer: str, stored: str
) -> None:
    result = answering(answer)
    assert "asked once" in result.stderr
    assert tomllib.loads(own.read_text()) == {"crawl": {"contact": stored}}
    assert stat.S_IMODE(own.stat().st_mode) == 0o600
    assert load(None, {})[1]["crawl.contact"] == f"file {own}"
    again = answering()
    assert "asked once" not in again.stderr
    assert again.exit_code == result.exit_code == 1  # The address is refused.


@pytest.mark.usefixtures("typed")
def test_check_asks_as_a_crawl_does_and_each_spares_the_other_the_question(own: Path) -> None:
    result = answering("me", "me@example.org", arguments=CHECK)
    assert result.stderr.count("asked once") == 2
    assert tomllib.loads(own.read_text()) == {"crawl": {"contact": "mailto:me@example.org"}}
    assert "robots.txt" in result.stdout  # It went on, and was refused the private address.
    for arguments in (CHECK, CRAWL):
        assert "asked once" not in answering(arguments=arguments).stderr


@pytest.mark.usefixtures("typed")
def test_check_of_this_machine_needs_no_contact_whatever_the_store_has(own: Path) -> None:
    answering(arguments=(*CRAWL, "--contact", "me@example.org"))
    result = answering(arguments=("check", "127.0.0.1:1", *CHECK[2:]))
    assert "asked once" not in result.stderr
    assert result.exit_code == 0
    assert not own.exists()


@pytest.mark.usefixtures("typed")
@pytest.mark.parametrize(
    "wrong", ["me", "", "me@", "example.org", "ftp://example.org", "a b@c.example"]
)
def test_a_wrong_answer_is_told_in_one_line_and_asked_for_again(own: Path, wrong: str) -> None:
    result = answering(wrong, "me@example.org")
    assert result.stderr.count("asked once") == 2
    assert result.stderr.count("should be a mail address") == bool(wrong)
    assert tomllib.loads(own.read_text())["crawl"]["contact"] == "mailto:me@example.org"


@pytest.mark.usefixtures("typed")
def test_the_end_of_the_input_ends_the_command_and_nothing_is_written(
    own: Path, tmp_path: Path
) -> None:
    result = answering("me")
    assert result.exit_code == 2
    assert result.stderr.endswith(f"freshet {' '.join(CRAWL)} --contact you@example.org\n")
    assert not list(tmp_path.iterdir())


@pytest.mark.usefixtures("typed")
def test_what_the_users_file_holds_stays_with_its_permissions(own: Path) -> None:
    own.parent.mkdir(parents=True)
    own.write_text(
        "# My settings.\n[politeness]\ndelay_s = 2 # slowly\n\n[crawl]\npatience_s = 0\n"
    )
    own.chmod(0o640)
    answering("me@example.org")
    text = own.read_text()
    assert text.startswith(
        "# My settings.\n[politeness]\ndelay_s = 2 # slowly\n\n[crawl]\npatience_s = 0\n"
    )
    assert tomllib.loads(text)["crawl"] == {"patience_s": 0, "contact": "mailto:me@example.org"}
    assert stat.S_IMODE(own.stat().st_mode) == 0o640


@pytest.mark.usefixtures("typed")
def test_a_link_to_the_users_file_stays_a_link(own: Path, tmp_path: Path) -> None:
    kept = tmp_path / "dotfiles.toml"
    kept.write_text("")
    own.parent.mkdir(parents=True)
    own.symlink_to(kept)
    answering("me@example.org")
    assert own.is_symlink()
    assert "me@example.org" in kept.read_text()


@pytest.mark.usefixtures("typed")
def test_where_nothing_can_be_stored_the_answer_counts_for_this_run(
    own: Path, tmp_path: Path
) -> None:
    (tmp_path / "xdg").write_text("a file")
    result = answering("me@example.org")
    assert "not stored: " in result.stderr
    assert "mailto:me@example.org is for this run only" in result.stderr
    assert result.exit_code == 1  # It was tried.


@pytest.mark.usefixtures("typed")
@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("--contact", "me@example.org"), ""),
        ((), "[crawl]\ncontact = 'me@example.org'\n"),
        ((), "[crawl]\ncontact = ''\n"),
        (("--contact", ""), ""),
        (("--contact", "me"), ""),
    ],
)
def test_where_something_is_said_of_the_contact_nobody_is_asked(
    own: Path, tmp_path: Path, arguments: tuple[str, ...], text: str
) -> None:
    (tmp_path / "freshet.toml").write_text(text)
    result = answering(arguments=(*CRAWL, *arguments))
    assert "asked once" not in result.stderr
    assert not own.exists()


def test_an_empty_contact_is_to_be_set_where_it_is(tmp_path: Path) -> None:
    (tmp_path / "freshet.toml").write_text("[crawl]\ncontact = ''\n")
    result = freshet(*CRAWL)
    assert result.exit_code == 2
    assert "crawl.contact is empty (file freshet.toml): set it there" in result.stderr


@pytest.mark.usefixtures("typed")
def test_this_machine_is_crawled_without_a_contact(own: Path) -> None:
    result = answering(arguments=("crawl", "127.0.0.1:1", *CRAWL[2:]))
    assert "asked once" not in result.stderr
    assert not own.exists()


@pytest.mark.usefixtures("typed")
def test_the_sites_of_the_store_need_a_contact_too(own: Path) -> None:
    answering(arguments=(*CRAWL, "--contact", "me@example.org"))
    result = answering(arguments=("crawl", *CRAWL[2:]))
    assert result.exit_code == 2
    assert f"{HOST} is a public host" in result.stderr


def on_terminal(keys: bytes) -> tuple[int, str]:
    """Run the command on a terminal of its own, type the keys, and return code and output."""
    leader, follower = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", "from freshet.crawler.cli import run; run()", *CRAWL],
        stdin=follower, stdout=subprocess.DEVNULL, stderr=follower, start_new_session=True,
        env=os.environ | {"TERM": "dumb"},
    )  # fmt: skip
    os.close(follower)
    text = b""
    while b"asked once): " not in text:
        text += os.read(leader, 4_096)
    os.write(leader, keys)
    while True:
        try:
            part = os.read(leader, 4_096)
        except OSError:  # Linux: the other side is closed.
            break
        text += part
        if not part:
            break
    os.close(leader)
    return process.wait(), text.decode()


@pytest.mark.parametrize(
    ("keys", "code", "said"),
    [
        (b"me\nme@example.org\n", 1, "stored: crawl.contact = mailto:me@example.org in "),
        (b"\x04", 2, "--contact you@example.org"),
    ],
)
def test_on_a_real_terminal_it_is_asked_for(own: Path, keys: bytes, code: int, said: str) -> None:
    found, text = on_terminal(keys)
    assert said in " ".join(text.split())
    assert "Traceback" not in text
    assert found == code
    assert own.exists() == (code == 1)


def test_the_origin_of_a_stored_contact_is_shown(own: Path) -> None:
    own.parent.mkdir(parents=True)
    own.write_text("[crawl]\ncontact = 'me@example.org'\n")
    result = freshet("config", "show", "--origin")
    (line,) = [each for each in result.stdout.splitlines() if each.startswith("crawl.contact")]
    assert line.split("#") == ['crawl.contact = "mailto:me@example.org"'.ljust(46), f" file {own}"]


@pytest.mark.parametrize("verb", ["crawl", "daemon"])
@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("sites = [{match = 'a.example', every = '60'}]", "sites[0].every: input should be a"),
        ("sites = [{match = 'a.example', every = 3600}]", "sites[0].every: input should be a"),
        ("sites = [{match = 'a.example', every = '1 h', most_days = 2}]", "sites[0].most_days: "),
        ("sites = [{match = 'a.example', evry = '1 h'}]", "did you mean every?"),
        ("crawl.contact = 'me'", "crawl.contact = 'me': input should be a mail address"),
        ("daemon.budget = 5", "daemon.budget = 5"),
    ],
)
def test_a_wrong_setting_is_one_line_and_nothing_is_written(
    tmp_path: Path, verb: str, text: str, said: str
) -> None:
    (tmp_path / "freshet.toml").write_text(f"{text}\n")
    result = freshet(verb, "127.0.0.1:1")
    assert result.exit_code == 2
    (line,) = result.stderr.splitlines()
    assert line.startswith("freshet: file freshet.toml: ")
    assert said in line
    assert [each.name for each in tmp_path.iterdir()] == ["freshet.toml"]
