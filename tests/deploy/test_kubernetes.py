"""The manifests of deploy/kubernetes, checked against the schemas of Kubernetes and against what they promise.

The package kubernetes-validate has no schema for KubeRay's RayService. Its own fields are checked against RAY_SERVICE
and its pods against the schema of Kubernetes.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator

from components.monitoring import PROBE_SECONDS

FOLDER = Path(__file__).parents[2] / "deploy" / "kubernetes"
OBJECTS = [each for file in sorted(FOLDER.glob("*.yaml")) for each in yaml.safe_load_all(file.read_text("utf-8"))]
IDS = [f"{each['kind']}-{each['metadata']['name']}" for each in OBJECTS]


def fields(required: str = "", **properties: Any) -> dict[str, Any]:
    """Return the schema of an object with exactly these fields."""
    return {"type": "object", "properties": properties, "required": required.split(), "additionalProperties": False}


# The fields in use, taken from the API reference of KubeRay's group ray.io/v1.
COUNT, ANY = {"type": "integer", "minimum": 0}, {"type": "object"}
START_PARAMS = {"type": "object", "additionalProperties": {"type": "string"}}
WORKERS = fields(
    "groupName minReplicas maxReplicas rayStartParams template",
    groupName={"type": "string", "maxLength": 63},
    replicas=COUNT,
    minReplicas=COUNT,
    maxReplicas=COUNT,
    rayStartParams=START_PARAMS,
    template=ANY,
)
RAY_SERVICE = fields(
    "apiVersion kind metadata spec",
    apiVersion={"const": "ray.io/v1"},
    kind={"const": "RayService"},
    metadata=ANY,
    spec=fields(
        "serveConfigV2 rayClusterConfig",
        serveConfigV2={"type": "string"},
        rayClusterConfig=fields(
            "headGroupSpec workerGroupSpecs",
            enableInTreeAutoscaling={"type": "boolean"},
            autoscalerOptions=fields(idleTimeoutSeconds=COUNT, resources=ANY, securityContext=ANY),
            headGroupSpec=fields("rayStartParams template", rayStartParams=START_PARAMS, template=ANY),
            workerGroupSpecs={"type": "array", "items": WORKERS},
        ),
    ),
)


def named(kind: str, name: str) -> dict[str, Any]:
    [found] = [each for each in OBJECTS if (each["kind"], each["metadata"]["name"]) == (kind, name)]
    return found


def templates() -> list[dict[str, Any]]:
    """Return the templates of all pods."""
    spec = named("RayService", "glassbox-models")["spec"]["rayClusterConfig"]
    return [
        named("Deployment", "glassbox-web")["spec"]["template"],
        *(group["template"] for group in (spec["headGroupSpec"], *spec["workerGroupSpecs"])),
    ]


@pytest.fixture
def validate() -> Callable[[dict[str, Any]], object]:
    """`validate(manifest)` raises an error unless a manifest follows the newest schema without any other fields."""
    if find_spec("kubernetes_validate") is None:
        missing = pytest.fail if os.environ.get("CI") else pytest.skip
        missing("kubernetes-validate is not installed")
    package = import_module("kubernetes_validate")
    return partial(package.validate, desired_version=package.latest_version(), strict=True)


@pytest.mark.kubernetes
@pytest.mark.parametrize("manifest", OBJECTS, ids=IDS)
def test_each_object_follows_its_schema(manifest, validate):
    if manifest["kind"] == "RayService":
        Draft202012Validator(RAY_SERVICE).validate(manifest)
    else:
        validate(manifest)


@pytest.mark.kubernetes
def test_the_pods_of_the_cluster_follow_the_schema_of_a_pod(validate):
    for template in templates():
        validate({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "pod"}, "spec": template["spec"]})


def test_no_container_is_root_or_writes_to_its_image():
    options = named("RayService", "glassbox-models")["spec"]["rayClusterConfig"]["autoscalerOptions"]
    containers = [options]
    for template in templates():
        pod = template["spec"]
        assert pod["securityContext"]["runAsNonRoot"]
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        containers += pod["containers"]
        volumes = {volume["name"]: volume["emptyDir"]["sizeLimit"] for volume in pod["volumes"]}
        for container in pod["containers"]:
            assert {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]} == {
                "tmp": "/tmp",
                "data": "/data",
            }
            assert {mount["name"] for mount in container["volumeMounts"]} <= volumes.keys()
    for container in containers:
        context = container["securityContext"]
        assert (context["readOnlyRootFilesystem"], context["allowPrivilegeEscalation"]) == (True, False)
        assert context["capabilities"] == {"drop": ["ALL"]}
        assert "memory" in container["resources"]["limits"]
        assert {"cpu", "memory"} <= container["resources"]["requests"].keys()


def test_probes_ask_for_the_health_and_wait_as_long_as_its_answer_may_take():
    [container] = named("Deployment", "glassbox-web")["spec"]["template"]["spec"]["containers"]
    for name in ("startupProbe", "readinessProbe", "livenessProbe"):
        assert container[name]["httpGet"] == {"path": "/healthz", "port": "http"}
        assert container[name]["timeoutSeconds"] > PROBE_SECONDS


def test_names_of_one_object_in_another_are_right():
    deployment, service = named("Deployment", "glassbox-web"), named("Service", "glassbox-web")
    labels = deployment["spec"]["template"]["metadata"]["labels"]
    [container] = deployment["spec"]["template"]["spec"]["containers"]
    ports = {port["name"] for port in container["ports"]}
    assert service["spec"]["selector"] == deployment["spec"]["selector"]["matchLabels"] == labels
    assert {port["targetPort"] for port in service["spec"]["ports"]} <= ports
    for kind in ("NetworkPolicy", "PodDisruptionBudget"):
        spec = named(kind, "glassbox-web")["spec"]
        assert spec.get("podSelector", spec.get("selector")) == {"matchLabels": labels}
    for ingress in (each for each in OBJECTS if each["kind"] == "Ingress"):
        [path] = ingress["spec"]["rules"][0]["http"]["paths"]
        assert path["backend"]["service"] == {"name": "glassbox-web", "port": {"name": "http"}}
        assert "http" in {port["name"] for port in service["spec"]["ports"]}

    service = named("RayService", "glassbox-models")
    groups = service["spec"]["rayClusterConfig"]
    [head] = groups["headGroupSpec"]["template"]["spec"]["containers"]
    port = next(port["containerPort"] for port in head["ports"] if port["name"] == "serve")
    url = f"http://{service['metadata']['name']}-serve-svc:{port}"  # the operator's name for the service
    assert container["args"][-2:] == ["--cluster", url]
    [application] = yaml.safe_load(service["spec"]["serveConfigV2"])["applications"]
    file, name = application["import_path"].replace(".", "/").split(":")
    assert f"\ndef {name}(" in (FOLDER.parents[1] / f"{file}.py").read_text("utf-8")
    policy = named("NetworkPolicy", "glassbox-models")["spec"]
    for group in (groups["headGroupSpec"], *groups["workerGroupSpecs"]):
        assert policy["podSelector"] == {"matchLabels": group["template"]["metadata"]["labels"]}
    assert {"podSelector": {"matchLabels": labels}} in policy["ingress"][0]["from"]


def test_visitors_stay_with_their_process_and_streams_are_not_buffered():
    annotations = named("Ingress", "glassbox")["metadata"]["annotations"]
    nginx = {name.rpartition("/")[2]: value for name, value in annotations.items()}
    assert (nginx["affinity"], nginx["proxy-buffering"]) == ("cookie", "off")
    assert int(nginx["proxy-read-timeout"]) >= 60
    traefik = named("Service", "glassbox-web")["metadata"]["annotations"]
    assert traefik["traefik.ingress.kubernetes.io/service.sticky.cookie"] == "true"
