"""The CEL rules about the way in: for each one something that it accepts and something that it refuses."""

from typing import Final

from tests.cases.rules.rule_case import RuleCase

GATEWAY_RULES: Final = (
    RuleCase(
        "every provider but standalone needs the Gateway's name here, and standalone has no Gateway",
        "spec.router.gateway.parentRef",
        {"spec.router.gateway": {"provider": "standalone"}},
        {"spec.router.gateway": {"provider": "standalone", "parentRef": {"name": "g"}}},
    ),
    RuleCase(
        "every provider but standalone needs the Gateway's name here, and standalone has no Gateway",
        "spec.router.gateway.parentRef",
        {"spec.router.gateway": {"parentRef": {"name": "g"}}},
        {"spec.router.gateway": {"provider": "istio"}},
    ),
    RuleCase(
        "standalone serves one resource, for every host and path; remove hostnames and ownPath",
        "spec.router.gateway.provider",
        {"spec.router.gateway": {"provider": "standalone", "hostnames": [], "ownPath": False}},
        {"spec.router.gateway": {"provider": "standalone", "hostnames": ["a.example"]}},
    ),
    RuleCase(
        "standalone serves one resource, for every host and path; remove hostnames and ownPath",
        "spec.router.gateway.provider",
        {"spec.router.gateway": {"parentRef": {"name": "g"}, "ownPath": True}},
        {"spec.router.gateway": {"provider": "standalone", "ownPath": True}},
    ),
    RuleCase(
        "these are settings of provider standalone; set that, or remove them",
        "spec.router.gateway.standalone",
        {"spec.router.gateway": {"provider": "standalone", "standalone": {"tlsSecretName": "tls"}}},
        {"spec.router.gateway": {"parentRef": {"name": "g"}, "standalone": {"replicas": 2}}},
    ),
    RuleCase(
        "a request is more than the limit of the same name: raise the limit or lower the request",
        "spec.router.gateway.standalone.resources.requests",
        {
            "spec.router.gateway": {
                "provider": "standalone",
                "standalone": {"resources": {"requests": {"cpu": 1}, "limits": {"cpu": "1000m"}}},
            }
        },
        {
            "spec.router.gateway": {
                "provider": "standalone",
                "standalone": {"resources": {"requests": {"cpu": 2}, "limits": {"cpu": "1500m"}}},
            }
        },
    ),
)
