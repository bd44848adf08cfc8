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
