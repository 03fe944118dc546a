"""Follow the documents from an empty Debian 12 to each goal of a new user; count the commands.

The commands are those of README.md and docs/guide/, taken by how they begin: what the documents do
not say is not typed. Each goal begins with a Debian that has Python and pipx, no compiler, no
network but the goal's sites, and the wheel in the user's folder. Only root can do this.
"""

import argparse
import json
import os
import re
import sys
import tempfile
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from scripts.deploy import empty_debian
from scripts.deploy.empty_debian import HOME, Failed, Terminal
from scripts.deploy.small_web import SmallWeb, certificate, served

_ROOT = Path(__file__).parents[2]
_DOCUMENTS = ("README.md", "docs/guide/install.md", "docs/guide/*.md")
#: What goals install beside Freshet.
_EXTRAS = "apprise"
_LIMIT_S = 180.0
#: What a new user types at a question that ends so; an empty line takes what is proposed.
_REPLIES = {r"Your mail address[^\n]*:": "me@example.org", r"[?\]]:?": ""}


@dataclass(frozen=True, slots=True)
class Step:
    """A command, and what comes of it.

    It is the first one of the documents that begins with ``begins``. It has to show the pattern
    ``shows``, to send a mail in which ``mails`` is found, and to make the file ``makes``; one that
    ``stays`` is interrupted then. Before it, pages of the sites become those of ``edits``; its
    clock is ``days_ahead`` and runs at some ``speed``.
    One that is typed ``again`` (a daemon that was running all the time) is not counted.
    """

    begins: str
    shows: str = ""
    mails: str = ""
    makes: str = ""
    stays: bool = False
    again: bool = False
    days_ahead: float = 0.0
    speed: int = 1
    edits: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Goal:
    """What a new user wants, in at most so many commands, from sites (pages by URL) and files."""

    at_most: int
    steps: tuple[Step, ...]
    pages: Mapping[str, str]
    files: Mapping[str, str] = field(default_factory=dict)


def _page(title: str, text: str, *links: str) -> str:
    """Return a page of HTML with a title, a text and links."""
    listed = "".join(f'<li><a href="{link}">{link}</a></li>' for link in links)
    return (
        f"<!doctype html><html lang=en><title>{title}</title><main><h1>{title}</h1>"
        f"<p>{text}</p><ul>{listed}</ul></main></html>"
    )


_FRONT = "Minutes, notices and the text of the law, as the town office publishes them."
_TEXTS = {
    "/minutes": "The council met on the first Monday of the month and heard three reports. The"
    " bridge will be painted before winter, and the market moves to the station until it is.",
    "/harbour": "Boats longer than eight metres need a mooring of their own. Who leaves one for"
    " more than a month tells the harbour master, who may lend it to guests meanwhile.",
    "/library": "The reading room opens an hour earlier from May. Members take home six books at"
    " once; maps and newspapers stay, but may be copied at the desk for a small charge.",
}
_NEWS = " From June on the law also holds for rafts, and a mooring costs 40 euros a year."


def _site(host: str) -> dict[str, str]:
    pages = {f"{host}{path}": _page(path.strip("/"), text) for path, text in _TEXTS.items()}
    return {f"{host}/": _page(host, _FRONT, *_TEXTS), **pages}


def _tea(price: str) -> dict[str, str]:
    text = f"Green tea of the second harvest, 100 g. Price: <b class=price>{price} €</b>. In stock."
    return {"shop.example/tea": _page("Green tea", text)}


_INSTALL = Step("pipx install ./freshet", shows="installed package freshet")
_INSTALL_FOR_MAIL = Step("pipx install './freshet", shows="installed package freshet")
_DAEMON = Step("freshet daemon", stays=True, shows="daemon")
_LAWS = ("law.example", "tax.example", "gazette.example")

GOALS: Mapping[str, Goal] = {
    "price": Goal(
        at_most=3,
        pages=_tea("12.90"),
        steps=(
            _INSTALL_FOR_MAIL,
            Step("freshet watch https://shop.example/tea", shows=r"12\.90"),
            _DAEMON,
            Step(
                "freshet daemon",
                again=True,
                stays=True,
                days_ahead=0.1,
                edits=_tea("9.50"),
                mails=r"To: .*me@example\.org(?s:.*)9\.50",
            ),
        ),
    ),
    "law": Goal(
        at_most=4,
        pages={url: text for host in _LAWS for url, text in _site(host).items()},
        steps=(
            _INSTALL_FOR_MAIL,
            Step("freshet watch 'https://law.example/*'", shows="law.example"),
            _DAEMON,
            # A few requests an hour, and then the day's mail: a daily message waits for its hour.
            Step(
                "freshet daemon",
                again=True,
                stays=True,
                days_ahead=0.1,
                speed=500,
                mails="rafts",
                edits={"law.example/harbour": _page("harbour", _TEXTS["/harbour"] + _NEWS)},
            ),
        ),
    ),
    "archive": Goal(
        at_most=3,
        pages=_site("example.org"),
        steps=(
            _INSTALL,
            Step("freshet crawl example.org --archive warcs", shows="pages"),
            Step("freshet archive warcs --wacz example.wacz", makes="example.wacz"),
        ),
    ),
    "index": Goal(
        at_most=3,
        pages=_site("docs.example.org"),
        steps=(
            _INSTALL,
            Step("freshet crawl docs.example.org --max-pages", shows="new +4"),
            Step("freshet changefeed --include-docs --cursor-file", shows="reading room opens"),
        ),
    ),
    "sites": Goal(
        at_most=3,
        pages={u: t for n in range(1, 6) for u, t in _site(f"site-{n}.example").items()},
        files={"config/example-sites.txt": "".join(f"site-{n}.example\n" for n in range(1, 6))},
        steps=(
            _INSTALL,
            Step("freshet daemon --sites", stays=True, shows="(?s)5 sites.*requests a day"),
        ),
    ),
}


