"""What the benchmark commands have in common: environment, options and output."""

from __future__ import annotations

import argparse
import ast
import atexit
import json
import os
import select
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from types import TracebackType

_ROOT = Path(__file__).parents[2]


def enter_environment() -> None:
    """Go on in the project's own environment, ``.venv``, where there is one.

    As in the command numpy starts no thread for each core, and a reader of the output that has
    gone (``| head``) is no traceback.
    """
    sys.excepthook = _tell
    atexit.register(_close_output)
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    environment = _ROOT / ".venv"
    python = environment / "bin" / "python"
    if python.exists() and Path(sys.prefix).resolve() != environment.resolve():
        os.execv(python, [str(python), *sys.argv])
    if not Path(sys.executable).with_name("freshet").exists():
        sys.exit("freshet is not installed here; scripts/setup does it")


def launch(names: Sequence[str], module: str) -> None:
    """Run the command that the first argument names, or list all of them.

    ``module`` is the pattern of a command's module, which has a ``main``.
    """
    enter_environment()
    program, *given = sys.argv
    command, name = f"scripts/{Path(program).name}", given[0] if given else "--help"
    if name in {"-h", "--help"}:
        width = max(map(len, names))
        listed = "".join(f"\n  {each:{width}}  {_sentence(module.format(each))}" for each in names)
        sys.stdout.write(f"usage: {command} NAME [OPTIONS]\n{listed}\n")
        return
    if name not in names:
        sys.exit(f"{command}: there is no {name}; without a name it lists what there is")
    sys.argv = [f"{program} {name}", *given[1:]]
    import_module(module.format(name)).main()


def _sentence(module: str) -> str:
    """The first line of what a module says of itself."""
    text = (_ROOT / module.replace(".", "/")).with_suffix(".py").read_text("utf-8")
    return (ast.get_docstring(ast.parse(text)) or "").partition("\n")[0]


def _tell(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Print a traceback, but where nobody reads our output any more.

    A broken pipe to anybody else, say of a server that serves on, is told as any error.
    """
    if not (issubclass(kind, BrokenPipeError) and _close_output()):
        sys.__excepthook__(kind, error, trace)


def _close_output() -> bool:
    """Whether the reader of our output has gone; what is left of it goes nowhere then."""
    output = select.poll()
    output.register(sys.stdout.fileno(), 0)
    has_gone = any(event & select.POLLERR for _, event in output.poll(0))
    if has_gone:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return has_gone


def arguments(description: str | None) -> argparse.ArgumentParser:
    """A parser with the options of every benchmark."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.ArgumentDefaultsHelpFormatter
    )
    parser.add_argument("--output", type=Path, metavar="FILE", help="write the JSON there, too")
    return parser


def say(message: str) -> None:
    """Progress, for people."""
    sys.stderr.write(f"{message}\n")


def finish(result: dict[str, object], output: Path | None) -> None:
    """Print the result as JSON, and write it where it was asked for.

    With it goes what else the machine had to do: the load average of the last minute.
    """
    machine = {"cores": os.cpu_count(), "load_average": round(os.getloadavg()[0], 2)}
    text = json.dumps(result | {"machine": machine}, indent=2) + "\n"
    sys.stdout.write(text)
    if output is not None:
        output.write_text(text, "utf-8")


@contextmanager
def workspace() -> Iterator[Path]:
    """A directory for stores and logs, which goes with the block."""
    with tempfile.TemporaryDirectory(prefix="freshet-bench-") as directory:
        yield Path(directory)
