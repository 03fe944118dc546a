"""An empty Debian 12, without a compiler, and commands typed in it.

It has a network of its own that leads nowhere: what the commands reach is what the script serves.
"""

import os
import pty
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

SUITE = "bookworm"
#: What somebody who installs Python programs on Debian has; libfaketime sets clocks ahead.
PACKAGES = ("ca-certificates", "libfaketime", "pipx", "python3", "python3-venv")
MIRROR = "http://deb.debian.org/debian"
USER = "me"
HOME = Path("home", USER)
_WHEELS = "/wheels"
_CERTIFICATES = "tmp/certificates"
_CLOCK = "/usr/lib/*/faketime/libfaketime.so.1"
_BLANK = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\r")
_READ_BYTES = 65_536


class Failed(Exception):
    """A command that did not do what it should."""


def mirror() -> str:
    """Return the mirror of Debian that this machine uses, or that of everybody."""
    for file in [Path("/etc/apt/sources.list"), *sorted(Path("/etc/apt/sources.list.d").glob("*"))]:
        if file.is_file() and (
            found := re.search(r"https?://\S+/debian/?(?=\s)", file.read_text())
        ):
            return found[0]
    return MIRROR


def run(*command: str | Path, **environment: str) -> None:
    """Run a program of this machine.

    Raises:
        Failed: it ended with another status than 0.
    """
    done = subprocess.run(
        [str(part) for part in command],
        env={**os.environ, **environment}, stdin=subprocess.DEVNULL, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    if done.returncode:
        raise Failed(f"{' '.join(map(str, command))}: {done.stdout[-2000:]}{done.stderr[-2000:]}")


def make(root: Path, source: str) -> None:
    """Make the Debian in a folder, from a mirror."""
    included = f"--include={','.join(PACKAGES)}"
    run("debootstrap", "--variant=minbase", included, SUITE, root, source)
    run("chroot", root, "useradd", "--create-home", "--shell", "/bin/bash", USER)


def fetch_wheels(root: Path, wheel: Path, extras: str) -> None:
    """Put a wheel into the user's home, and what it needs where the Debian's pip looks."""
    for old in (root / HOME).glob("*.whl"):
        old.unlink()
    shutil.copy(wheel, root / HOME)
    shutil.copy("/etc/resolv.conf", root / "etc/resolv.conf")
    (root / "etc/pip.conf").unlink(missing_ok=True)
    environment = {"PIP_FIND_LINKS": ""}
    # Behind a proxy that signs for others, pip has to trust what it trusts on this machine.
    own = os.environ.get("PIP_CERT") or os.environ.get("REQUESTS_CA_BUNDLE")
    if own:
        shutil.copy(own, root / _CERTIFICATES)
        environment |= dict.fromkeys(("PIP_CERT", "REQUESTS_CA_BUNDLE"), f"/{_CERTIFICATES}")
    if not (root / "tmp/pip").exists():
        run("chroot", root, "python3", "-m", "venv", "/tmp/pip")  # noqa: S108
    wanted = [f"/{HOME / wheel.name}[{extras}]", "pip", "setuptools", "wheel"]
    command = ["/tmp/pip/bin/pip", "download", "--quiet", "--dest", _WHEELS, *wanted]  # noqa: S108
    run("chroot", root, *command, **environment)
    (root / "etc/pip.conf").write_text(f"[global]\nno-index = true\nfind-links = {_WHEELS}\n")


def go_inside(module: str, arguments: Sequence[str]) -> int:
    """Run a module in a network, a process tree and mounts of its own, that end with it."""
    alone = ["unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]
    return subprocess.run(
        [*alone, sys.executable, "-m", module, *arguments], check=False
    ).returncode


def name_hosts(root: Path, names: Sequence[str]) -> Mapping[str, str]:
    """Give each host an address of this network, and the Debian its name; return the addresses."""
    # Public ones, as those of the web: nothing has to be told that it may fetch them.
    addresses = {name: f"11.0.0.{number}" for number, name in enumerate(names, 1)}
    run("ip", "link", "set", "lo", "up")
    for address in addresses.values():
        run("ip", "address", "add", f"{address}/32", "dev", "lo")
    lines = ["127.0.0.1 localhost", *(f"{at} {name}" for name, at in addresses.items())]
    (root / "etc/hosts").write_text("\n".join(lines) + "\n")
    return addresses


def trust(root: Path, certificate: Path) -> None:
    """Make the Debian trust a certificate."""
    shutil.copy(certificate, root / "usr/local/share/ca-certificates/first-minutes.crt")
    run("chroot", root, "update-ca-certificates")


@contextmanager
def fresh(root: Path) -> Iterator[Path]:
    """Yield a Debian that begins as the one in a folder, and is gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="first-minutes-") as folder:
        place = Path(folder)
        run("mount", "-t", "tmpfs", "tmpfs", place)
        for name in ("upper", "work", "root"):
            (place / name).mkdir()
        layers = f"lowerdir={root},upperdir={place}/upper,workdir={place}/work"
        run("mount", "-t", "overlay", "overlay", "-o", layers, place / "root")
        run("mount", "-t", "proc", "proc", place / "root/proc")
        run("mount", "--rbind", "/dev", place / "root/dev")
        try:
            yield place / "root"
        finally:
            run("umount", "--recursive", "--lazy", place)


@dataclass(slots=True)
class Terminal:
    """A user's terminal in the Debian: each command is typed in a new login shell."""

    root: Path
    #: What to type at the question that ends in a pattern.
    replies: Mapping[str, str]
    limit_s: float
    shown: str = field(default="", init=False)

    def type(
        self, command: str, *, days_ahead: float = 0.0, speed: int = 1,
        is_over: Callable[[], bool] | None = None,
    ) -> int:  # fmt: skip
        """Run a command; return its exit status. What it shows is in ``shown``.

        The clock is set ahead by some days, and runs so many times as fast. Once ``is_over`` it is
        interrupted by Ctrl-C.

        Raises:
            Failed: it was not over after the longest time.
        """
        self.shown = ""
        # What is to come at an hour of the day may come on the second day.
        limit_s = self.limit_s if speed == 1 else max(self.limit_s, 2.2 * 86_400 / speed)
        if days_ahead:
            clock = f"'+{days_ahead * 86_400:.0f}s x{speed}'"
            command = f"export LD_PRELOAD=$(echo {_CLOCK}) FAKETIME={clock}; {command}"
        ours, theirs = pty.openpty()
        # As the first of its session, what opens the terminal gets its Ctrl-C.
        opened = ["sh", "-c", 'exec "$@" <"$0" >"$0" 2>&1', os.ttyname(theirs)]
        with subprocess.Popen(
            [*opened, *self.entering(command)], start_new_session=True
        ) as process:
            try:
                self._follow(process, ours, is_over, limit_s)
            except Failed:
                os.killpg(process.pid, signal.SIGKILL)
                raise
            finally:
                os.close(ours)
                os.close(theirs)
        return process.returncode

    def entering(self, command: str) -> Sequence[str]:
        """Return the program that runs a command as the user, with its arguments."""
        # Without a session of its own, so that Ctrl-C reaches it.
        return ["chroot", str(self.root), "su", "--login", USER, "--session-command", command]

    def _follow(
        self, process: subprocess.Popen[bytes], terminal: int,
        is_over: Callable[[], bool] | None, limit_s: float,
    ) -> None:  # fmt: skip
        end, answered = time.monotonic() + limit_s, 0
        while time.monotonic() < end:
            has_ended = process.poll() is not None
            if select.select([terminal], [], [], 0.0 if has_ended else 0.1)[0]:
                read = os.read(terminal, _READ_BYTES)
                self.shown += _BLANK.sub("", read.decode("utf-8", "replace"))
            elif has_ended:
                return
            for question, reply in self.replies.items():
                if re.search(question + r"\s*\Z", self.shown[answered:]):
                    os.write(terminal, f"{reply}\n".encode())
                    answered = len(self.shown)
                    break
            if is_over and is_over():
                os.write(terminal, b"\x03")
                is_over = None
        raise Failed(f"not over after {limit_s:.0f} s")
