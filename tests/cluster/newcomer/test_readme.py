"""README's commands, typed in its order by somebody who has nothing of kvtier's yet, on a new cluster."""

import re
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from tests.cluster.harness.api.commands import command
from tests.cluster.harness.operator.places import ROOT
from tests.cluster.harness.programs.tools import Say
from tests.cluster.harness.providers.fixtures import made, need
from tests.cluster.harness.providers.provider import Ability, Cluster, Provider
from tests.cluster.harness.stand_ins.kwok import Shape, add_nodes, running_kwok
from tests.cluster.install.running import run_installed
from tests.cluster.newcomer.belongings import checkout, variables
from tests.cluster.newcomer.shell import open_shell
from tests.unit.docs.pages import Typed, fenced_blocks, typed_commands

README = ROOT / "README.md"
OF_OTHERS = {
    "make release publish REGISTRY=registry.example/team": "tests/cluster/release does it, images and all",
    "make demo": "vLLM and its 5 GB; tests/engine and tests/picker hold what it does",
    "make test": "this is a part of it",
}
INSTALL = "helm install"
PUBLISHED = "oci://registry.example/team/kvtier/charts/tiered-prefix-cache"
CHART = "charts/tiered-prefix-cache"
# How long ago something was made.
AGE = re.compile(r"\d+(ms|s|m|h)\b$")


@pytest.fixture(scope="module")
def new_cluster(provider: Provider, say: Say) -> Iterator[Cluster]:
    """With nodes on which engines and pickers are Ready at once, and nothing else."""
    need(provider, Ability.CONTROL_PLANE)
    with made(provider.cluster(say)) as cluster, cluster.client() as api, running_kwok(cluster, say):
        add_nodes(api, 2, Shape())
        yield cluster


def test_what_is_left_to_others_is_there() -> None:
    assert [plain for each in typed_commands(README) if (plain := _plain(each)) in OF_OTHERS] == [*OF_OTHERS]


def test_its_commands_do_what_it_says(new_cluster: Cluster, tmp_path: Path, say: Say) -> None:
    sources, home = checkout(tmp_path / "kvtier"), tmp_path / "home"
    kubeconfig = new_cluster.kubeconfig(tmp_path)
    environment = variables(home, kubeconfig, say)
    [resource] = fenced_blocks(README, "yaml")
    (sources / "cr.yaml").write_text(resource, encoding="utf-8")
    with open_shell(sources, environment) as shell, ExitStack() as stack:
        for each in typed_commands(README):
            if _plain(each) in OF_OTHERS:
                continue
            status, shown = shell.type(each.command.replace(PUBLISHED, CHART))
            assert status == 0, f"{each.command}\n{shown}"
            _hold(each, shown)
            if each.command.startswith(INSTALL):
                # Its pod's node only says that it runs it.
                kubectl = command("kubectl", kubeconfig, tmp_path, say)
                stack.enter_context(run_installed(new_cluster, kubectl, tmp_path))


def _plain(each: Typed) -> str:
    return each.command.partition(" #")[0].strip()


def _hold(each: Typed, shown: str) -> None:
    """What the page shows is there in its order, and nothing between lines but where it says `...`."""
    lines = [_ageless(line) for line in shown.splitlines()]
    at = 0
    for part in _parts(each.shown):
        places = range(at, len(lines) - len(part) + 1)
        found = next((place for place in places if lines[place : place + len(part)] == part), None)
        assert found is not None, "\n".join((each.command, "does not show", *part, "but", *lines))
        at = found + len(part)


def _parts(shown: Iterable[str]) -> list[list[str]]:
    parts: list[list[str]] = [[]]
    for line in shown:
        if line == "...":
            parts.append([])
        else:
            parts[-1].append(_ageless(line))
    return parts


def _ageless(line: str) -> str:
    return AGE.sub("AGE", line.rstrip())
