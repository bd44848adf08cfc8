"""`make demo-cluster`: from nothing to a prefix cache on Kubernetes, measured.

A real node, `helm install`, one resource applied with kubectl, and long prompts asked again through the
Service of the engines: from CPU memory once another prompt has taken their place on the device, then from it.
Then a second engine, and a change that replaces both while streams are under way. Second scene: a Deployment
that somebody else owns gets the tier by a resource that selects its pods, and one restart.
"""

import json
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import click
from rich.console import Console
from rich.table import Table
from tests.cluster.harness.api.settled import settle
from tests.cluster.harness.images.engines import DEMO_MODEL, model_environment, model_folder, model_geometry
from tests.cluster.harness.operator.installed import Site, running_site
from tests.cluster.harness.operator.places import SYSTEM
from tests.cluster.harness.programs.tools import MissingToolError
from tests.cluster.harness.providers.chosen import chosen_provider
from tests.cluster.harness.providers.provider import Ability, lacking
from tests.cluster.harness.streams import Streams, streaming
from tests.cluster.node import others
from tests.shared.waiting import eventually

from kvtier_operator.cli.inputs.load import load_resources
from kvtier_operator.errors import RuntimeFailedError
from kvtier_operator.planning.observed import Observed
from kvtier_operator.planning.planner import make_plan
from kvtier_operator.runtime.demo.prompts import corpus, demo_documents
from kvtier_operator.runtime.demo.tier import QUESTION, RESOURCE_PATH, Kind, Sample, fit_resource
from kvtier_operator.runtime.measure import OpenAIClient, Query, Samples
from kvtier_operator.runtime.metrics import parse_metrics

_READY_S: Final = 600
_OUTPUT_TOKENS: Final = 8
_ENGINES: Final = 2
_CLIENTS, _STREAM_TOKENS = 4, 200
# Two documents take turns on a device that holds one; each is then asked again at once.
_ORDER: Final = (
    (Kind.COLD, 0),
    (Kind.COLD, 1),
    (Kind.WARM, 0),
    (Kind.DEVICE_HIT, 0),
    (Kind.WARM, 1),
    (Kind.DEVICE_HIT, 1),
    (Kind.WARM, 0),
    (Kind.DEVICE_HIT, 0),
)
_MEANING: Final = {
    Kind.COLD: "every token computed",
    Kind.WARM: "loaded from CPU memory",
    Kind.DEVICE_HIT: "still in the device cache",
}


@click.command()
@click.option("--tokens", default=15_500, show_default=True, type=click.IntRange(256), help="Of a prompt.")
@click.option(
    "--output",
    default=Path("build/demo-cluster"),
    show_default=True,
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder for report.json and the resource.",
)
def main(*, tokens: int, output: Path) -> None:
    """Install kvtier on a real node, apply a resource, and show what its CPU tier saves."""
    console = Console(soft_wrap=True, highlight=False)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # cleaning up on the way out
    provider = chosen_provider()
    if reason := lacking(provider, Ability.NODE):
        sys.exit(reason)
    output.mkdir(parents=True, exist_ok=True)
    resource = _resource(tokens)
    plan = make_plan(load_resources([str(_write(resource, output))])[0][1], Observed())
    pages = plan.tiers.cpu.hugepages.pages if plan.tiers.cpu.hugepages else 0
    try:
        with running_site(provider, console.print, hugepages=_ENGINES * pages) as site:
            console.print(site.kubectl("get", "pods", "--all-namespaces", "--output", "wide"), markup=False)
            started = time.monotonic()
            _apply(site, output / "kvcachetier.yaml", console)
            ready_s = time.monotonic() - started
            console.print(site.kubectl("get", "kvct", "demo"), markup=False)
            samples = _measure(site, tokens, console)
            streams = _replace_engines(site, plan.tiers.cpu.capacity_bytes, console)
            site.kubectl("delete", "kvct", "demo")  # its engines' memory is for the second scene
            attached = _attach(site, tokens, plan.tiers.cpu.capacity_bytes, console)
    except (MissingToolError, RuntimeFailedError) as error:
        sys.exit(str(error))
    report = _report(samples, ready_s) | {
        "rollout": {"whole": streams.whole, "troubles": streams.troubles},
        "attached": attached,
    }
    (output / "report.json").write_text(json.dumps(report, indent=2) + "\n")
    console.print(_table(samples))
    console.print(
        f"[bold green]{report['speedup']:.0f} times faster[/] than cold through the Service; outputs are "
        f"{'equal' if report['outputs_equal'] else '[red]not equal[/]'}. Apply to Ready: {ready_s:.0f} s."
    )
    console.print(
        f"Both engines replaced under load: {len(streams.sent)} streams, {streams.whole} ended whole, "
        f"{'[red]' if streams.troubles else '[bold green]'}{len(streams.troubles)} failed[/]."
    )
    console.print(
        f"A Deployment of somebody else's, its command and image as they were: cold "
        f"{attached['cold_ttft_s']:.3f} s, from CPU memory {attached['warm_ttft_s']:.3f} s, "
        f"[bold green]{attached['speedup']:.0f} times faster[/]; outputs are "
        f"{'equal' if attached['outputs_equal'] else '[red]not equal[/]'}."
    )
    console.print(f"report: {output / 'report.json'}; the resource: {output / 'kvcachetier.yaml'}")


