"""Objects of a store that is made: who reaches it, and what its pod may do."""

import json

from tests.unit.operator.planning.objects.built import Object, identity, objects, one, plan_for

from kvtier_operator.planning.objects.store import store_secret

MANAGED: dict[str, object] = {"spec.tiers.remote": {"capacity": "4Gi", "managed": {}}}
OWN: dict[str, object] = {
    "spec.tiers.remote": {
        "capacity": "4Gi",
        "managed": {},
        "credentials": {"secretRef": {"name": "mine"}},
    }
}
SHARDED: dict[str, object] = {
    "spec.tiers.remote": {"capacity": "4Gi", "managed": {"shards": 3, "tls": {"secretName": "certificate"}}}
}


def pod(changes: dict[str, object]) -> Object:
    template: Object = one(objects(changes), "Deployment", "store")["spec"]["template"]["spec"]
    return template


def test_this_resource_s_engines_and_nobody_else_reach_its_port() -> None:
    built = objects(MANAGED)
    policy = one(built, "NetworkPolicy", "store")["spec"]
    [rule] = policy["ingress"]
    [peer] = rule["from"]
    labels = {
        component: one(built, "Deployment", component)["spec"]["template"]["metadata"]["labels"]
        for component in ("engine", "picker", "store")
    }
    assert policy["podSelector"]["matchLabels"].items() <= labels["store"].items()
    assert [*peer] == ["podSelector"], "of this namespace"
    admitted = peer["podSelector"]["matchLabels"].items()
    assert [name for name, of in labels.items() if admitted <= of.items()] == ["engine"]
    [port] = one(built, "Service", "store")["spec"]["ports"]
    [opened] = pod(MANAGED)["containers"][0]["ports"]
    assert port["port"] == opened["containerPort"] == rule["ports"][0]["port"]
    assert port["targetPort"] == opened["name"]


def test_a_mesh_in_front_of_its_port_is_let_through() -> None:
    router = {"spec.router.gateway": {"provider": "istio", "parentRef": {"name": "inference"}}}
    policy = one(objects(MANAGED | router), "NetworkPolicy", "store")["spec"]
    assert [port["port"] for port in policy["ingress"][0]["ports"]] == [6379, 15008]


def test_its_pod_may_do_nothing_but_listen() -> None:
    spec = pod(MANAGED)
    [container] = spec["containers"]
    assert spec["automountServiceAccountToken"] is False
    assert spec["securityContext"]["runAsNonRoot"] is True
    assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "readOnlyRootFilesystem": True,
    }
    assert container["resources"]["requests"]["memory"] == container["resources"]["limits"]["memory"]
    # none of them is on a disk, where values would be written and outlive the pod
    kinds = {key for volume in spec["volumes"] for key in volume} - {"name"}
    assert kinds == {"configMap", "secret", "emptyDir"}
    assert [volume["emptyDir"]["medium"] for volume in spec["volumes"] if "emptyDir" in volume] == ["Memory"]


def test_the_password_is_in_none_of_its_objects() -> None:
    """A plan comes out the same each time: what is random is the operator's to make, once."""
    assert "Secret" not in {document["kind"] for document in objects(MANAGED)}
    secret = store_secret(plan_for(MANAGED))
    assert secret is not None
    assert not secret.keys() & {"data", "stringData"}
    [volume] = [volume for volume in pod(MANAGED)["volumes"] if "secret" in volume]
    assert volume["secret"]["secretName"] == secret["metadata"]["name"]


def test_a_secret_of_one_s_own_is_mounted_and_none_is_made() -> None:
    assert store_secret(plan_for(OWN)) is None
    assert '"secretName": "mine"' in json.dumps(pod(OWN))


def test_without_a_store_there_is_none_of_it() -> None:
    assert "store" not in {identity(document)[1] for document in objects({})}


def test_its_pod_is_replaced_when_its_configuration_changes() -> None:
    larger: dict[str, object] = {"spec.tiers.remote": {"capacity": "5Gi", "managed": {"memory": "100Gi"}}}
    templates = [one(objects(each), "Deployment", "store")["spec"]["template"] for each in (MANAGED, larger)]
    before, after = (template["metadata"]["annotations"] for template in templates)
    assert before.keys() == after.keys()
    assert before != after


def test_each_shard_is_reached_by_its_own_name_and_drained_alone() -> None:
    built = objects(SHARDED)
    pods = [
        document["spec"]["template"]["metadata"]["labels"]
        for document in built
        if identity(document) == ("Deployment", "store")
    ]
    services = [document for document in built if identity(document) == ("Service", "store")]
    for service in services:
        chosen = service["spec"]["selector"].items()
        assert sum(chosen <= labels.items() for labels in pods) == 1
    hosts = ["{name}.{namespace}.svc:6379".format_map(service["metadata"]) for service in services]
    arguments = " ".join(
        one(built, "Deployment", "engine")["spec"]["template"]["spec"]["containers"][0]["args"]
    )
    assert f'"remote_url":"rediss://{",".join(hosts)}"' in arguments
    budget = one(built, "PodDisruptionBudget", "store")["spec"]
    assert budget["maxUnavailable"] == 1
    assert all(budget["selector"]["matchLabels"].items() <= labels.items() for labels in pods)
    assert len(pods) == len(services) == 3
    assert ("PodDisruptionBudget", "store") not in map(identity, objects(MANAGED)), "it could not be drained"


def test_the_key_of_its_certificate_is_in_its_own_pods_alone() -> None:
    built = objects(SHARDED)
    store, *_ = [document for document in built if identity(document) == ("Deployment", "store")]
    engine = one(built, "Deployment", "engine")
    keys = [
        {
            item["key"]
            for volume in document["spec"]["template"]["spec"]["volumes"]
            if volume.get("secret", {}).get("secretName") == "certificate"
            for item in volume["secret"]["items"]
        }
        for document in (store, engine)
    ]
    assert keys == [{"tls.crt", "tls.key"}, {"ca.crt"}]


def test_engines_reach_it_with_its_secret_and_start_without() -> None:
    built = objects(MANAGED)
    engine = one(built, "Deployment", "engine")["spec"]["template"]["spec"]
    service = one(built, "Service", "store")
    host = "{name}.{namespace}.svc".format_map(service["metadata"])
    url = f"redis://{host}:{service['spec']['ports'][0]['port']}"
    assert f'"remote_url":"{url}"' in " ".join(engine["containers"][0]["args"])
    [credentials] = [
        volume["secret"] for volume in engine["volumes"] if volume["name"] == "remote-credentials"
    ]
    secret = store_secret(plan_for(MANAGED))
    assert secret
    assert credentials == {"secretName": secret["metadata"]["name"], "optional": True}
