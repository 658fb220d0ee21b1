"""The Helm chart: Kubernetes accepts its output, and invalid values are refused by its schema."""

from __future__ import annotations

import re
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from engines.helm import CHART, KINDS, KUBERNETES, helm, kubeconform
from engines.weaviate import cluster
from sources import ROOT

from storage.index.weaviate.process import WEAVIATE_VERSION
from storage.index.weaviate.status import read_status

pytestmark = [pytest.mark.long, pytest.mark.engine("helm")]

SETS = sorted((CHART / "ci").glob("*-values.yaml"))
MANY_PODS = CHART / "ci" / "many-pods-values.yaml"
EVERYTHING = CHART / "ci" / "everything-values.yaml"
SETTINGS = set(re.findall(r"(?m)^#([A-Za-z_]+)=", (ROOT / "deploy" / "env.example").read_text("utf-8")))
Json = dict[str, Any]


def rendered(values: Path | None, *options: str) -> str:
    """Return helm's output for the chart with these values."""
    chosen = ["--values", str(values)] if values else []
    done = template(*chosen, *options)
    assert done.returncode == 0, done.stderr
    return done.stdout


def template(*options: str) -> subprocess.CompletedProcess[str]:
    """Render the chart for the Kubernetes version whose schemas we have."""
    return helm("template", "answers", str(CHART), f"--kube-version={KUBERNETES.version}", *options)


def objects(text: str) -> list[Json]:
    """Return the rendered objects."""
    return [one for one in yaml.safe_load_all(text) if one]


def of_kind(text: str, kind: str) -> list[Json]:
    """Return the objects of one kind."""
    return [one for one in objects(text) if one["kind"] == kind]


def pod_of(workload: Json) -> Json:
    """Return the pod spec of a Deployment, StatefulSet or CronJob."""
    spec = workload["spec"].get("jobTemplate", workload)["spec"]
    pod: Json = spec["template"]["spec"]
    return pod


def pods(text: str) -> dict[str, Json]:
    """Return the pod spec of each component of Footnote."""
    return {
        one["metadata"]["labels"]["app.kubernetes.io/component"]: pod_of(one)
        for one in of_kind(text, "Deployment")
    }


def environment(pod: Json) -> Json:
    """Return a container's variables by value, or by reference for secrets."""
    (container,) = pod["containers"]
    return {one["name"]: one.get("value", one.get("valueFrom")) for one in container["env"]}


@pytest.mark.parametrize("values", SETS, ids=lambda one: one.stem)
def test_helm_lint_passes(values: Path) -> None:
    """Shows that chart and schema are valid with every set of values."""
    done = helm("lint", str(CHART), "--strict", f"--values={values}")
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("values", [None, *SETS], ids=lambda one: one.stem if one else "defaults")
def test_kubernetes_accepts_the_rendered_objects(values: Path | None) -> None:
    """Shows that all fields are known, all pods restricted, and all settings valid."""
    text = rendered(values)
    judged = kubeconform(text)
    assert judged.returncode == 0, judged.stdout + judged.stderr
    assert "Skipped: 0" in judged.stdout
    kinds = ("Deployment", "StatefulSet", "CronJob")
    for pod in map(pod_of, (one for kind in kinds for one in of_kind(text, kind))):
        (container,) = pod["containers"]
        assert container["securityContext"] == {
            "readOnlyRootFilesystem": True,
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
        }
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["enableServiceLinks"] is False, "FOOTNOTE_PORT of a service would be refused as a setting"
    for pod in pods(text).values():
        assert set(environment(pod)) <= SETTINGS
    found = {one["kind"] for one in objects(text)}
    assert {"Deployment", "Service", "NetworkPolicy"} <= found


def test_the_schemas_refuse_an_unknown_field() -> None:
    """Shows that the check above can fail, for our objects and for the ServiceMonitor."""
    for values, field in ((None, "readinessProbe:"), (SETS[0], "endpoints:")):
        text = rendered(values)
        assert field in text
        assert kubeconform(text.replace(field, f"not{field}")).returncode == 1


def test_all_kinds_are_rendered_by_some_values() -> None:
    """Shows that the check covers every template."""
    found = {(one["apiVersion"], one["kind"]) for values in SETS for one in objects(rendered(values))}
    assert found == {*KINDS, ("monitoring.coreos.com/v1", "ServiceMonitor")}


