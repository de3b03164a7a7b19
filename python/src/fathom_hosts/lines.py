"""Cuts a stream of bytes into lines.

It is not `asyncio.StreamReader.readline`, because that has a fixed limit (64 KiB by default) and a
trial is a line of megabytes. This module goes to Dask's workers by value, so it imports only what
Python itself has.
"""

from __future__ import annotations

# A trial has at most tens of megabytes. A peer that never ends its line must not fill the memory.
LINE_BYTES_MAX = 512 << 20


class LineTooLong(Exception):
    """The other side sent more than `LINE_BYTES_MAX` without the end of a line."""


class LineSplitter:
    """Takes chunks and gives the lines that they complete, without their ends.

    The start of a line is kept as chunks until its end comes, so that the cost is linear in the
    length of a line. What has no end is never given: it is the line of a peer that was killed.
    """

    def __init__(self, line_bytes_max: int = LINE_BYTES_MAX) -> None:
        self._line_bytes_max = line_bytes_max
        self._start: list[bytes] = []
        self._start_bytes = 0

    def feed(self, chunk: bytes) -> list[bytes]:
        """The lines that end in this chunk."""
        first, *others = chunk.split(b"\n")
        self._start.append(first)
        self._start_bytes += len(first)
        if self._start_bytes > self._line_bytes_max:
            raise LineTooLong
        if not others:
            return []
        lines = [b"".join(self._start), *others[:-1]]
        self._start = [others[-1]]
        self._start_bytes = len(others[-1])
        return lines
