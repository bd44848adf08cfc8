"""Whether the cluster's owner lets a resource add to its pods."""

from typing import Final

from kvtier_operator.planning.base.owner_policy import ALLOW
from kvtier_operator.planning.checks.check import CheckInput
from kvtier_operator.planning.pod_template.template import ENGINE, pod_templates
from kvtier_operator.planning.verdict import CheckResult, Verdicts

_VERDICTS: Final = Verdicts("allowed-templates", ENGINE)


def allowed_templates(given: CheckInput) -> CheckResult:
    """A template brings what no other limit looks at: service accounts, Secrets as volumes, sidecars."""
    templates = pod_templates(given.spec)
    if given.policy.pod_templates == ALLOW or not templates:
        return _VERDICTS.passed("no pod template is asked for that the cluster's owner denies")
    denied = "the cluster's owner lets no resource add to its pods: remove it"
    return _VERDICTS.reject_each("PodTemplateDenied", [(path, denied) for path in templates])
