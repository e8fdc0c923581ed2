"""Standard output and standard error that never stop a command: a failed write is reported at its end.

If the reader is gone (`gangplan validate | head`), a command continues silently and exits with its own code.
"""

from __future__ import annotations

import errno
import io
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer


class _Patient(io.FileIO):
    """A descriptor that accepts everything, and keeps the first error of the system."""

    def __init__(
        self,
        descriptor: int,
        failed: OSError | None = None,
        listener: Callable[[bytes], object] | None = None,
    ) -> None:
        super().__init__(descriptor, "w", closefd=False)
        self.failed: OSError | None = None
        self._listener = listener
        self._failure = failed  # the error of a stream that was closed before we started

    def write(self, data: ReadableBuffer, /) -> int:
        size = memoryview(data).nbytes
        if self.failed is None:
            try:
                if self._failure is not None:
                    raise self._failure
                size = super().write(data)
            except OSError as bad:
                self.failed = bad
        if self._listener is not None:
            self._listener(bytes(memoryview(data).cast("B")[:size]))
        return size


# A function that gets everything written to a stream: its descriptor, and the bytes.
StreamListener = Callable[[int, bytes], object]


@contextmanager
def guard_standard_streams_of_command(listener: StreamListener | None = None) -> Iterator[Callable[[], str]]:
    """Replace both streams of the program while a command runs; they use UTF-8 on every terminal.

    Yields a function to call at the end: it returns what was lost, and why; empty if nothing was, or if only
    the reader is gone.
    """
    before = sys.stdout, sys.stderr
    out, err = _wrap_standard_stream(sys.stdout, 1, listener), _wrap_standard_stream(sys.stderr, 2, listener)
    sys.stdout, sys.stderr = kept = out[0], err[0]

    def lost() -> str:
        for (stream, descriptor), name in ((out, "output"), (err, "error")):
            stream.flush()
            failed = descriptor.failed if descriptor else None
            if failed is not None and not isinstance(failed, BrokenPipeError):
                return f"standard {name} cannot be written: {failed.strerror}"
        return ""

    try:
        yield lost
    finally:
        for stream in kept:
            stream.flush()
        sys.stdout, sys.stderr = before


def _wrap_standard_stream(
    stream: TextIO | None, number: int, listener: StreamListener | None
) -> tuple[TextIO, _Patient | None]:
    """Return a stream that never fails, and its descriptor; streams without a file (in tests) are
    unchanged."""
    if stream is None:
        # The caller closed it: /dev/null keeps the next file that is opened from getting its number.
        closed = OSError(errno.EBADF, "it is closed") if number == 1 else None
        return _build_text_stream(_Patient(os.open(os.devnull, os.O_WRONLY), closed), is_by_line=False)
    if not isinstance(stream, io.TextIOWrapper):
        return stream, None
    try:
        descriptor = stream.fileno()
    except (OSError, ValueError):
        return stream, None
    stream.flush()
    heard = partial(listener, number) if listener else None
    return _build_text_stream(
        _Patient(descriptor, listener=heard), stream.line_buffering or stream.write_through
    )


def _build_text_stream(descriptor: _Patient, is_by_line: bool) -> tuple[TextIO, _Patient]:
    buffer = io.BufferedWriter(descriptor)
    text = io.TextIOWrapper(buffer, "utf-8", "backslashreplace", line_buffering=is_by_line)
    return text, descriptor