def _resource(tokens: int) -> dict[str, Any]:
    """The local demo's resource, with what a cluster has to be told: the model's geometry and where it is."""
    [(_, resource)] = load_resources([str(RESOURCE_PATH)])
    shape = DEMO_MODEL.shape
    per_token = 2 * shape.layers * shape.kv_heads * shape.head_dim * 4
    document = fit_resource(resource, DEMO_MODEL.name, tokens, per_token).manifest()
    document["spec"]["model"]["geometry"] = model_geometry(shape)
    document["spec"]["engine"]["env"] = model_environment()
    document["spec"]["engine"]["drainSeconds"] = 600  # two busy cores take long for a stream
    document["spec"]["tiers"]["cpu"] |= {"hugepages": {"policy": "Require"}}
    document["spec"]["router"] = {"flavor": "gaie", "version": "1.5"}
    return document


def _write(resource: dict[str, Any], output: Path) -> Path:
    target = output / "kvcachetier.yaml"
    target.write_text(json.dumps(resource, indent=2) + "\n")  # JSON is YAML
    return target


def _apply(site: Site, resource: Path, console: Console) -> None:
    console.print("kubectl apply, then waiting for the condition Ready")
    site.kubectl("apply", "--filename", resource)
    try:
        site.kubectl("wait", "kvct/demo", "--for=condition=Ready", f"--timeout={_READY_S}s")
    except Exception:
        with suppress(Exception):
            console.print(site.kubectl("describe", "kvct", "demo"), markup=False)
            console.print(site.kubectl("get", "pods", "--output", "wide"), markup=False)
            console.print(site.kubectl("logs", "--namespace", SYSTEM, "deploy/kvtier-operator"), markup=False)
        raise


def _measure(site: Site, tokens: int, console: Console) -> list[Sample]:
    url = _url(site)
    console.print(f"asking through the Service demo-engine at {url}")
    texts = demo_documents(corpus(), model_folder(DEMO_MODEL, console.print), tokens)
    samples = []
    with OpenAIClient(url) as client:
        for kind, document in _ORDER:
            before = parse_metrics(client.text("/metrics"))
            answer = client.ask(Query.completion(DEMO_MODEL.name, texts[document] + QUESTION, _OUTPUT_TOKENS))
            served = parse_metrics(client.text("/metrics")).since(before)
            sample = Sample(kind, document, answer, served)
            sample.verify()
            samples.append(sample)
            name = chr(ord("A") + document)
            console.print(f"document {name}  {kind:<12} TTFT {answer.ttft_s:8.3f} s", markup=False)
    return samples


