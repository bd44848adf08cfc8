import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvtier_common.benchmarks import HIGH_CACHE, LOW_CACHE, Workload
from kvtier_common.hints import NO_HINTS, parse_hints
from kvtier_scorer.simulate.trace import Trace, TraceError, generate
from kvtier_scorer.simulate.trace_files import load_trace, parse_trace

MOONCAKE = {"timestamp": 1500, "input_length": 1100, "output_length": 50, "hash_ids": [7, 8, 9]}
HEAD = {"kvtier_trace": 1}
OWN = {"time_s": 1.5, "model": "m", "prompt": [["a", 30], ["b", 5]], "output_tokens": 4}
SMALL = Workload(
    groups=3, prompts_per_group=4, system_tokens=30, question_tokens=6, output_tokens=2, concurrency=2
)


def lines(*objects: object) -> str:
    return "\n".join(each if isinstance(each, str) else json.dumps(each) for each in objects) + "\n"


def shared(trace: Trace, first: int, second: int) -> int:
    """Tokens that two prompts have in common, from the first."""
    found = 0
    for one, other in zip(trace.path(first), trace.path(second), strict=False):
        if one != other:
            break
        found += int(trace.nodes.tokens[one])
    return found


def test_a_request_says_what_it_says_of_its_blocks() -> None:
    said = {"retain": 60, "priority": "high", "share": "team", "nostore": True}
    trace = parse_trace("f", lines(HEAD, OWN, {**OWN, "hints": said}))
    assert trace.hints == (NO_HINTS, parse_hints(said)[0])
    assert trace.hinted
    assert not parse_trace("f", lines(HEAD, OWN)).hinted


def test_mooncake_ids_stand_for_512_tokens_and_the_last_for_the_rest() -> None:
    trace = parse_trace("f", lines(MOONCAKE, {**MOONCAKE, "hash_ids": [7, 8, 5], "timestamp": 2000}))
    assert trace.prompt_tokens.tolist() == [1100, 1100]
    assert shared(trace, 0, 1) == 1024
    assert trace.time_s is not None
    assert trace.time_s.tolist() == [1.5, 2.0]
    assert trace.output_tokens.tolist() == [50, 50]
    assert trace.concurrency is None


def test_an_id_of_a_part_of_a_block_is_not_that_of_a_whole_one() -> None:
    whole = {**MOONCAKE, "input_length": 1024, "hash_ids": [7, 8]}
    part = {**MOONCAKE, "input_length": 1000, "hash_ids": [7, 8]}
    assert shared(parse_trace("f", lines(whole, part)), 0, 1) == 512


def test_an_answer_of_no_tokens_is_one_of_one() -> None:
    assert parse_trace("f", lines({**MOONCAKE, "output_length": 0})).output_tokens.tolist() == [1]


def test_requests_are_sorted_by_time() -> None:
    trace = parse_trace("f", lines(HEAD, {**OWN, "time_s": 3}, {**OWN, "time_s": 1, "output_tokens": 9}))
    assert trace.time_s is not None
    assert trace.time_s.tolist() == [1, 3]
    assert trace.output_tokens.tolist() == [9, 4]


def test_own_prompts_share_their_first_equal_segments_within_a_model() -> None:
    other = {**OWN, "prompt": [["a", 30], ["c", 9]]}
    behind = {**OWN, "prompt": [["c", 9], ["a", 30]]}
    trace = parse_trace("f", lines(HEAD, OWN, other, behind, {**OWN, "model": "n"}))
    assert [shared(trace, 0, number) for number in range(4)] == [35, 30, 0, 0]


def test_own_trace_with_a_concurrency_has_no_times() -> None:
    untimed = {name: value for name, value in OWN.items() if name != "time_s"}
    trace = parse_trace("f", lines({**HEAD, "concurrency": 3}, untimed))
    assert (trace.concurrency, trace.time_s) == (3, None)


