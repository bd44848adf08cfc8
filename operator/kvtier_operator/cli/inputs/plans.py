"""The plans of resources in files, for commands that say what follows from an accepted one."""

import sys
from collections.abc import Sequence

from kvtier_common.terminal.say import complain
from kvtier_operator.cli.inputs.load import load
from kvtier_operator.cli.inputs.naming import naming
from kvtier_operator.cli.inputs.observe import observe
from kvtier_operator.cli.main import EXIT_REJECTED
from kvtier_operator.cli.text.verdicts import refusals
from kvtier_operator.planning.images import ImageSource
from kvtier_operator.planning.plan import Plan
from kvtier_operator.planning.planner import make_plan


def accepted_plans(
    paths: Sequence[str], *, model_config: str | None, hub: bool, images: ImageSource
) -> list[tuple[str, Plan]]:
    """The Plan of each resource, with its file; ends the command where a check refuses one, and says why.

    Args:
        paths: Files, folders or `-`, as `load` takes them.
        model_config: As `observe` takes it.
        hub: As `observe` takes it.
        images: Where images come from.

    Raises:
        InvalidInputError: A file cannot be read, or has no valid resource.
    """
    loaded, plans = load(paths), []
    for source, resource in loaded.resources:
        with naming(source):
            observed = observe(
                resource, model_config=model_config, config_maps=loaded.config_maps, hub=hub, images=images
            )
            plans.append((source, make_plan(resource, observed)))
    if refused := [line for source, plan in plans for line in refusals(source, plan)]:
        complain("\n".join(refused))
        sys.exit(EXIT_REJECTED)
    return plans
