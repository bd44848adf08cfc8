"""A pod template with something of everything that one may have, for the engines' pods."""

from typing import Any, Final

SIDECAR: Final[dict[str, Any]] = {
    "name": "more",
    "image": "registry.example/more:1",
    "args": ["--verbose"],
    "ports": [{"containerPort": 9000}],
    "resources": {"requests": {"cpu": "1000m", "memory": "1024Mi"}},
    "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
    "volumeMounts": [
        {"name": "ca", "mountPath": "/ca", "readOnly": True},
        {"name": "ca", "mountPath": "/more", "readOnly": False},
    ],
}
TEMPLATE: Final[dict[str, Any]] = {
    "metadata": {"labels": {"team": "search"}, "annotations": {"example.com/scrape": "yes"}},
    "spec": {
        "affinity": {
            "podAntiAffinity": {
                "preferredDuringSchedulingIgnoredDuringExecution": [
                    {"weight": 1, "podAffinityTerm": {"topologyKey": "zone", "labelSelector": {}}}
                ]
            }
        },
        "containers": [
            SIDECAR,
            {"name": "engine", "startupProbe": {"periodSeconds": 7, "initialDelaySeconds": 0}},
        ],
        "dnsConfig": {"options": [{"name": "ndots", "value": "2"}]},
        "hostAliases": [{"ip": "10.0.0.1", "hostnames": ["models.example"]}],
        "initContainers": [SIDECAR | {"name": "before", "restartPolicy": "Always", "ports": []}],
        "priorityClassName": "high",
        "readinessGates": [{"conditionType": "example.com/ready"}],
        "runtimeClassName": "nvidia",
        "schedulerName": "volcano",
        "schedulingGates": [{"name": "example.com/queue"}],
        "securityContext": {
            "$patch": "replace",
            "runAsNonRoot": True,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "serviceAccountName": "reader",
        "tolerations": [{"operator": "Exists"}],
        "topologySpreadConstraints": [
            {"topologyKey": "zone", "maxSkew": 1, "whenUnsatisfiable": "ScheduleAnyway", "labelSelector": {}}
        ],
        "volumes": [{"name": "ca", "configMap": {"name": "ca"}}],
    },
}