def test_many_pods_share_stores_and_workers_get_no_tokens() -> None:
    """Shows the multi-pod example: roles, disruption budgets, rolling updates, one index, one store."""
    text = rendered(MANY_PODS)
    made = objects(text)
    bot, worker = pods(text)["bot"], pods(text)["worker"]
    assert environment(bot)["WEAVIATE_URL"] == "http://answers-footnote-weaviate:8080"
    assert environment(bot)["FOOTNOTE_WEAVIATE_REPLICAS"] == "3"
    assert [environment(pod)["FOOTNOTE_ROLE"] for pod in (bot, worker)] == ["bot", "worker"]
    assert environment(worker)["FOOTNOTE_BLOBS"] == "s3://footnote/prod"
    secret = {"secretKeyRef": {"name": "footnote-db-app", "key": "uri"}}
    assert environment(bot)["DATABASE_URL"] == environment(worker)["DATABASE_URL"] == secret
    names = {
        kind: [one["secretRef"]["name"] for one in pod["containers"][0]["envFrom"]]
        for kind, pod in (("bot", bot), ("worker", worker))
    }
    assert names == {"bot": ["footnote", "footnote-chats"], "worker": ["footnote"]}
    deployments = [one["spec"] for one in made if one["kind"] == "Deployment"]
    assert [one["replicas"] for one in deployments] == [3, 3]
    assert {one["strategy"]["type"] for one in deployments} == {"RollingUpdate"}
    assert "PersistentVolumeClaim" not in {one["kind"] for one in made}
    assert sum(one["kind"] == "PodDisruptionBudget" for one in made) == 3
    assert "registry.example.com/footnote@sha256:" in text


def test_a_cron_job_backs_up_what_all_pods_share() -> None:
    """Shows its command, stores and account; it is no bot, answers no probe and runs once at a time."""
    text = rendered(MANY_PODS)
    (job,) = of_kind(text, "CronJob")
    (container,) = pod_of(job)["containers"]
    bot = environment(pods(text)["bot"])
    assert container["args"] == ["backup", "s3://footnote-backup/prod"]
    assert environment(pod_of(job)) == {name: bot[name] for name in bot if name != "FOOTNOTE_ROLE"}
    assert [one["secretRef"]["name"] for one in container["envFrom"]] == ["footnote"]
    assert not {"ports", "startupProbe", "livenessProbe", "readinessProbe"} & container.keys()
    assert (job["spec"]["concurrencyPolicy"], pod_of(job)["restartPolicy"]) == ("Forbid", "Never")


@pytest.mark.engine("weaviate")
async def test_the_weaviate_nodes_form_one_cluster(tmp_path: Path) -> None:
    """Three real servers with the chart's variables except addresses, ports, folders, keys and timeouts."""
    text = rendered(MANY_PODS)
    (nodes,) = of_kind(text, "StatefulSet")
    (container,) = pod_of(nodes)["containers"]
    variables = environment(pod_of(nodes))
    assert container["image"].endswith(f":{WEAVIATE_VERSION}")
    names = [f"{nodes['metadata']['name']}-{number}" for number in range(nodes["spec"]["replicas"])]
    assert variables.pop("RAFT_JOIN").split(",") == names
    assert variables.pop("RAFT_BOOTSTRAP_EXPECT") == str(len(names))
    assert variables.pop("CLUSTER_JOIN") == f"{nodes['spec']['serviceName']}:7946"
    folder = variables.pop("PERSISTENCE_DATA_PATH")
    (claim,) = nodes["spec"]["volumeClaimTemplates"]
    assert {"name": claim["metadata"]["name"], "mountPath": folder} in container["volumeMounts"]
    key = {"secretKeyRef": {"name": "footnote", "key": "WEAVIATE_API_KEY"}}
    for name in ("AUTHENTICATION_APIKEY_ALLOWED_KEYS", "CLUSTER_BASIC_AUTH_PASSWORD"):
        assert variables.pop(name) == key
    for name, field in (("CLUSTER_HOSTNAME", "metadata.name"), ("CLUSTER_BIND_ADDR", "status.podIP")):
        assert variables.pop(name) == {"fieldRef": {"fieldPath": field}}
    assert variables == {
        "AUTHENTICATION_ANONYMOUS_ACCESS_ENABLED": "false",
        "AUTHENTICATION_APIKEY_ENABLED": "true",
        "AUTHENTICATION_APIKEY_USERS": "footnote",
        "AUTOSCHEMA_ENABLED": "false",
        "CLUSTER_BASIC_AUTH_USERNAME": "footnote",
        "DEFAULT_VECTORIZER_MODULE": "none",
        "DISABLE_TELEMETRY": "true",
        "GO_PROFILING_DISABLE": "true",
        "LIMIT_RESOURCES": "true",
    }, "our own child has most of these anyway; CLUSTER_ADVERTISE_ADDR would lengthen timeouts"
    copies = int(environment(pods(text)["bot"])["FOOTNOTE_WEAVIATE_REPLICAS"])
    async with cluster(tmp_path, names, variables) as servers:
        first = servers[0]
        index = await first.connect(replicas=copies)
        await index.aclose()
        status = await read_status(first.url, first.api_key, first.grpc_port, 10)
    assert (status.nodes.keys(), status.replicas, copies) == (set(names), 3, 3)


