"""What engines are told, and what is said of those that cannot be."""

import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from tests.cases.seen import pod, resource

from kvtier_common.errors import KvtierError, UnreachableError
from kvtier_common.kubernetes.answers import ForbiddenError
from kvtier_common.kubernetes.container_command import Container, Ended
from kvtier_operator.cli.cluster.engines import NoEnginesError, tell_engines
from kvtier_operator.cli.cluster.order import Order
from kvtier_operator.cli.cluster.orders import clear, keep, warm
from kvtier_operator.cli.cluster.reader import Reader
from kvtier_operator.cli.inputs import options
from kvtier_operator.errors import InvalidInputError
from kvtier_operator.planning.base.kept import ATTACHED_CONTROL_FOLDER

Ran = tuple[Container, Sequence[str], bytes]
ATTACHED = {"attach": {"podSelector": {"matchLabels": {"app": "qwen"}}}}


def running(name: str, component: str = "engine") -> dict[str, Any]:
    there = pod(name, component, phase="Running")
    there["spec"]["containers"] = [{"name": "engine"}, {"name": "beside"}]
    return there


CLEARED = '{"engine": "engine-0", "rank": 0, "cleared": {"cpu": 7000, "disk": 2}, "requests_under_way": 1}\n'


class _Cluster(Reader):
    """A resource with pods, whose programs end as a test says."""

    def __init__(
        self, document: dict[str, Any], pods: Sequence[dict[str, Any]], ends: Mapping[str, object]
    ) -> None:
        self.ran: list[Ran] = []
        self._document, self._listed, self._ends = document, list(pods), ends

    async def document(self, namespace: str, name: str) -> dict[str, Any]:
        assert (namespace, name) == ("llm", "qwen3-32b")
        return self._document

    async def pods_of(self, resource: dict[str, Any]) -> list[dict[str, Any]]:
        assert resource is self._document
        return self._listed

    async def run(
        self, container: Container, command: Sequence[str], stdin: bytes, *, limit_s: float
    ) -> Ended:
        assert limit_s > 0
        self.ran.append((container, command, stdin))
        end = self._ends.get(container.pod, Ended(0, CLEARED, ""))
        if isinstance(end, KvtierError):
            raise end
        assert isinstance(end, Ended)
        return end


def cluster(*pods: dict[str, Any], ends: Mapping[str, object] | None = None, **spec: Any) -> _Cluster:  # noqa: ANN401 - of a resource
    listed = pods or (running("a"), running("b"), running("p", "picker"))
    return _Cluster(resource(**spec), listed, ends or {})


@pytest.fixture
def on(monkeypatch: pytest.MonkeyPatch) -> Callable[[_Cluster], None]:
    def use(one: _Cluster) -> None:
        @asynccontextmanager
        async def open_cluster(_: object, __: object) -> AsyncIterator[tuple[Reader, str]]:
            yield one, "llm"

        monkeypatch.setattr(options, "open_cluster", open_cluster)

    return use


def words(ran: Ran) -> list[str]:
    """Of the control program."""
    return list(ran[1])[list(ran[1]).index("kvtier_connector.control") + 1 :]


def arguments(ran: Ran) -> list[str]:
    """A verb, and what it takes."""
    return words(ran)[6:]


async def told(one: _Cluster, order: Order) -> dict[str, str]:
    return {answer.pod: answer.trouble async for answer in tell_engines(one, "llm", "qwen3-32b", order)}


async def test_every_engine_is_told_in_its_own_container_and_pickers_are_not() -> None:
    one = cluster(engine={"port": 9000})
    assert await told(one, Order(("top",))) == {"a": "", "b": ""}
    assert sorted((ran[0].pod, ran[0].name) for ran in one.ran) == [("a", "engine"), ("b", "engine")]
    where = ["--path", "/run/kvtier/control", "--port", "9000", "--timeout", "60"]
    assert all(words(ran) == [*where, "top"] for ran in one.ran)


async def test_an_engine_of_others_is_told_in_the_container_that_has_the_tier() -> None:
    theirs = running("a", "")
    theirs["metadata"]["annotations"] = {"kvtier.dev/attached": "qwen3-32b"}
    theirs["spec"]["containers"] = [
        {"name": "proxy"},
        {
            "name": "vllm",
            "env": [{"name": "KVTIER_ATTACH", "value": "{}"}],
            "ports": [{"containerPort": 8080}],
        },
    ]
    other = running("b", "")
    one = cluster(theirs, other, **ATTACHED)
    assert await told(one, Order(("top",))) == {"a": ""}
    [ran] = one.ran
    assert ran[0].name == "vllm"
    assert words(ran)[:4] == ["--path", ATTACHED_CONTROL_FOLDER, "--port", "8080"]


