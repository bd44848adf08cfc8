"""A few families out of a text that anybody may have written."""

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, Gauge, generate_latest

from kvtier_common.metrics.text import (
    MOST_BYTES,
    MOST_KEPT_BYTES,
    MOST_LABEL_BYTES,
    MOST_LABELS,
    MOST_LINE_BYTES,
    MOST_SAMPLES,
    Families,
    MetricsText,
    MetricsTextError,
    read_families,
    read_labels,
)

WANTED = (b"vllm:running", b"vllm:waiting")
RUNNING = b"vllm:running"


def test_only_what_is_asked_for_is_kept() -> None:
    text = b'# HELP vllm:running x\nvllm:running{engine="0"} 3.0\nvllm:running_more 9\nup 1\nvllm:waiting 2'
    assert read_families(text, WANTED).samples == {
        RUNNING: [(b'engine="0"', 3.0)],
        b"vllm:waiting": [(b"", 2.0)],
    }


@given(st.integers(1, 40))
def test_pieces_of_any_length_say_the_same(length: int) -> None:
    text = b"".join(
        b'vllm:running{engine="%d"} %d\nother %d\n' % (number, number, number) for number in range(9)
    )
    reading = MetricsText(WANTED)
    for at in range(0, len(text), length):
        reading.feed(text[at : at + length])
    assert reading.end() == read_families(text, WANTED)
    assert reading.end().total(RUNNING) == sum(range(9))


@pytest.mark.parametrize(
    "value",
    [b"NaN", b"+Inf", b"-Inf", b"-1", b"1e300", b"1e19", b"many", b"", b" ", b"9" * 5000, b"0x10", b"1,0"],
)
def test_a_family_with_a_value_that_no_engine_has_is_not_said(value: bytes) -> None:
    found = read_families(b'vllm:running{engine="0"} 1\nvllm:running{engine="1"} ' + value, WANTED)
    assert not found.of(RUNNING)
    assert found.unreadable == {RUNNING}


def test_of_duplicates_the_first_counts_and_a_time_stamp_may_follow() -> None:
    text = b'vllm:running{engine="0"} 1 1700000000000\nvllm:running{engine="0"} 70\n'
    assert read_families(text, WANTED).total(RUNNING) == 1.0


def _lines(line: bytes, times: int) -> bytes:
    return b"".join(line % number for number in range(times))


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (b"x" * (MOST_LINE_BYTES + 1), "a line of it is longer"),
        (b"vllm:running " + b"1" * MOST_LINE_BYTES + b"\n", "a line of it is longer"),
        (b"\n" * (MOST_BYTES + 1), f"longer than {MOST_BYTES} bytes"),
        (_lines(b'vllm:running{engine="%d"} 1\n', MOST_SAMPLES + 1), "says more of vllm:running"),
        (
            _lines(b'vllm:running{engine="%%d%s"} 1\n' % (b"x" * 1000), MOST_KEPT_BYTES // 1000),
            "says more of vllm:running",
        ),
    ],
    ids=["one line", "a kept line", "no end", "samples", "bytes"],
)
def test_what_is_out_of_bounds_is_refused_in_a_short_line(text: bytes, why: str) -> None:
    with pytest.raises(MetricsTextError, match=why) as refusal:
        read_families(text, WANTED)
    assert len(str(refusal.value)) < 100


def test_a_text_without_end_is_not_kept() -> None:
    reading = MetricsText(WANTED)
    piece = b"other 1\n" * 8192
    reading.feed(piece)
    before = _held_bytes(reading)
    for _ in range(60):
        reading.feed(piece)
    assert _held_bytes(reading) == before


def _held_bytes(reading: MetricsText) -> int:
    return sum(sys.getsizeof(each) for each in vars(reading).values())


MIB = 1 << 20


@pytest.mark.timeout(60)  # one that looks at everything again and again would take an hour
@pytest.mark.parametrize(
    "text",
    [
        b'a="' + b"x" * MIB,
        b'a="' + b"\\" * MIB,
        b'a="' + b'\\"' * MIB,
        b'a="' + b"\\x" * MIB + b"\n",
        b"a" * MIB,
        b'a=""' * MIB,
        b" " * MIB,
        b'a="",' * MIB,
        b'a="",' + b"a" * MIB,
        b'"' * MIB,
    ],
)
def test_labels_of_any_length_are_read_once(text: bytes) -> None:
    assert len(read_labels(text)) <= 1


def test_labels_are_bounded() -> None:
    assert len(read_labels(_lines(b'a%d="1",', 10 * MOST_LABELS))) == MOST_LABELS
    assert read_labels(b'a="%s",b="1",b="2"' % (b"x" * (MOST_LABEL_BYTES + 1))) == {"b": "1"}


@given(st.dictionaries(st.sampled_from("abcd"), st.text(max_size=30), min_size=1))
def test_labels_are_those_that_were_written(labels: dict[str, str]) -> None:
    labels = {name: value.encode(errors="replace").decode() for name, value in labels.items()}
    registry = CollectorRegistry()
    Gauge("vllm:running", "x", tuple(labels), registry=registry).labels(**labels).set(1)
    ((written, value),) = read_families(generate_latest(registry), WANTED).of(RUNNING)
    assert (read_labels(written), value) == (labels, 1.0)


@given(st.binary(max_size=300), st.integers(0, 60), st.integers(0, 60))
def test_whatever_comes_is_read_or_refused(garbage: bytes, first: int, last: int) -> None:
    text = b'vllm:running{engine="0",name="m"} 1.0\nvllm:waiting 2\n'
    found = read_families(text[:first] + garbage + text[last:], WANTED)
    assert isinstance(found, Families)
    for samples in found.samples.values():
        for labels, value in samples:
            read_labels(labels)
            assert 0.0 <= value <= 1 << 62