def test_only_footnote_and_the_nodes_reach_the_nodes() -> None:
    """Shows their network access for any egress ports, and that one node may be down."""
    text = rendered(MANY_PODS, "--set", "networkPolicy.egressPorts={443,5432},weaviate.grpcPort=8080")
    (nodes,) = of_kind(text, "StatefulSet")
    name, selector = nodes["metadata"]["name"], nodes["spec"]["selector"]
    labels = nodes["spec"]["template"]["metadata"]["labels"]
    services = {one["metadata"]["name"]: one["spec"] for one in of_kind(text, "Service")}
    policies = {one["metadata"]["name"]: one["spec"] for one in of_kind(text, "NetworkPolicy")}
    (budget,) = [
        one["spec"] for one in of_kind(text, "PodDisruptionBudget") if one["metadata"]["name"] == name
    ]
    assert labels == {**selector["matchLabels"], "app.kubernetes.io/part-of": "footnote"}, "no versions"
    assert services[nodes["spec"]["serviceName"]] == {
        "clusterIP": "None",
        "publishNotReadyAddresses": True,
        "selector": selector["matchLabels"],
        "ports": [{"name": "gossip", "port": 7946, "targetPort": "gossip-tcp"}],
    }
    assert services[name]["selector"] == selector["matchLabels"]
    assert {one["name"]: one["port"] for one in services[name]["ports"]} == {"http": 8080, "grpc": 50051}
    assert environment(pods(text)["bot"])["FOOTNOTE_WEAVIATE_GRPC_PORT"] == "50051"
    assert budget == {"maxUnavailable": 1, "selector": selector}
    footnote, weaviate = policies["answers-footnote"], policies[name]
    from_footnote, from_nodes = weaviate["ingress"]
    nodes_only = [{"podSelector": selector}]
    assert weaviate["podSelector"] == selector
    assert from_footnote["from"] == [{"podSelector": footnote["podSelector"]}]
    assert [one["port"] for one in from_footnote["ports"]] == ["http", "grpc"]
    assert from_nodes == {"from": nodes_only}
    assert weaviate["egress"][1:] == [{"to": nodes_only}]
    assert {"ports": [{"port": 8080}, {"port": 50051}], "to": nodes_only} in footnote["egress"]


def test_two_nodes_are_never_on_one_machine() -> None:
    """Shows that losing a machine leaves a majority; Footnote's pods may share a machine."""
    text = rendered(MANY_PODS, "--set", "weaviate.replicas=5")
    (nodes,) = of_kind(text, "StatefulSet")
    assert pod_of(nodes)["topologySpreadConstraints"] == [
        {
            "maxSkew": 1,
            "minDomains": 5,
            "topologyKey": "kubernetes.io/hostname",
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": nodes["spec"]["selector"],
        }
    ]
    for pod in pods(text).values():
        assert pod["topologySpreadConstraints"][0]["whenUnsatisfiable"] == "ScheduleAnyway"


def test_all_pods_respect_registry_and_placement_values() -> None:
    """Shows that Weaviate's pods use the same registry and node placement as Footnote's."""
    text = rendered(
        MANY_PODS,
        *("--set", "image.pullPolicy=Always,nodeSelector.disk=ssd,podAnnotations.team=search"),
        *("--set-json", 'tolerations=[{"operator":"Exists"}]'),
        *("--set-json", 'affinity={"nodeAffinity":{}}'),
    )
    made = of_kind(text, "Deployment") + of_kind(text, "StatefulSet")
    for pod in map(pod_of, made):
        (container,) = pod["containers"]
        assert pod["imagePullSecrets"] == [{"name": "registry"}]
        assert container["imagePullPolicy"] == "Always"
        assert (pod["nodeSelector"], pod["tolerations"]) == ({"disk": "ssd"}, [{"operator": "Exists"}])
        assert pod["affinity"] == {"nodeAffinity": {}}
    annotations = [one["spec"]["template"]["metadata"]["annotations"] for one in made]
    assert [one["team"] for one in annotations] == ["search"] * 3


