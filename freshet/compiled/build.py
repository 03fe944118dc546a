"""Build the compiled core: all C files beside this one, as one shared library beside them.

    python freshet/compiled/build.py

does it, as ``scripts/setup`` and the building of a wheel do. The library's name holds a digest of
its sources, of this file with its flags among them: it is built once, and never used with others.
Where ``dist/`` has a wheel of the same sources for this platform, the library is taken out of it.

The compiler is ``$CC``, or the first of cc, gcc and clang that works, or that of the package
``ziglang``, where it is installed. Building needs nothing but Python. With the tag of a wheel in
``$FRESHET_WHEEL`` it is ziglang, which compiles for any platform on any other.
"""

import ctypes
import hashlib
import os
import platform
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import zlib
from collections.abc import Iterator, Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from zipfile import BadZipFile, ZipFile

_HERE = Path(__file__).parent
#: Products and sums are rounded one by one, so that results are those of numpy on any machine.
_FLAGS = ["-O3", "-std=c11", "-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math"]
_FLAGS += ["-fPIC", "-shared", "-fvisibility=hidden"]
_WARNINGS = ["-Wall", "-Wextra", "-Werror=implicit-function-declaration"]
#: By the tag of its wheel: what names a platform to zig, and what to Python.
_TARGETS = {
    "manylinux_2_17_x86_64": ("x86_64-linux-gnu.2.17", "linux", "x86_64"),
    "manylinux_2_17_aarch64": ("aarch64-linux-gnu.2.17", "linux", "aarch64"),
    "musllinux_1_2_x86_64": ("x86_64-linux-musl", "linux", "x86_64"),
    "musllinux_1_2_aarch64": ("aarch64-linux-musl", "linux", "aarch64"),
    "macosx_11_0_x86_64": ("x86_64-macos.11.0", "darwin", "x86_64"),
    "macosx_11_0_arm64": ("aarch64-macos.11.0", "darwin", "arm64"),
}
#: By itself it would compile for this very processor, and add what debuggers want.
_ZIG = (sys.executable, "-m", "ziglang", "cc", "-mcpu=baseline", "-s")
_TRIAL = "#include <math.h>\n#include <stdint.h>\ndouble half(double x) { return exp(x) / 2; }\n"


def library(folder: Path = _HERE, wheel: str | None = None) -> Path:
    """Return the path that the library of the sources in a folder has, built or not.

    It is that of this machine, or of the platform with the tag ``wheel``.
    """
    system = _TARGETS[wheel][1:] if wheel else (sys.platform, platform.machine())
    digest = hashlib.sha256(" ".join(system).encode())
    for each in sorted([*folder.glob("*.[ch]"), folder / "build.py"]):
        digest.update(f"\0{each.name}\0".encode() + each.read_bytes())
    ending = ".dylib" if system[0] == "darwin" else ".so"
    return folder / f"core-{digest.hexdigest()[:16]}{ending}"


@cache
def compiler() -> tuple[str, ...] | None:
    """Return the command of the first C compiler that works; None: there is none."""
    return next((each for each in _candidates() if _works(each)), None)


def _candidates() -> Iterator[tuple[str, ...]]:
    if chosen := os.environ.get("CC"):
        yield tuple(shlex.split(chosen))
    for name in ("cc", "gcc", "clang"):
        if shutil.which(name):
            yield (name,)
    if find_spec("ziglang"):
        yield _ZIG


def _works(command: tuple[str, ...]) -> bool:
    """Return whether a compiler makes a library; some lack the headers of C."""
    with tempfile.TemporaryDirectory() as place:
        source = Path(place, "trial.c")
        source.write_text(_TRIAL, "ascii")
        return _run([*command, *_FLAGS, "-o", f"{place}/trial.so", str(source)]) is None


