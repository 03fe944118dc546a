"""Entry point of the console command, kept small so that Ctrl-C works from the start.

All other imports are inside :func:`run` or in the module of the verb.
"""

import ctypes
import os
import sys
from contextlib import suppress
from gc import freeze, set_threshold
from io import RawIOBase
from types import TracebackType
from typing import Final

#: Parameters of glibc's mallopt, with their environment variables for the parser processes.
_HEAP: Final = (
    ("MALLOC_TRIM_THRESHOLD_", -1, 1 << 20),
    ("MALLOC_MMAP_THRESHOLD_", -3, 1 << 20),
    ("MALLOC_ARENA_MAX", -8, 2),
)


def return_freed_memory() -> None:
    """Make malloc return freed memory to the system, here and in child processes.

    By default glibc keeps freed buffers of up to 32 MB, and one heap per thread.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform == "linux" else None
    if mallopt is None:
        return
    for name, parameter, value in _HEAP:
        if name not in os.environ:
            os.environ[name] = str(value)
            mallopt(parameter, value)


def collect_in_steps() -> None:
    """Make the cyclic garbage collector run rarely and in short steps.

    Imported objects are permanent and need no scan. Hosts and pages live long and are rarely part
    of a cycle, so the default threshold of 700 new objects is too low. The middle generation holds
    four young ones, 100,000 objects: a scan of 500,000 would block the event loop for 200 ms.
    """
    freeze()
    set_threshold(25_000, 3, 100)


def write_all() -> None:
    """Make standard output and error write whole texts.

    If Python is unbuffered (PYTHONUNBUFFERED, as in containers), it silently drops the rest of a
    text that a pipe accepts only in part, and a signal may cut a write short.
    """
    for name in "stdout", "stderr":
        stream = getattr(sys, name)
        if isinstance(getattr(stream, "buffer", None), RawIOBase):
            form = {"encoding": stream.encoding, "errors": stream.errors, "buffering": 1}
            setattr(sys, name, os.fdopen(stream.fileno(), "w", closefd=False, **form))


def run() -> None:
    """Run the command; an interruption or a closed pipe gives no traceback."""
    # Typer wraps the hook that it finds, so this must precede its import.
    sys.excepthook = _print_traceback
    _open_standard_files()
    write_all()
    # On a full non-blocking pipe, Python would silently lose the rest of a text.
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
        _report_broken_output(error)
        sys.exit(1)


def _open_standard_files() -> None:
    """Open closed standard files on /dev/null; the next opened file would take their place."""
    for name, mode in ("stdin", os.O_RDONLY), ("stdout", os.O_RDONLY), ("stderr", os.O_WRONLY):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, mode), "w"))


def _run_verb() -> None:
    # Freshet multiplies no matrices, so numpy needs no thread per core.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    from freshet.crawler.cli.verbs import application  # noqa: PLC0415 - see run

    collect_in_steps()
    try:
        application(sys.argv[1:])()
    finally:
        sys.stdout.flush()


def _report_broken_output(error: OSError) -> None:
    """Print why output could not be written, unless its reader has closed the pipe."""
    if not isinstance(error, BrokenPipeError):
        sys.stderr.write(f"freshet: {error.filename or 'output'}: {error.strerror or error}\n")
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _print_traceback(
    kind: type[BaseException], error: BaseException, traceback: TracebackType | None
) -> None:
    """Print the traceback of an uncaught error, without the secrets in it."""
    from traceback import format_exception  # noqa: PLC0415 - hardly ever needed

    from freshet.crawler.fetch.masking import masked  # noqa: PLC0415 - likewise

    sys.stderr.write(masked("".join(format_exception(kind, error, traceback))))