def test_blank_lines_windows_ends_and_odd_separators_in_strings_are_taken() -> None:
    text = lines(HEAD, "", {**OWN, "model": "m\u2028n"}, "   ").replace("\n", "\r\n")
    assert parse_trace("f", text).models == ("m\u2028n",)
    assert parse_trace(
        "f", lines(HEAD, '{"time_s": 0, "model": "m\u2028n", "prompt": [[1, 2]], "output_tokens": 1}')
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "f: is empty; give a trace with one request at least"),
        ("\n\n", "f: is empty; give a trace with one request at least"),
        ("{}\n", "f:1: is the first line of no known format (kvtier, mooncake); begin with"),
        ("[1]\n", "f:1: must be a JSON object, not [1]"),
        ("[" * 100_000, "f:1: is not JSON: "),
        (lines(HEAD), "f: holds no request; give a trace with one at least"),
        (lines({"kvtier_trace": 2}), "f:1: kvtier_trace: version 2 is not known; this release reads 1"),
        (
            lines({"kvtier_trace": None}),
            "f:1: kvtier_trace: version nothing is not known; this release reads 1",
        ),
        (lines({**HEAD, "more": 1}), "f:1: more: is not a field of this format"),
        (lines({**HEAD, "concurrency": 0}), "f:1: concurrency: must be a whole number of 1 or more, not 0"),
        (
            lines({**HEAD, "concurrency": True}),
            "f:1: concurrency: must be a whole number of 1 or more, not True",
        ),
        (lines({**HEAD, "concurrency": 2}, OWN), "f:2: time_s: is not a field of this format"),
        (lines(HEAD, OWN, "", "{"), "f:4: is not JSON: "),
        (
            lines(HEAD, {**OWN, "modality": "m"}),
            "f:2: modality: is not a field of this format; known are model",
        ),
        (lines(HEAD, {**OWN, "model": ""}), "f:2: model: must be a name, not ''"),
        (lines(HEAD, {**OWN, "time_s": -1}), "f:2: time_s: must be a number from 0 to 1e+09, not -1"),
        (lines(HEAD, {**OWN, "time_s": 1e300}), "f:2: time_s: must be a number from 0 to 1e+09, not 1e+300"),
        (lines(HEAD, '{"time_s": NaN}'), "f:2: is not JSON: NaN is no number"),
        (
            lines(HEAD, {**OWN, "time_s": float("nan")}),
            "f:2: is not JSON: NaN is no number",
        ),
        (lines(HEAD, {**OWN, "prompt": []}), "f:2: prompt: must be a list with one element at least, not []"),
        (lines(HEAD, {**OWN, "prompt": [5]}), "f:2: prompt[0]: must be [id, tokens], not 5"),
        (
            lines(HEAD, {**OWN, "prompt": [["a", 3], ["b"]]}),
            "f:2: prompt[1]: must be [id, tokens], not ['b']",
        ),
        (
            lines(HEAD, {**OWN, "prompt": [[1.5, 3]]}),
            "f:2: prompt[0][0]: must be a string or a whole number, not 1.5",
        ),
        (
            lines(HEAD, {**OWN, "prompt": [["a", 0]]}),
            "f:2: prompt[0][1]: must be a whole number of tokens, 1 to 10,000,000, not 0",
        ),
        (
            lines(HEAD, OWN, {**OWN, "prompt": [["a", 31]]}),
            "f:3: prompt[0][1]: 'a' has 31 tokens here and 30 in line 2; an id has one length, give",
        ),
        (
            lines(HEAD, {**OWN, "hints": {"retain": -1}}),
            "f:2: hints: retain: must be 0 to 86400 seconds; correct it or leave it out",
        ),
        (lines(HEAD, {**OWN, "hints": 3}), "f:2: hints: must be an object, not 3"),
        (
            lines(HEAD, {**OWN, "output_tokens": 10**30}),
            "f:2: output_tokens: must be a whole number of tokens, 1 to 10,000,000, not 1e+30",
        ),
        (
            lines(MOONCAKE, {**MOONCAKE, "hash_ids": [7, 8]}),
            "f:2: hash_ids: has 2 ids, but 1,100 tokens are 3 blocks of 512; correct",
        ),
        (lines({**MOONCAKE, "hash_ids": [7, "x", 9]}), "f:1: hash_ids[1]: must be a whole number, not 'x'"),
        (
            lines({**MOONCAKE, "hash_ids": 7}),
            "f:1: hash_ids: must be a list with one element at least, not 7",
        ),
        (lines({**MOONCAKE, "input_length": "5"}), "f:1: input_length: must be a whole number of tokens"),
        (
            lines({**MOONCAKE, "output_length": 1e300}),
            "f:1: output_length: must be a whole number of tokens, 0 to",
        ),
        (
            lines({**MOONCAKE, "timestamp": None}),
            "f:1: timestamp: must be a number from 0 to 1e+12, not nothing",
        ),
        (lines(MOONCAKE, {"timestamp": 1}), "f:2: input_length: must be a whole number of tokens"),
    ],
)
def test_what_is_wrong_is_told_in_one_line_with_file_line_and_field(text: str, message: str) -> None:
    with pytest.raises(TraceError) as caught:
        parse_trace("f", text)
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 250


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=10,
)