@pytest.mark.parametrize(
    ("values", "most", "by"),
    [(MANY_PODS, 43, "weaviate.replicas"), (EVERYTHING, 55, "metrics.enabled")],
    ids=["nodes", "metrics"],
)
def test_a_release_name_that_is_too_long_is_refused(values: Path, most: int, by: str) -> None:
    """Shows that the longest accepted name yields valid names and labels."""
    options = [str(CHART), "--values", str(values), f"--kube-version={KUBERNETES.version}"]
    release = "x" * (most - len("-footnote"))
    taken, refused = (helm("template", name, *options) for name in (release, f"{release}x"))
    assert taken.returncode == 0, taken.stderr
    assert max(len(one["metadata"]["name"]) for one in of_kind(taken.stdout, "Service")) <= 63
    for nodes in of_kind(taken.stdout, "StatefulSet"):
        assert len(f"{nodes['metadata']['name']}-7d9c8b6f54") <= 63, "of the label controller-revision-hash"
    assert refused.returncode == 1
    assert f"has {most + 1} characters, {most} at most with {by}" in refused.stderr


def test_values_reach_the_program_unchanged() -> None:
    """Shows that numbers stay numbers, false stays false, and admin files are mounted."""
    text = rendered(EVERYTHING)
    assert environment(pods(text)["bot"]) | {"DATABASE_URL": ""} == {
        "DATABASE_URL": "",
        "FOOTNOTE_CONFINEMENT": "preferred",
        "FOOTNOTE_LAYOUT": "false",
        "FOOTNOTE_METRICS_LISTEN": "0.0.0.0:9464",
        "FOOTNOTE_PUBLIC_URL": "https://footnote.example.com",
        "FOOTNOTE_UPLOAD_MB": "1000000",
        "FOOTNOTE_WEAVIATE_GRPC_PORT": "50051",
        "WEAVIATE_URL": "http://weaviate.search:8080",
    }
    (secret,) = of_kind(text, "Secret")
    files = secret["stringData"]
    mounted = next(one for one in pods(text)["bot"]["volumes"] if one["name"] == "files")
    assert mounted["secret"]["secretName"] == secret["metadata"]["name"] == "answers-footnote-files"
    assert tomllib.loads(files["folders.toml"])["folder"][0]["channel"] == "handbook"


def exceptions(text: str, port: int) -> dict[str, list[set[str]]]:
    """Return, by network, the exceptions of each egress rule that opens this port."""
    (policy,) = [
        one["spec"] for one in of_kind(text, "NetworkPolicy") if one["metadata"]["name"] == "answers-footnote"
    ]
    found: dict[str, list[set[str]]] = {}
    for rule in policy["egress"]:
        assert rule["ports"], "no ports would be all ports"
        for peer in rule.get("to", []):
            if {"port": port} in rule["ports"] and "ipBlock" in peer:
                block = peer["ipBlock"]
                found.setdefault(block["cidr"], []).append(set(block.get("except", [])))
    return found


PRIVATE = {"10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10"}
METADATA, METADATA_6 = "169.254.0.0/16", {"fd00:ec2::254/128", "fe80::/10"}


def test_no_pod_reaches_the_clusters_api() -> None:
    """Shows that its ports reach no private network and no system pod, and which values change that."""
    text = rendered(None)
    assert exceptions(text, 443) == {"0.0.0.0/0": [PRIVATE | {METADATA}], "::/0": [{"fc00::/7"} | METADATA_6]}
    assert exceptions(text, 5432) == {"0.0.0.0/0": [{METADATA}], "::/0": [METADATA_6]}
    assert exceptions(rendered(None, "--set", "networkPolicy.egressPorts={443}"), 5432) == {}
    named = exceptions(rendered(EVERYTHING), 443)
    assert named["10.20.0.0/16"] == named["fd12::/48"] == [set()]
    assert named["0.0.0.0/0"] == [PRIVATE | {METADATA, "34.118.224.0/20"}]
    assert named["::/0"] == [{"fc00::/7", "2001:db8::/32"} | METADATA_6]
    (policy,) = of_kind(text, "NetworkPolicy")
    (pods_rule,) = [one for one in policy["spec"]["egress"] if "namespaceSelector" in str(one)]
    assert "'operator': 'NotIn', 'values': ['kube-system']" in str(pods_rule["to"])