async def test_what_went_wrong_with_one_engine_is_said_of_it_alone() -> None:
    waiting = pod("c", phase="Pending")
    gone = pod("d", phase="Failed")
    ends = {"a": Ended(2, "", "a note\nno such tenant\n"), "b": UnreachableError("no answer")}
    one = cluster(running("a"), running("b"), waiting, gone, running("e"), ends=ends)
    assert await told(one, Order(("clear",))) == {
        "a": "no such tenant",
        "b": "no answer",
        "c": "does not run yet: try again when it does",
        "e": "",
    }


async def test_a_right_that_lacks_is_one_line_with_verb_and_namespace() -> None:
    one = cluster(ends={"a": ForbiddenError("403"), "b": ForbiddenError("403")})
    with pytest.raises(ForbiddenError, match=r"namespace llm: .* get and create on pods/exec") as caught:
        await told(one, Order(("clear",)))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("one", "said"),
    [
        (cluster(pod("p", "picker")), "has no engine pod"),
        (cluster(backend="LMCache"), "backend LMCache: only KVTier"),
    ],
)
async def test_nobody_to_tell(one: _Cluster, said: str) -> None:
    with pytest.raises(NoEnginesError, match=said):
        await told(one, Order(("clear",)))


def test_clear_names_one_epoch_for_all_engines(on: Callable[[_Cluster], None]) -> None:
    one = cluster()
    on(one)
    result = CliRunner().invoke(clear, ["qwen3-32b", "--tier", "disk", "--share", "search"])
    assert result.exit_code == 0, result.output
    [first, second] = map(arguments, one.ran)
    assert first == second
    assert first[:5] == ["clear", "--tier", "disk", "--share", "search"]
    figures = "cleared cpu 7,000, cleared disk 2, requests under way 1"
    assert result.stdout == f"a: {figures}\nb: {figures}\n"


@pytest.mark.parametrize("option", ["--share", "--prefix-of"])
def test_a_part_without_a_name_clears_nothing(on: Callable[[_Cluster], None], option: str) -> None:
    one = cluster()
    on(one)
    result = CliRunner().invoke(clear, ["qwen3-32b", option, ""])
    assert (result.exit_code, one.ran) == (2, [])
    assert option in result.stderr.splitlines()[-1]
    assert "is empty" in result.stderr.splitlines()[-1]


def test_clear_of_a_prompt_is_of_its_salt(on: Callable[[_Cluster], None], tmp_path: Path) -> None:
    file = tmp_path / "prompt.json"
    file.write_text('{"prompt": "Be brief.", "cache_salt": "search:7"}')
    ended = Ended(0, '{"cleared": {"cpu": 3}, "note": "what comes after is not cleared"}\n', "")
    one = cluster(ends={"a": ended, "b": ended})
    on(one)
    result = CliRunner().invoke(clear, ["qwen3-32b", "--prefix-of", str(file)])
    assert result.exit_code == 0
    said = "a: cleared cpu 3\nb: cleared cpu 3\nwhat comes after is not cleared\n"
    assert result.stdout == said, "what is true of all engines is said once"
    asked = arguments(one.ran[0])
    assert asked[:6] == ["clear", "--prefix-of", "-", "--format", "jsonl", "--cache-salt"]
    assert asked[6] == "search:7"
    assert json.loads(one.ran[0][2])["prompt"] == "Be brief."


def test_json_has_every_engine_and_exit_code_1_where_one_failed(on: Callable[[_Cluster], None]) -> None:
    one = cluster(ends={"b": UnreachableError("no answer")})
    on(one)
    result = CliRunner().invoke(clear, ["qwen3-32b", "-o", "json"])
    assert result.exit_code == 1
    assert json.loads(result.stdout) == {
        "namespace": "llm",
        "name": "qwen3-32b",
        "engines": [
            {"pod": "a", "engines": [json.loads(CLEARED)], "error": None},
            {"pod": "b", "engines": [], "error": "no answer"},
        ],
    }


