"""Whether the models that a gateway sends elsewhere are others' at all."""

from typing import Final

from kvtier_operator.planning.checks.check import CheckInput
from kvtier_operator.planning.verdict import CheckResult, Verdicts

_VERDICTS: Final = Verdicts("other-models", "spec.router.gateway.standalone.models")


def other_models(given: CheckInput) -> CheckResult:
    """Requests for the resource's own model or adapters would leave its engines idle."""
    standalone, model = given.spec.router.standalone, given.spec.model
    others = standalone.models if standalone else ()
    if not others:
        return _VERDICTS.passed("no other model is asked for here")
    own = {*model.names, *(each.name for each in model.lora_modules)}
    faults = []
    for index, each in enumerate(others):
        if each.name in own:
            fault = f"{each.name} is served here, by this resource; remove it"
            faults.append((f"{_VERDICTS.field}[{index}].name", fault))
        elif each.resource == given.resource.metadata.name:
            fault = f"{each.resource} is this resource, which serves all that it does not send on; remove it"
            faults.append((f"{_VERDICTS.field}[{index}].resource", fault))
    if faults:
        return _VERDICTS.reject_each("ModelServedHere", faults)
    return _VERDICTS.passed(f"{len(others)} of other resources go on to their gateways")
