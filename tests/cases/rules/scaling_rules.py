"""The rules of spec.autoscaling."""

from typing import Final

from tests.cases.rules.rule_case import RuleCase

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