@given(st.sampled_from([MOONCAKE, OWN]), st.sampled_from(sorted({*MOONCAKE, *OWN})), JSON)
def test_any_value_in_any_field_is_taken_or_told(base: dict[str, object], field: str, value: object) -> None:
    head = [HEAD] if base is OWN else [MOONCAKE]
    told = ""
    try:
        parse_trace("f", lines(*head, {**base, field: value}))
    except TraceError as error:
        told = str(error)
    assert told.startswith("f:2: ") or not told
    assert "\n" not in told


@given(st.text() | st.binary().map(lambda raw: raw.decode(errors="replace")))
def test_any_text_is_told(text: str) -> None:
    with pytest.raises(TraceError, match=r"^f"):
        parse_trace("f", text)


def test_files_that_cannot_be_read_are_told(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="there is no such file"):
        load_trace(tmp_path / "none.jsonl")
    with pytest.raises(TraceError, match="cannot be read: Is a directory"):
        load_trace(tmp_path)
    raw = tmp_path / "raw.jsonl"
    raw.write_bytes(b'{"kvtier_trace": 1}\n\xff\xfe')
    with pytest.raises(TraceError, match=r"raw.jsonl: is not UTF-8 text \(byte 20\)"):
        load_trace(raw)
    good = tmp_path / "good.jsonl"
    good.write_text(lines(HEAD, OWN))
    assert load_trace(good).name == str(good)


def test_the_sizes_are_the_guides() -> None:
    trace = generate("high-cache", HIGH_CACHE, seed=0)
    assert (len(trace), trace.concurrency) == (450, 45)
    assert set(trace.prompt_tokens.tolist()) == {30_256}
    assert set(trace.output_tokens.tolist()) == {1_024}
    assert set(generate("low-cache", LOW_CACHE, seed=0).prompt_tokens.tolist()) == {8_256}


def test_generated_prompts_share_their_groups_system_prompt_and_nothing_else() -> None:
    trace = generate("t", SMALL, seed=1)
    groups: dict[int, list[int]] = {}
    for request in range(len(trace)):
        groups.setdefault(int(trace.path(request)[0]), []).append(request)
    assert sorted(map(len, groups.values())) == [4, 4, 4]
    for same in groups.values():
        assert {shared(trace, same[0], other) for other in same[1:]} == {30}


def test_the_order_of_the_groups_follows_the_seed() -> None:
    def order(seed: int) -> list[int]:
        trace = generate("t", SMALL, seed)
        return [int(trace.path(request)[0]) for request in range(len(trace))]

    assert order(1) == order(1)
    # nodes are numbered as they come, so it is where a group comes back that differs
    assert order(1) != order(2)


def test_with_a_rate_requests_come_at_random_times_of_that_mean() -> None:
    trace = generate("t", replace(HIGH_CACHE, groups=50, prompts_per_group=40), seed=0, rate_per_s=4.0)
    assert trace.time_s is not None
    assert trace.concurrency is None
    assert (trace.time_s[1:] >= trace.time_s[:-1]).all()
    assert trace.time_s[-1] / 2000 == pytest.approx(0.25, rel=0.1)


def test_too_many_requests_are_refused() -> None:
    with pytest.raises(TraceError, match="2,000,000 requests are too many"):
        generate("t", replace(HIGH_CACHE, groups=1_000_000, prompts_per_group=2), seed=0)