def ingress_paths(*options: str) -> dict[str, str]:
    """Return the path types of the chart's ingress, by path."""
    (ingress,) = of_kind(rendered(MANY_PODS, *options), "Ingress")
    (rule,) = ingress["spec"]["rules"]
    assert rule["host"] == "footnote.example.com"
    return {one["path"]: one["pathType"] for one in rule["http"]["paths"]}


def test_the_ingress_forwards_the_documented_paths() -> None:
    """Shows that the paths are those of docs/proxy.md; the console is included only with sign-in."""
    table = (ROOT / "docs" / "proxy.md").read_text("utf-8")
    documented = {
        path for row in re.findall(r"(?m)^\| (`/.*?) \|", table) for path in re.findall(r"`(.+?)`", row)
    }
    signed_in = ingress_paths("--set", "env.FOOTNOTE_OIDC_ISSUER=https://login.example.com")
    assert signed_in.keys() == documented
    assert (signed_in["/"], signed_in["/console/"]) == ("Exact", "Prefix")
    assert ingress_paths().keys() == documented - {"/", "/console/"}


@pytest.mark.parametrize(
    "wrong",
    [
        "bot.replicas=0",
        "bot.replicas=2",
        "workers.replicas=1",
        "bots.replicas=2",
        "env.SLACK_BOT_TOKEN=xoxb-1",
        "env.DATABASE_URL=postgresql://a:b@c/d",
        "env.FOOTNOTE_PORT=80",
        "env.FOOTNOTE_ROLE=worker",
        "blobs.url=s3://footnote/prod",
        "backup.url=s3://footnote-backup/prod",
        "blobs.url=s3://footnote/prod,database.secret=db,weaviate.replicas=null,weaviate.url=null",
        "publicUrl=footnote.example.com",
        "image.digest=latest",
        "home.size=20",
        "home.accessMode=ReadOnlyMany",
        "weaviate.url=weaviate:8080",
        "weaviate.grpcPort=0",
        "weaviate.replicas=2",
        "weaviate.replicas=3",
        "weaviate.replicas=3,secret=null",
        "secret=footnote,weaviate.replicas=3,weaviate.url=http://weaviate:8080",
        "secret=footnote,weaviate.replicas=3,env.FOOTNOTE_WEAVIATE_REPLICAS=1",
        "secret=footnote,weaviate.replicas=3,bot.env.FOOTNOTE_WEAVIATE_REPLICAS=1",
        "secret=footnote,weaviate.replicas=3,workers.env.FOOTNOTE_WEAVIATE_REPLICAS=1",
        "metrics.port=8765",
        "metrics.serviceMonitor.enabled=true",
        "ingress.enabled=true",
        "ingress.enabled=true,publicUrl=null",
        "secret=My_Secret",
        "bot.resources.requests.memory=lots",
        "networkPolicy.egressPorts={}",
        "networkPolicy.privateCidrs={10.0.0.1}",
        "networkPolicy.deniedCidrs={0.0.0.0/0}",
    ],
)
def test_wrong_values_are_refused(wrong: str) -> None:
    """Shows that the schema refuses invalid values before they reach a cluster."""
    done = template("--set", wrong)
    assert done.returncode == 1
    assert "values don't meet the specifications of the schema" in done.stderr, done.stderr


@pytest.mark.parametrize("values", [None, EVERYTHING], ids=["defaults", "everything"])
def test_values_of_an_older_release_are_accepted(values: Path | None) -> None:
    """Shows that values missing in an older release, as with --reuse-values, count as off."""
    switches = "blobs.url", "ingress.enabled", "metrics.serviceMonitor.enabled", "workers.replicas"
    switches = *switches, "networkPolicy.privateCidrs", "networkPolicy.deniedCidrs", "backup"
    text = rendered(values, "--set", ",".join(f"{name}=null" for name in (*switches, "weaviate.replicas")))
    assert pods(text).keys() == {"bot"}
    assert not of_kind(text, "StatefulSet")


def test_the_chart_has_the_programs_version() -> None:
    """Shows that the chart's image has this release's version."""
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text("utf-8"))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert chart["appVersion"] == project["version"]