@pytest.mark.parametrize(
    ("prompt", "line"),
    [
        ("Be brief.", {"prompt": "Be brief."}),
        ("Be brief. " * 500, {"prompt": "Be brief. " * 500}),
        ('{"messages": [{"role": "system", "content": "Be brief."}]}', None),
        ('{"answer": 42}', {"prompt": '{"answer": 42}'}),
    ],
)
def test_keep_takes_a_text_or_a_prompt_in_json(
    on: Callable[[_Cluster], None], tmp_path: Path, prompt: str, line: object
) -> None:
    file = tmp_path / "prompt"
    file.write_text(prompt)
    for given in (["--text", prompt], [str(file)]):
        one = cluster()
        on(one)
        result = CliRunner().invoke(keep, ["qwen3-32b", *given, "--for", "2h"])
        assert result.exit_code == 0, result.output
        assert arguments(one.ran[0])[:4] == ["keep", "-", "--for", "7200"]
        assert json.loads(one.ran[0][2]) == (line or json.loads(prompt))
        # standard input has no end: the shell is told how much there is
        assert str(len(one.ran[0][2])) in one.ran[0][1]


@pytest.mark.parametrize(
    "given", [["system-promt.txt"], ["Be brief. " * 500], [], ["-", "--text", "Be brief."]]
)
def test_keep_takes_no_name_of_a_file_for_a_prompt(on: Callable[[_Cluster], None], given: list[str]) -> None:
    one = cluster()
    on(one)
    result = CliRunner().invoke(keep, ["qwen3-32b", *given])
    assert (result.exit_code, one.ran) == (2, [])


def test_keep_and_warm_say_whose_room_it_is(on: Callable[[_Cluster], None]) -> None:
    one = cluster()
    on(one)
    for command, given in ((keep, ["--text", "Be brief."]), (warm, ["-f", "-"])):
        result = CliRunner().invoke(
            command, ["qwen3-32b", *given, "--share", "search"], input='{"prompt": "a"}\n'
        )
        assert result.exit_code == 0, result.output
        assert arguments(one.ran[-1])[-2:] == ["--share", "search"]


def test_what_engines_have_to_note_is_said_once(on: Callable[[_Cluster], None]) -> None:
    end = Ended(0, '{"engine": "port 8000", "tokens": 6, "note": "the prompt has\\nfewer"}\n', "")
    on(cluster(ends={"a": end, "b": end}))
    result = CliRunner().invoke(keep, ["qwen3-32b", "--text", "Be brief."])
    assert result.stdout == "a: tokens 6\nb: tokens 6\nthe prompt has fewer\n"


def test_warm_sends_a_line_a_prompt(on: Callable[[_Cluster], None], tmp_path: Path) -> None:
    file = tmp_path / "prompts.jsonl"
    file.write_text('{"prompt": "one"}\n\n{"tokens": [1, 2], "cache_salt": "a"}\n')
    one = cluster()
    on(one)
    assert CliRunner().invoke(warm, ["qwen3-32b", "-f", str(file)]).exit_code == 0
    lines = [json.loads(line) for line in one.ran[0][2].splitlines()]
    assert lines == [{"prompt": "one"}, {"tokens": [1, 2], "cache_salt": "a"}]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ('{"prompt": "one"}\n{"prompt": ', "line 2: "),
        ('{"text": "one"}\n', "line 1: is not a prompt"),
        ("\n", "has no prompts"),
    ],
)
def test_a_bad_line_is_named_and_nobody_is_told(
    on: Callable[[_Cluster], None], tmp_path: Path, content: str, said: str
) -> None:
    file = tmp_path / "prompts.jsonl"
    file.write_text(content)
    one = cluster()
    on(one)
    result = CliRunner().invoke(warm, ["qwen3-32b", "-f", str(file)])
    assert said in str(result.exception)
    assert not one.ran


def test_prompts_that_are_not_there_are_bad_input(tmp_path: Path) -> None:
    result = CliRunner().invoke(warm, ["qwen3-32b", "-f", str(tmp_path / "none.jsonl")])
    assert isinstance(result.exception, InvalidInputError)
    assert str(result.exception) == f"{tmp_path}/none.jsonl: cannot be read: No such file or directory"


@pytest.mark.parametrize("time", ["2d", "0s", "25h", "1"])
def test_keep_takes_times_of_a_day_at_most(time: str) -> None:
    result = CliRunner().invoke(keep, ["qwen3-32b", "--text", "a", "--for", time])
    assert (result.exit_code, "from 1s to 24h" in result.stderr) == (2, True)