def _run(command: Sequence[str]) -> str | None:
    """Run a compiler; return what it said if it failed, None if it did not."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    except OSError as error:
        return str(error)
    return None if done.returncode == 0 else done.stderr


def is_ready(folder: Path = _HERE) -> bool:
    """Return whether the library is there, taking it out of a wheel in ``dist/`` if one has it."""
    target = library(folder)
    # The name of a library does not tell which C library it needs, that of a wheel does.
    is_musl = "musl" in (sysconfig.get_config_var("HOST_GNU_TYPE") or "")
    wheels = sorted(folder.parents[1].glob("dist/freshet-*.whl"))
    return target.exists() or any(
        _taken(target, wheel) for wheel in wheels if ("musllinux" in wheel.name) == is_musl
    )


def _taken(target: Path, wheel: Path) -> bool:
    """Take a library out of a wheel; return whether it was there and is one for this machine."""
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".core-") as place:
        made = Path(place, target.name)
        try:
            with ZipFile(wheel) as archive:
                if (name := f"freshet/compiled/{target.name}") not in archive.namelist():
                    return False
                made.write_bytes(archive.read(name))
            ctypes.CDLL(str(made))
        except (BadZipFile, OSError, zlib.error) as error:
            sys.stderr.write(f"freshet: no compiled core from {wheel}: {error}\n")
            return False
        sys.stderr.write(f"freshet: taking {target.name} from {wheel}\n")
        _put(made, target)
    return True


def _put(made: Path, target: Path) -> None:
    """Put a library in its place, and remove those of other sources."""
    made.replace(target)
    for other in target.parent.glob("core-*"):
        if other != target:
            other.unlink(missing_ok=True)


def build(folder: Path = _HERE, checks: Sequence[str] = (), wheel: str | None = None) -> Path:
    """Build the library of the sources in a folder, if it is not there; return its path.

    A plain one for this machine may come out of a wheel (see is_ready). ``checks`` are further
    flags, for a library that stops at undefined behaviour. ``wheel`` is the tag of a platform.

    Raises:
        RuntimeError: there is no C compiler, or it refused the sources, or no such platform.
    """
    if wheel is not None and wheel not in _TARGETS:
        raise RuntimeError(f"FRESHET_WHEEL={wheel} is none of {', '.join(_TARGETS)}")
    target, sources = library(folder, wheel), sorted(map(str, folder.glob("*.c")))
    if target.exists() or (wheel is None and not checks and is_ready(folder)):
        return target
    command = (*_ZIG, "-target", _TARGETS[wheel][0]) if wheel else compiler()
    if command is None:
        raise RuntimeError(
            "no C compiler works here: install one (Debian: gcc and libc6-dev) or the package"
            " ziglang, or name one in CC"
        )
    sys.stderr.write(f"freshet: building {target.name} with {shlex.join(command)}\n")
    with tempfile.TemporaryDirectory(dir=folder, prefix=".core-") as place:
        made = Path(place, target.name)
        flags = [*_FLAGS, *_WARNINGS, *checks]
        failure = _run([*command, *flags, "-o", str(made), *sources, "-lm"])
        if failure is not None:
            raise RuntimeError(
                f"{shlex.join(command)} could not build the compiled core:\n{failure}"
            )
        _put(made, target)
    return target


def _wheel() -> str | None:
    return os.environ.get("FRESHET_WHEEL") or None


def get_build_hook() -> Any:
    """Return the step by which hatchling builds the library before it packs a wheel."""
    from hatchling.builders.hooks.plugin import interface  # noqa: PLC0415 - only there at a build
    from packaging.tags import platform_tags  # noqa: PLC0415

    class Hook(interface.BuildHookInterface[Any]):
        def dependencies(self) -> list[str]:
            """Return the package with a C compiler where the machine has none and needs one."""
            return [] if not _wheel() and (is_ready() or compiler()) else ["ziglang"]

        def initialize(self, version: str, build_data: dict[str, Any]) -> None:
            """Build the library; a wheel with it is for its platform and any Python."""
            made = build(wheel=_wheel())
            if version != "editable":
                build_data["tag"] = f"py3-none-{_wheel() or next(platform_tags())}"
                build_data["pure_python"] = False
                build_data["artifacts"].append(f"/freshet/compiled/{made.name}")

    return Hook


if __name__ == "__main__":
    if sys.argv[1:] == ["--wheels"]:
        sys.stdout.write(f"{' '.join(_TARGETS)}\n")
        sys.exit()
    if sys.argv[1:] == ["--find-compiler"]:
        sys.exit(not is_ready() and compiler() is None)
    try:
        build()
    except RuntimeError as error:
        sys.exit(f"freshet: {error}")
