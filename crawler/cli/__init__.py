"""The entry point of the console command: thin, so that Ctrl-C works from the start.

Everything else is imported inside :func:`run`, or by the verb that uses it.
"""

import ctypes
import os
import sys
from contextlib import suppress
from gc import freeze, set_threshold
from io import RawIOBase
from types import TracebackType
from typing import Final

#: Parameters of glibc's mallopt, and how the environment names them for the processes that parse.
#: By itself it keeps buffers of up to 32 MB when they are freed, and a heap for each thread.
_HEAP: Final = (
    ("MALLOC_TRIM_THRESHOLD_", -1, 1 << 20),
    ("MALLOC_MMAP_THRESHOLD_", -3, 1 << 20),
    ("MALLOC_ARENA_MAX", -8, 2),
)


def return_freed_memory() -> None:
    """Let freed memory go back to the system; processes that this one starts do so, too."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform == "linux" else None
    if mallopt is None:
        return
    for name, parameter, value in _HEAP:
        if name not in os.environ:
            os.environ[name] = str(value)
            mallopt(parameter, value)


def collect_in_steps() -> None:
    """Let the cyclic collector look at what is new in short steps.

    What is imported stays: it need not be looked at again. Hosts and pages are many, live long and
    are hardly ever in cycles, so that 700 new objects are no reason to look. The middle generation
    holds four young ones, 100,000 objects: looking at 500,000 stops the loop for 200 ms.
    """
    freeze()
    set_threshold(25_000, 3, 100)


def write_all() -> None:
    """Let standard output and error take whole texts.

    Unbuffered (PYTHONUNBUFFERED, as in containers), Python drops without a word what a pipe does
    not take in one call, and a signal may cut a call short.
    """
    for name in "stdout", "stderr":
        stream = getattr(sys, name)
        if isinstance(getattr(stream, "buffer", None), RawIOBase):
            form = {"encoding": stream.encoding, "errors": stream.errors, "buffering": 1}
            setattr(sys, name, os.fdopen(stream.fileno(), "w", closefd=False, **form))


def run() -> None:
    """Run the command; an interruption or a closed pipe gives no traceback."""
    # Before typer is imported, which puts a hook of its own before the one that it finds.
    sys.excepthook = _tell
    _open_standard_files()
    write_all()
    # To a full pipe that somebody made non-blocking, Python would lose the rest in silence.
    with suppress(OSError, AttributeError):
        os.set_blocking(sys.stdout.fileno(), True)
    return_freed_memory()
    try:
        _run_verb()
    except KeyboardInterrupt:
        sys.stderr.write("freshet: interrupted\n")
        sys.exit(130)
    except ImportError as error:
        from freshet.entry_points import BrokenExtension  # noqa: PLC0415 - hardly ever needed

        if error.name != "freshet.compiled" and not isinstance(error, BrokenExtension):
            raise
        sys.exit(f"freshet: {error}")
    except OSError as error:
        if error.errno is None:
            raise
        _tell_broken_output(error)
        sys.exit(1)


def _open_standard_files() -> None:
    """Open standard files that are closed: a file that is opened later would be taken for one."""
    for name, mode in ("stdin", os.O_RDONLY), ("stdout", os.O_RDONLY), ("stderr", os.O_WRONLY):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, mode), "w"))


def _run_verb() -> None:
    # Nothing here multiplies matrices: numpy need not start a thread for each core.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    from freshet.crawler.cli.verbs import application  # noqa: PLC0415 - see run

    collect_in_steps()
    try:
        application(sys.argv[1:])()
    finally:
        sys.stdout.flush()


def _tell_broken_output(error: OSError) -> None:
    """Tell why output could not be written; where its reader has gone, there is nobody to tell."""
    if not isinstance(error, BrokenPipeError):
        sys.stderr.write(f"freshet: {error.filename or 'output'}: {error.strerror or error}\n")
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _tell(kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> None:
    """Print the traceback of an uncaught error, without the secrets in it."""
    from traceback import format_exception  # noqa: PLC0415 - hardly ever needed

    from freshet.crawler.fetch.masking import masked  # noqa: PLC0415 - likewise

    sys.stderr.write(masked("".join(format_exception(kind, error, traceback))))
