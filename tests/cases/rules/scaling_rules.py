"""The rules of spec.autoscaling."""

from typing import Final

from tests.cases.rules.rule_case import RuleCase

_ASKED: Final = {"maxReplicas": 2, "prometheusUrl": "https://thanos.monitoring:9091"}
_TENANT: Final = {"name": "X-Scope-OrgID", "value": "team-a"}
SCALING_RULES: Final = (
    RuleCase(
        "minReplicas is more than maxReplicas: lower it, or raise maxReplicas",
        "spec.autoscaling.minReplicas",
        {"spec.autoscaling": {"minReplicas": 3, "maxReplicas": 3}},
        {"spec.autoscaling": {"minReplicas": 4, "maxReplicas": 3}},
    ),
    RuleCase(
        "kvCacheUtilization and hitRate are percentages: write 1 to 99",
        "spec.autoscaling.targetValue",
        {"spec.autoscaling": {"maxReplicas": 2, "target": "hitRate", "targetValue": 99}},
        {"spec.autoscaling": {"maxReplicas": 2, "target": "kvCacheUtilization", "targetValue": 100}},
    ),
    RuleCase(
        "kvCacheUtilization and hitRate are percentages: write 1 to 99",
        "spec.autoscaling.targetValue",
        {"spec.autoscaling": {"maxReplicas": 2, "target": "queue", "targetValue": 100}},
        {"spec.autoscaling": {"maxReplicas": 2, "target": "hitRate", "targetValue": 100}},
    ),
    RuleCase(
        "prometheus says how prometheusUrl is asked: set that too",
        "spec.autoscaling.prometheus",
        {"spec.autoscaling": {**_ASKED, "prometheus": {"namespace": "llm"}}},
        {"spec.autoscaling": {"maxReplicas": 2, "prometheus": {"namespace": "llm"}}},
    ),
    RuleCase(
        "authModes say how credentials are used: name the object that has them in authenticationRef",
        "spec.autoscaling.prometheus.authModes",
        {"spec.autoscaling": {**_ASKED, "prometheus": {"authenticationRef": {"name": "thanos"}}}},
        {"spec.autoscaling": {**_ASKED, "prometheus": {"authModes": ["bearer"]}}},
    ),
    *(
        RuleCase(
            "a header of that name is not passed on; give credentials by authenticationRef",
            "spec.autoscaling.prometheus.headers[0].name",
            {"spec.autoscaling": {**_ASKED, "prometheus": {"headers": [_TENANT]}}},
            {"spec.autoscaling": {**_ASKED, "prometheus": {"headers": [{**_TENANT, "name": name}]}}},
        )
        for name in ("Metadata-Flavor", "x-aws-ec2-metadata-token", "Authorization")
    ),
    *(
        RuleCase(
            "no Prometheus is at an address of KEDA's own machine, its link or a cloud's metadata; write "
            "that of its Service",
            "spec.autoscaling.prometheusUrl",
            {"spec.autoscaling": {"maxReplicas": 2, "prometheusUrl": accepted}},
            {"spec.autoscaling": {"maxReplicas": 2, "prometheusUrl": refused}},
        )
        for accepted, refused in (
            ("http://prometheus.monitoring.svc.cluster.local.:9090/x", "http://169.254.169.254"),
            ("http://10.96.0.7", "http://METADATA.Google.internal.:80/computeMetadata"),
            ("http://[fd00::1]:9090", "http://[::ffff:a9fe:a9fe]"),
            ("http://[2001:DB8::2001]", "http://[FE80::1]:9090"),
            ("https://metadata.example/x", "http://[0:0::1]"),
            ("http://127.example:1/", "https://x.localhost:9090"),
            ("http://localhost.example", "http://127.0.0.1/"),
            ("http://a_b", "http://[64:ff9b::a9fe:a9fe]"),
            ("http://223.255.255.255", "http://[2002:a9fe:a9fe::]"),
            ("http://[fd00:ec2::2540]", "http://[fd00:0ec2:0::0254]:80"),
        )
    ),
    RuleCase(
        "with autoscaling the number of engine pods is the autoscaler's: remove replicas, or autoscaling",
        "spec.replicas",
        {"spec.replicas": 1, "spec.autoscaling": {"maxReplicas": 8}},
        {"spec.replicas": 2, "spec.autoscaling": {"maxReplicas": 8}},
    ),
    RuleCase(
        "with autoscaling the number of engine pods is the autoscaler's: remove replicas, or autoscaling",
        "spec.replicas",
        {"spec.replicas": 2},
        {"spec.replicas": 0, "spec.autoscaling": {"maxReplicas": 8}},
    ),
)
