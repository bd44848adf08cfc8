"""What engines on a real node are told: prefixes before they serve, `kubectl kvtier` through pods/exec."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cluster.harness.operator.installed import Site
from tests.cluster.node.told import NAME, PREFIXES, Told
from tests.shared.waiting import eventually

# An engine starts, which takes a minute.
pytestmark = pytest.mark.long
_WORDS = "lorem ipsum dolor sit amet "
# More than the tier holds beside the prefixes, some 1,500 tokens each.
FLOOD = [f"{number} flooding " + _WORDS * 110 for number in range(14)]


@pytest.fixture(scope="module")
def told(site: Site, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Told]:
    engine = Told(site, tmp_path_factory.mktemp("told"))
    yield engine
    engine.delete()


def test_the_engine_is_healthy_only_once_its_prefixes_are_computed(told: Told) -> None:
    log = told.log()
    [computed] = [number for number, line in enumerate(log) if "2 of 2 prefixes computed" in line]
    healthy = [number for number, line in enumerate(log) if '"GET /health ' in line and " 200" in line]
    assert healthy, "the kubelet has asked"
    assert healthy[0] > computed


def test_status_says_of_each_prefix_how_long_it_is_and_a_prompt_that_begins_so_is_cached(told: Told) -> None:
    def counted() -> list[dict[str, object]]:
        prefixes: list[dict[str, object]] = told.site.kubectl.json("get", "kvct", NAME)["status"]["prefixes"]
        return prefixes if all("cachedTokens" in prefix for prefix in prefixes) else []

    lengths = {prefix["name"]: prefix["tokens"] for prefix in eventually(counted, "word on prefixes")}
    assert lengths.keys() == PREFIXES.keys()
    for name, text in PREFIXES.items():
        asked = told.ask(text)
        assert asked.tokens == lengths[name]
        assert asked.is_whole


def test_what_was_warmed_is_there_when_it_is_asked_for(told: Told, tmp_path: Path) -> None:
    told.tell("clear")
    prompts = [f"{number} warmed " + _WORDS * 30 for number in range(3)]
    file = tmp_path / "prompts.jsonl"
    file.write_text("\n".join(json.dumps({"prompt": prompt}) for prompt in prompts))
    said = told.tell("warm", "-f", str(file))
    assert (said["prompts"], said["computed"], said["cached_tokens"]) == (3, 3, 0)
    asked = [told.ask(prompt) for prompt in prompts]
    assert all(answered.is_whole for answered in asked)
    assert said["tokens"] == sum(answered.tokens for answered in asked)


def test_what_is_kept_outlasts_a_flood(told: Told) -> None:
    told.tell("clear")
    kept, ordinary = (f"{which} " + _WORDS * 30 for which in ("kept", "ordinary"))
    told.ask(ordinary)
    assert told.tell("keep", "--text", kept, "--for", "2h")["computed"] == 1
    for prompt in FLOOD:
        told.ask(prompt)
    assert told.ask(kept).is_whole
    assert told.ask(ordinary).cached_tokens == 0


def test_nothing_cleared_is_served_and_the_rest_still_is(told: Told, tmp_path: Path) -> None:
    told.tell("clear")
    prompt = "cleared " + _WORDS * 60
    file = tmp_path / "prompt.txt"
    file.write_text(prompt)
    salts = {"team-a": "team-a:of-ours", "team-b": "team-b:of-theirs", "nobody": ""}
    assert [told.ask(prompt, salt).cached_tokens for salt in salts.values()] == [0, 0, 0]

    told.tell("clear", "--prefix-of", str(file))
    assert told.ask(prompt).cached_tokens == 0
    assert [told.ask(prompt, salts[team]).is_whole for team in ("team-a", "team-b")] == [True, True]

    told.tell("clear", "--share", "team-a")
    assert told.ask(prompt, salts["team-a"]).cached_tokens == 0
    assert [told.ask(prompt, salts[team]).is_whole for team in ("team-b", "nobody")] == [True, True]

    cleared = told.tell("clear")["cleared"]
    assert cleared["gpu"] > 0
    assert cleared["cpu"] > 0
    assert [told.ask(prompt, salt).cached_tokens for salt in salts.values()] == [0, 0, 0]


def test_top_by_share_says_what_each_tenant_holds(told: Told) -> None:
    prompt = "held " + _WORDS * 60
    for team in ("team-a", "team-b"):
        told.ask(prompt, f"{team}:salt")

    def rows() -> dict[str, str]:
        done = told.run(told.reader, "top", "--by", "share", "--once")
        assert (done.returncode, done.stderr) == (0, "")
        _, *lines = done.stdout.splitlines()
        return {line.split()[1]: line for line in lines if "MiB" in line}

    shown = eventually(lambda: found if (found := rows()).keys() >= {"team-a", "team-b"} else {}, "tenants")
    assert all(f"default/{NAME}" in line for line in shown.values())


@pytest.mark.parametrize("words", [("clear",), ("keep", "--text", "a text")], ids=lambda words: words[0])
def test_who_may_not_run_programs_in_pods_tells_nothing_and_hears_why(
    told: Told, words: tuple[str, ...]
) -> None:
    prompt = "still there " + _WORDS * 30
    told.ask(prompt)
    verb, *rest = words
    done = told.run(told.reader, verb, NAME, *rest)
    assert (done.returncode, done.stdout) == (3, "")
    [line] = done.stderr.splitlines()
    assert line.startswith("kvtier: you may not run programs in pods of namespace default: ")
    assert "pods/exec" in line
    assert told.ask(prompt).is_whole


def test_who_may_tell_engines_and_read_no_metrics_is_told_so_by_top(told: Told) -> None:
    done = told.run(told.teller, "top", "--by", "share", "--once")
    assert done.returncode == 0
    assert "pods/proxy" in done.stdout
