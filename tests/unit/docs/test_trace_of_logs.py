"""The page's script that makes a trace of access logs."""

import json
import subprocess
import sys
from math import inf

from tests.unit.docs.pages import DOCS, fenced_blocks

from kvtier_scorer.simulate.hinting import pauses_s
from kvtier_scorer.simulate.trace import Trace
from kvtier_scorer.simulate.trace_files import parse_trace

PAGE = DOCS / "user-guide/measure/simulate.md"


def line(time_s: float, session: str, prompt_tokens: int, completion_tokens: int = 20) -> dict[str, object]:
    return {
        "time": 1_790_000_000 + time_s,
        "model": "m",
        "session": session,
        "system": "agent-3",
        "system_tokens": 1000,
        "prompt_tokens": prompt_tokens,
        "completion_tokens": completion_tokens,
    }


def trace_of(*lines: dict[str, object]) -> Trace:
    [script] = fenced_blocks(PAGE, "python")
    done = subprocess.run(  # noqa: S603 - the page's
        [sys.executable, "-c", script],
        input="".join(json.dumps(each) + "\n" for each in lines),
        capture_output=True,
        text=True,
        check=True,
    )
    return parse_trace("logs", done.stdout)


def test_turns_of_a_session_go_on_from_one_another_and_prompts_have_their_lengths() -> None:
    # not in order of time; b's second prompt is shortened, and the third as long as it
    logs = [(0, "a", 1100), (30, "a", 1400), (1, "b", 1200), (40, "b", 1150), (60, "b", 1150)]
    found = trace_of(*(line(*each) for each in logs))
    assert found.prompt_tokens.tolist() == [tokens for _, _, tokens in sorted(logs)]
    assert pauses_s(found).tolist() == [30.0, inf, inf, inf, inf]


def test_a_request_without_an_answer_or_with_less_than_its_system_prompt_can_be_replayed() -> None:
    found = trace_of(line(0, "a", 900, 0), line(1, "a", 0, 0))
    assert found.prompt_tokens.tolist() == [1001, 1001]