# -- documents ----------------------------------------------------------------


def documented(begins: str, root: Path = _ROOT) -> tuple[str, str]:
    """Return the first command of the documents that begins so, and the page where it stands.

    Raises:
        Failed: none does.
    """
    pages = [file for each in _DOCUMENTS for file in sorted(root.glob(each))]
    for file in pages:
        blocks = re.findall(r"^```sh\n(.*?)^```", file.read_text("utf-8"), re.MULTILINE | re.DOTALL)
        for line in "\n".join(blocks).replace("\\\n", " ").splitlines():
            command = re.sub(r"\s+#\s.*$", "", line)
            if command.startswith(begins):
                return command, str(file.relative_to(root))
    raise Failed(f"no command of README.md or docs/guide/ begins with {begins!r}")


# -- goals --------------------------------------------------------------------


def reach(goal: Goal, terminal: Terminal, web: SmallWeb) -> list[str]:
    """Type the commands of a goal; return those that count.

    Raises:
        Failed: one did not do what it should, or they are too many.
    """
    web.pages.clear()
    web.pages.update(goal.pages)
    for name, text in goal.files.items():
        file = terminal.root / HOME / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, "utf-8")
    typed = []
    for step in goal.steps:
        command, where = documented(step.begins)
        if not step.again:
            typed.append(command)
        sys.stderr.write(f"  $ {command}    ({where})\n")
        _take(step, command, terminal, web)
    if len(typed) > goal.at_most:
        raise Failed(f"{len(typed)} commands, where at most {goal.at_most} should do")
    return typed


def _take(step: Step, command: str, terminal: Terminal, web: SmallWeb) -> None:
    web.mails.clear()
    web.pages.update(step.edits)

    def lacks() -> list[str]:
        found = {
            f"showing {step.shows!r}": re.search(step.shows, terminal.shown),
            f"a mail with {step.mails!r}": re.search(step.mails, "\n".join(web.mails)),
            f"the file {step.makes}": (terminal.root / HOME / step.makes).exists(),
        }
        return [what for what, is_there in found.items() if not is_there]

    is_over = (lambda: not lacks()) if step.stays else None
    status = terminal.type(command, days_ahead=step.days_ahead, speed=step.speed, is_over=is_over)
    if status:
        raise Failed(f"it ended with exit code {status}")
    if lacks():
        raise Failed(f"it ended without {' and '.join(lacks())}")


def _follow(names: list[str], root: Path) -> int:
    """Reach the goals with these names; print one line of JSON each."""
    hosts = sorted({url.partition("/")[0] for name in names for url in GOALS[name].pages})
    failures, web = 0, SmallWeb()
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        addresses = empty_debian.name_hosts(root, hosts)
        certified = certificate(Path(folder), hosts)
        empty_debian.trust(root, certified[0])
        stack.enter_context(served(web, addresses, certified))
        for name in names:
            sys.stderr.write(f"{name}\n")
            goal, failure, typed = GOALS[name], None, []
            with empty_debian.fresh(root) as place:
                terminal = Terminal(place, _REPLIES, _LIMIT_S)
                try:
                    typed = reach(goal, terminal, web)
                except Failed as error:
                    failure = str(error)
                    failures += 1
                    mails = "\n".join(web.mails)
                    sys.stderr.write(f"{terminal.shown}\n{mails}\n  failed: {failure}\n")
            told = {"goal": name, "commands": typed, "at_most": goal.at_most, "failure": failure}
            sys.stdout.write(json.dumps(told) + "\n")
            sys.stdout.flush()
    return failures


# -- the command --------------------------------------------------------------


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="scripts/first_minutes", description=__doc__)
    parser.add_argument("wheel", type=Path, help="a wheel that scripts/release made")
    parser.add_argument("goals", nargs="*", metavar="GOAL", help=f"of {', '.join(GOALS)}")
    parser.add_argument(
        "--debian", type=Path, metavar="FOLDER",
        help="where the Debian is kept for the next time (300 MB); else it is made anew",
    )  # fmt: skip
    parser.add_argument("--mirror", default=empty_debian.mirror(), help="[%(default)s]")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_intermixed_args()
    if unknown := set(given.goals) - GOALS.keys():
        parser.error(f"there is no goal {', '.join(sorted(unknown))}; there are {', '.join(GOALS)}")
    if not given.wheel.is_file():
        parser.error(f"{given.wheel} is no file: scripts/release makes wheels in dist/")
    if os.geteuid() != 0:
        parser.error("only root makes a Debian: run it with sudo")
    return given


def main() -> int:
    """Make the Debian, then go inside and reach the goals."""
    given = _arguments()
    names = given.goals or list(GOALS)
    if given.inside:
        return int(_follow(names, given.debian) > 0)
    with ExitStack() as stack:
        root = given.debian or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        if not (root / "usr/bin/pipx").exists():
            sys.stderr.write(f"making Debian 12 in {root} from {given.mirror}\n")
            empty_debian.make(root, given.mirror)
        empty_debian.fetch_wheels(root, given.wheel, _EXTRAS)
        arguments = [str(given.wheel), *names, "--inside", "--debian", str(root.resolve())]
        return empty_debian.go_inside("scripts.deploy.first_minutes", arguments)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Failed as error:
        sys.exit(f"scripts/first_minutes: {error}")
