"""docs/images/dashboard.svg: a KVCacheTier's dashboard, by its JSON model and a real Prometheus.

python -m tests.pictures.dashboard
"""

import json
import tempfile
import time
from pathlib import Path
from typing import Any, Final

import click
from tests.pictures.drawing.page import page
from tests.pictures.programs import program
from tests.pictures.prometheus import prometheus
from tests.pictures.served import serve

from kvtier_operator.cli.inputs.load import load_resources
from kvtier_operator.cli.inputs.observe import observe
from kvtier_operator.planning.base.names import Names
from kvtier_operator.planning.objects.monitoring.dashboard import dashboard
from kvtier_operator.planning.plan import Plan
from kvtier_operator.planning.planner import make_plan
from kvtier_operator.runtime.demo.prompts import ModelShape, cache_folder, corpus, random_model

_RESOURCE: Final = Path(__file__).with_name("kvcachetier.yaml")


@click.command()
@click.option("--minutes", default=4.0, show_default=True, help="How long to ask the engines.")
@click.option(
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    default=Path("docs/images/dashboard.svg"),
    show_default=True,
)
def main(*, minutes: float, output: Path) -> None:
    """Run two engines under load, scrape them, and draw what the dashboard's queries give."""
    program("prometheus")  # minutes pass before it is needed
    [(_, resource)] = load_resources([str(_RESOURCE)])
    weights = random_model(ModelShape(), corpus(), cache_folder(), click.echo)
    plan = make_plan(resource, observe(resource, model_config=str(weights / "config.json"), local=True))
    model = _model(plan)
    names = Names.of(plan)
    with (
        tempfile.TemporaryDirectory() as folder,
        serve(_RESOURCE, weights, names, Path(folder)) as engines,
        prometheus(engines.targets, names.namespace, Path(folder)) as scraped,
    ):
        begin_s = time.time()
        engines.ask(begin_s + 60 * minutes)
        end_s = time.time()
        lines = scraped.lines(model, begin_s, end_s)
    output.write_text(page(model, lines, end_s - begin_s), encoding="utf-8")
    click.echo(f"wrote {output}")


def _model(plan: Plan) -> dict[str, Any]:
    made = dashboard(plan)
    if made is None:
        raise click.ClickException(f"{_RESOURCE.name}: spec.observability.dashboard is not set")
    [text] = made["data"].values()
    found: dict[str, Any] = json.loads(text)
    return found


if __name__ == "__main__":
    main()
