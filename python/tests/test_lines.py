"""The splitter of lines."""

from __future__ import annotations

import random

import pytest

from fathom_hosts.lines import LineSplitter, LineTooLong


def test_lines_do_not_depend_on_where_the_chunks_end() -> None:
    chance = random.Random(7)
    lines = [bytes(chance.choices(b"ab{}\r ", k=chance.randrange(40))) for _ in range(200)]
    text = b"".join(line + b"\n" for line in lines)
    for size in (1, 2, 7, 64, 100_000):
        splitter = LineSplitter()
        got = [
            line
            for start in range(0, len(text), size)
            for line in splitter.feed(text[start : start + size])
        ]
        assert got == lines


def test_the_start_of_a_line_is_not_given() -> None:
    splitter = LineSplitter()
    assert splitter.feed(b"one\ntw") == [b"one"]
    assert splitter.feed(b"o\n") == [b"two"]


def test_a_line_without_an_end_is_refused() -> None:
    splitter = LineSplitter(line_bytes_max=10)
    assert splitter.feed(b"0123456789\n") == [b"0123456789"]
    with pytest.raises(LineTooLong):
        splitter.feed(b"0123456789a")
