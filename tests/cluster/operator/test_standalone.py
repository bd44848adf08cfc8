"""A gateway of kvtier's own, on a cluster that knows neither Gateway API nor InferencePools."""

from tests.cluster.operator.world import World, resource

STANDALONE = {"provider": "standalone"}


def test_a_resource_is_ready_and_says_where_to_ask(world: World) -> None:
    world.create(resource(router={"gateway": STANDALONE}))
    world.until_object("apps/v1", "Deployment", "qwen-gateway", lambda live: live)
    world.make_ready()
    said = world.until_condition("RouterReady", status="True")
    assert said["message"] == "1 of 1 picker pods ready; 1 of 1 gateway pods ready"
    world.until_condition("Ready", status="True")
    assert world.get()["status"]["router"]["url"] == f"http://qwen-gateway.{world.namespace}.svc/v1"
    # what runs beside a rejected spec needs no CRD either
    world.change(engine={"tensorParallelSize": 3})
    world.until_condition("Accepted", status="False")
    world.until_condition("RouterReady", status="True")


def test_without_its_gateway_nothing_comes_in(world: World) -> None:
    gateway = {**STANDALONE, "standalone": {"tlsSecretName": "tls"}}
    world.create(resource(router={"gateway": gateway}))
    world.until_object("apps/v1", "Deployment", "qwen-gateway", lambda live: live)
    world.make_ready()
    world.until_condition("RouterReady", status="True")
    world.deployment_says("qwen-gateway", replicas=1, updatedReplicas=1, readyReplicas=0, availableReplicas=0)
    waiting = {"reason": "CreateContainerConfigError", "message": 'secret "tls" not found'}
    container = {
        "name": "gateway",
        "image": "x",
        "imageID": "",
        "ready": False,
        "restartCount": 0,
        "state": {"waiting": waiting},
    }
    # a cluster without controllers has none, and admission asks for it
    world.core.create_namespaced_service_account(world.namespace, {"metadata": {"name": "default"}})
    # the pod is one that Pod Security's restricted admits, too
    world.add_pod(
        "qwen-gateway-a", {"containerStatuses": [container], "phase": "Pending"}, component="gateway"
    )
    said = world.until_condition("RouterReady", reason="CreateContainerConfigError")["message"]
    assert 'container gateway: secret "tls" not found; make the Secret or ConfigMap' in said
    world.change(router={"gateway": None})
    world.until_object("apps/v1", "Deployment", "qwen-gateway", lambda live: live is None)
    world.until_condition("RouterReady", reason="CRDsMissing")
