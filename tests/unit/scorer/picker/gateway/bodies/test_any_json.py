"""JSON of any shape, fields of every API among it: a prompt, or an error for the client, and nothing else."""

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.scorer.picker.gateway.bodies.any_body import KINDS, bodies, values

from kvtier_scorer.config.contract import PRIORITY
from kvtier_scorer.errors import RefusedRequestError
from kvtier_scorer.picker.engines.tokenizers import EngineTokenizer
from kvtier_scorer.picker.gateway.bodies import APIS, prompt_and_body
from kvtier_scorer.picker.gateway.ext_proc.service import RequestReader
from kvtier_scorer.picker.gateway.protocol.events import RequestHead, RequestReceived
from kvtier_scorer.picker.gateway.protocol.messages import error_body

SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(-(2**70), 2**70), st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=5), st.sampled_from(KINDS),
)  # fmt: skip
VALUES = values(SCALARS)
BODIES = bodies(VALUES)


def outcome(body: bytes, path: str) -> RefusedRequestError | None:
    try:
        prompt, fields = prompt_and_body(path, body)
    except RefusedRequestError as error:
        return error
    # whatever a field is, the engine is asked for its tokens, or they are estimated
    EngineTokenizer(lambda: None, 1).tokenize_request(prompt, fields)
    return None


@settings(max_examples=300)
@given(st.sampled_from(sorted(APIS)), st.one_of(BODIES, VALUES))
def test_any_json(path: str, body: Any) -> None:  # noqa: ANN401 - a JSON value
    refused = outcome(json.dumps(body).encode(), path)
    if refused is not None:
        assert refused.status == 400
        assert json.loads(error_body(refused))["error"]["code"] == 400


@given(st.one_of(st.text(max_size=30), st.integers().map(str)))
def test_any_priority(priority: str) -> None:
    question = RequestReceived(RequestHead("/", {PRIORITY: priority}, None), None)
    read = RequestReader(None).read_now(question)
    assert read is not None
    try:
        number = int(priority) if priority.isascii() and "_" not in priority else 0
    except ValueError:
        number = 0
    # the header's value is the client's, and is not in what the log says
    assert read.request.priority == (number if abs(number) < 10**10 else 0)
    assert all(
        line.startswith(PRIORITY) and "low, normal or high" in line for line in read.hints.problems[:1]
    )