def _attach(site: Site, tokens: int, capacity_bytes: int, console: Console) -> dict[str, Any]:
    """Have a workload of others serve, give it the tier, and ask again."""
    console.print("kubectl apply: a Deployment of somebody else's, on vLLM's own image, behind a shell")
    others.make_namespace(site)
    words = others.arguments(DEMO_MODEL, tokens=tokens + 500, cache_bytes=_device_bytes(tokens))
    command = ["bash", "-c", f'eval "exec vllm serve {" ".join(words)} $@"', "--"]
    others.apply(site, others.workload("Deployment", command))
    before = others.ready_pod(site)
    console.print("kubectl apply: a KVCacheTier with spec.attach; then its owner's kubectl rollout restart")
    others.apply(site, others.tier(str(capacity_bytes)))
    eventually(lambda: others.pod_state(site) == "StartedBefore", "a word on the pod that was there")
    others.restart(site, "Deployment")
    pod = others.ready_pod(site, but=before["metadata"]["uid"])
    eventually(lambda: others.pod_state(site) == "Attached", "a word on the pod that was made anew")
    console.print(site.kubectl("get", "kvct", "--namespace", others.NAMESPACE), markup=False)
    texts = demo_documents(corpus(), model_folder(DEMO_MODEL, console.print), tokens)
    answers = []
    with OpenAIClient(others.url_of(pod)) as client:
        for document in (0, 1, 0):  # the second takes the first one's place on the device
            asked = Query.completion(DEMO_MODEL.name, texts[document] + QUESTION, _OUTPUT_TOKENS)
            answers.append(client.ask(asked))
    cold, _, warm = answers
    return {
        "cold_ttft_s": cold.ttft_s,
        "warm_ttft_s": warm.ttft_s,
        "speedup": cold.ttft_s / warm.ttft_s,
        "outputs_equal": cold.text == warm.text,
    }


def _device_bytes(tokens: int) -> int:
    """Cache of a device that holds one prompt and not two."""
    shape = DEMO_MODEL.shape
    return 2 * shape.layers * shape.kv_heads * shape.head_dim * 4 * (tokens + 1000)


def _url(site: Site) -> str:
    service = site.kubectl.json("get", "service", "demo-engine")["spec"]
    return f"http://{service['clusterIP']}:{service['ports'][0]['port']}"


def _replace_engines(site: Site, capacity_bytes: int, console: Console) -> Streams:
    """Changes the tier's capacity with streams under way."""
    console.print(f"kubectl scale kvct demo --replicas={_ENGINES}")
    site.kubectl("scale", "kvct", "demo", f"--replicas={_ENGINES}")
    settle(site.kubectl, "demo", _ENGINES)
    with streaming(_url(site), DEMO_MODEL.name, clients=_CLIENTS, tokens=_STREAM_TOKENS) as streams:
        console.print(
            f"{streams.under_way} streams are under way; halving tiers.cpu.capacity replaces both engines"
        )
        change = {"spec": {"tiers": {"cpu": {"capacity": capacity_bytes // 2}}}}
        site.kubectl("patch", "kvct", "demo", "--type=merge", f"--patch={json.dumps(change)}")
        settle(site.kubectl, "demo", _ENGINES)
    for trouble in streams.troubles:
        console.print(trouble, markup=False)
    return streams


def _of(samples: list[Sample], kind: Kind) -> Samples:
    return Samples.of([sample.answer.ttft_s for sample in samples if sample.kind is kind])


def _report(samples: list[Sample], ready_s: float) -> dict[str, Any]:
    cold = {sample.document: sample.answer.text for sample in samples if sample.kind is Kind.COLD}
    medians = {kind: _of(samples, kind).median_s for kind in _MEANING}
    return {
        "prompt_tokens": min(sample.served.prompt_tokens for sample in samples),
        "apply_to_ready_s": ready_s,
        "cold_ttft_s": medians[Kind.COLD],
        "warm_ttft_s": medians[Kind.WARM],
        "device_hit_ttft_s": medians[Kind.DEVICE_HIT],
        "speedup": medians[Kind.COLD] / medians[Kind.WARM],
        "outputs_equal": all(sample.answer.text == cold[sample.document] for sample in samples),
    }


def _table(samples: list[Sample]) -> Table:
    table = Table(title="Time to the first token, through the Service")
    for heading in ("query", "where the prefix came from", "median", "samples"):
        table.add_column(
            heading, justify="left" if heading in {"query", "where the prefix came from"} else "right"
        )
    for kind, meaning in _MEANING.items():
        times = [sample.answer.ttft_s for sample in samples if sample.kind is kind]
        table.add_row(str(kind), meaning, f"{Samples.of(times).median_s:.3f} s", str(len(times)))
    return table


if __name__ == "__main__":
    main()
