"""The laws of a run on Trainer, for every family; each test names what a breach would cause."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from gangplan.model.exits import FINAL_CODES
from gangplan.objects import Body
from tests import plain, workspaces

LICENCE = "mpi: {licenseAcknowledged: true}"
FAMILIES = {
    "openmpi": "",
    "openmpi4": "",
    "mpich": "",
    "intel": LICENCE,
    "horovod": "",
    "deepspeed": "",
    "pytorch": "",
}
MPI = [image for image in FAMILIES if image != "pytorch"]


def objects(root: Path, image: str, more: str = "", versions: str = "", team: str = "") -> list[Body]:
    """Return the objects of a run."""
    spec = workspaces.SPEC.replace("image: openmpi", f"image: {image}") + f"{FAMILIES[image]}\n{more}\n"
    cluster = workspaces.CLUSTER
    if versions:
        cluster = cluster.replace('kubernetes: "1.34.4", trainer: "2.3.0", kueue: "0.19.2"', versions)
    workspaces.write(root, {"specs/nlp/filings.yaml": spec, "overlays/lab/cluster.yaml": cluster})
    workspaces.write(root, {"specs/nlp/team.yaml": workspaces.TEAM + team})
    text = workspaces.render(root, "-o", "-", "specs/nlp/filings.yaml").out
    return [body for body in plain.load_all(text) if body]


def of_kind(bodies: list[Body], kind: str) -> list[Body]:
    """Return the objects of a kind."""
    return [body for body in bodies if body["kind"] == kind]


def runtime(bodies: list[Body]) -> dict[str, Any]:
    """Return the spec of the runtime."""
    (body,) = of_kind(bodies, "TrainingRuntime")
    spec: dict[str, Any] = body["spec"]
    return spec


def roles(bodies: list[Body]) -> dict[str, dict[str, Any]]:
    """Return the pod template of each role, in order."""
    jobs = runtime(bodies)["template"]["spec"]["replicatedJobs"]
    return {job["name"]: job["template"]["spec"]["template"] for job in jobs}


def env_of(pod: dict[str, Any]) -> dict[str, Any]:
    """Return the variables of a pod's container."""
    return {
        one["name"]: one.get("value", one.get("valueFrom"))
        for one in pod["spec"]["containers"][0].get("env", ())
    }


@pytest.mark.parametrize("image", FAMILIES)
def test_the_runtime_and_the_job_share_a_name(image: str, root: Path) -> None:
    bodies = objects(root, image)
    (job,), (body,) = of_kind(bodies, "TrainJob"), of_kind(bodies, "TrainingRuntime")
    assert job["metadata"]["name"] == body["metadata"]["name"] == job["spec"]["runtimeRef"]["name"]
    assert bodies.index(body) < bodies.index(job), "the webhook refuses a job before its runtime"
    assert not {"suspend", "managedBy", "runtimePatches", "podTemplateOverrides"} & set(job["spec"])
    assert "generateName" not in job["metadata"]
    assert "image" not in job["spec"]["trainer"], "it would reach the launcher only"


@pytest.mark.parametrize("image", MPI)
def test_the_runtime_has_one_node_and_one_known_implementation(image: str, root: Path) -> None:
    policy = runtime(objects(root, image))["mlPolicy"]
    assert policy["numNodes"] == 1, "more would be more launchers"
    assert policy["mpi"]["mpiImplementation"] == "OpenMPI", "the only one that the reconciler knows"
    assert policy["mpi"]["runLauncherAsNode"] is False


@pytest.mark.parametrize("image", MPI)
def test_the_run_succeeds_with_its_launcher(image: str, root: Path) -> None:
    spec = runtime(objects(root, image))["template"]["spec"]
    assert spec["successPolicy"] == {"operator": "All", "targetReplicatedJobs": ["launcher"]}
    assert [job["name"] for job in spec["replicatedJobs"]] == ["node", "launcher"]
    assert spec["replicatedJobs"][1]["dependsOn"] == [{"name": "node", "status": "Ready"}]
    assert "podGroupPolicy" not in runtime(objects(root, image)), "with dependsOn it never starts"


@pytest.mark.parametrize("image", MPI)
def test_both_roles_run_the_same_image_as_the_same_user(image: str, root: Path) -> None:
    found = roles(objects(root, image))
    containers = [pod["spec"]["containers"][0] for pod in found.values()]
    assert len({container["image"] for container in containers}) == 1
    assert "@sha256:" in containers[0]["image"]
    contexts = [pod["spec"]["securityContext"] for pod in found.values()]
    assert contexts[0] == contexts[1]
    assert contexts[0]["runAsNonRoot"] is True
    assert contexts[0]["fsGroup"] == contexts[0]["runAsGroup"], "the key is readable to the group only"


@pytest.mark.parametrize("image", MPI)
def test_workers_are_ready_when_ssh_answers(image: str, root: Path) -> None:
    container = roles(objects(root, image))["node"]["spec"]["containers"][0]
    for probe in ("startupProbe", "readinessProbe"):
        assert container[probe]["tcpSocket"]["port"] == 2222
    assert container["startupProbe"]["periodSeconds"] == 2
    assert container["readinessProbe"]["periodSeconds"] == 60, "each look is a line in the server's log"
    assert container["command"][:2] == ["/bin/sh", "-c"]
    assert container["args"] == ["/usr/sbin/sshd", "-De", "-f", "/home/mpiuser/.sshd_config"]


def test_open_mpi_5_gets_variables_with_its_own_names(root: Path) -> None:
    env = env_of(roles(objects(root, "openmpi"))["launcher"])
    assert env["PRTE_MCA_prte_default_hostfile"] == "/etc/mpi/hostfile"
    assert not any(name.startswith("OMPI_") for name in env)
    assert env["PRTE_MCA_hwloc_default_binding_policy"] == "none", "for an mpirun of the user's own"


def test_open_mpi_4_reads_what_trainer_sets(root: Path) -> None:
    env = env_of(roles(objects(root, "openmpi4"))["launcher"])
    assert not any(name.startswith(("PRTE_", "OMPI_MCA_orte")) for name in env)
    assert env["OMPI_MCA_hwloc_base_binding_policy"] == "none"


@pytest.mark.parametrize(
    ("image", "name"), [("intel", "I_MPI_HYDRA_HOST_FILE"), ("mpich", "HYDRA_HOST_FILE")]
)
def test_hydra_gets_a_hostfile_of_its_own(image: str, name: str, root: Path) -> None:
    env = env_of(roles(objects(root, image))["launcher"])
    assert env[name] == "/tmp/gangplan-hostfile"


@pytest.mark.parametrize("image", FAMILIES)
def test_only_mpi_has_a_launcher(image: str, root: Path) -> None:
    bodies = objects(root, image)
    assert list(roles(bodies)) == (["node"] if image == "pytorch" else ["node", "launcher"])
    assert set(runtime(bodies)["mlPolicy"]) == {"numNodes", "torch" if image == "pytorch" else "mpi"}


@pytest.mark.parametrize("image", FAMILIES)
def test_secrets_and_claims_are_references(image: str, root: Path) -> None:
    more = "secrets: {env: {HF_TOKEN: huggingface/token}, files: {huggingface: /keys}}\n"
    more += "data: {filings: /data, archive: /old}"
    for pod in roles(objects(root, image, more)).values():
        reference = {"secretKeyRef": {"name": "huggingface", "key": "token"}}
        assert env_of(pod).get("HF_TOKEN", reference) == reference
        volumes = {volume["name"]: volume for volume in pod["spec"]["volumes"]}
        assert volumes["claim-filings"]["persistentVolumeClaim"] == {"claimName": "filings"}
        assert volumes["claim-archive"]["persistentVolumeClaim"]["readOnly"] is True
        mounts = {mount["mountPath"]: mount for mount in pod["spec"]["containers"][0]["volumeMounts"]}
        assert mounts["/keys"]["readOnly"] is True
        assert mounts["/old"]["readOnly"] is True
        assert "readOnly" not in mounts["/data"]


def test_the_environment_reaches_every_rank(root: Path) -> None:
    """sshd passes on none of the container's variables, so Open MPI must be given each by name."""
    bodies = objects(
        root, "openmpi", "env: {SEED: 1, NAME: x}\nsecrets: {env: {HF_TOKEN: huggingface/token}}"
    )
    found = roles(bodies)
    argv = found["launcher"]["spec"]["containers"][0]["args"]
    carried = [argv[index + 1] for index, word in enumerate(argv) if word == "-x"]
    assert carried == ["PATH", "LD_LIBRARY_PATH", "HF_TOKEN", "NAME", "OMP_NUM_THREADS", "SEED"]
    assert {"SEED", "NAME", "HF_TOKEN"} <= set(env_of(found["launcher"]))


# Deadline, retries, queue


@pytest.mark.parametrize(
    ("versions", "is_on_run"),
    [
        ('kubernetes: "1.34.4", trainer: "2.3.0", kueue: "0.19.2"', True),
        ('kubernetes: "1.34.4", trainer: "2.2.1", kueue: "0.17.8"', True),
        ('kubernetes: "1.30.14", trainer: "2.1.0", kueue: "0.15.8"', False),
    ],
)
@pytest.mark.parametrize("image", ["openmpi", "pytorch"])
def test_the_deadline_is_that_of_the_run_or_of_its_last_job(
    versions: str, is_on_run: bool, image: str, root: Path
) -> None:
    bodies = objects(root, image, "timeout: 90m", versions)
    (job,) = of_kind(bodies, "TrainJob")
    assert job["spec"].get("activeDeadlineSeconds") == (5400 if is_on_run else None)
    jobs = {
        one["name"]: one["template"]["spec"] for one in runtime(bodies)["template"]["spec"]["replicatedJobs"]
    }
    last = "node" if image == "pytorch" else "launcher"
    # Monitoring sees only the Job's deadline; where the run has its own, that one ends first.
    assert jobs[last]["activeDeadlineSeconds"] == (5460 if is_on_run else 5400)
    assert all(one["backoffLimit"] == 0 for one in jobs.values())


@pytest.mark.parametrize("retries", [0, 2])
def test_retries_restart_the_whole_run(retries: int, root: Path) -> None:
    spec = runtime(objects(root, "openmpi", f"retries: {retries}"))["template"]["spec"]
    policy = spec.get("failurePolicy")
    assert (policy is not None) == bool(retries)
    if policy:
        assert (policy["maxRestarts"], policy["restartStrategy"]) == (2, "Recreate")
        assert [(rule["name"], rule["action"]) for rule in policy["rules"]] == [
            ("deadline", "FailJobSet"),
            ("launch", "FailJobSet"),
            ("disruption", "RestartJobSetAndIgnoreMaxRestarts"),
        ], "the first that holds decides: what no try can cure comes before what is forgiven"


def _rules(bodies: list[Body], role: str) -> list[tuple[str, Any]]:
    """Return the rules that fail the Job of a role at once."""
    jobs = runtime(bodies)["template"]["spec"]["replicatedJobs"]
    spec = next(job["template"]["spec"] for job in jobs if job["name"] == role)
    rules = spec.get("podFailurePolicy", {}).get("rules", [])
    assert all(rule.pop("action") == "FailJob" for rule in rules)
    return [item for rule in rules for item in rule.items()]


DISRUPTED = ("onPodConditions", [{"type": "DisruptionTarget", "status": "True"}])
FINAL = ("onExitCodes", {"containerName": "node", "operator": "In", "values": list(FINAL_CODES)})
OLD = 'kubernetes: "1.30.14", trainer: "2.1.0", kueue: "0.15.8"'


@pytest.mark.parametrize("image", FAMILIES)
def test_with_retries_disruptions_differ_from_failures(image: str, root: Path) -> None:
    bodies = objects(root, image, "retries: 1")
    assert _rules(bodies, "node") == [DISRUPTED]
    if image != "pytorch":
        assert _rules(bodies, "launcher") == [DISRUPTED, FINAL]


@pytest.mark.parametrize("image", ["openmpi", "pytorch"])
def test_without_retries_a_run_is_never_tried_again(image: str, root: Path) -> None:
    for job in runtime(objects(root, image))["template"]["spec"]["replicatedJobs"]:
        assert "podFailurePolicy" not in job["template"]["spec"]


def test_where_no_run_has_a_deadline_disruptions_count(root: Path) -> None:
    """Trainer 2.1: nothing else would limit the number of tries."""
    bodies = objects(root, "openmpi", "retries: 1", OLD)
    assert (_rules(bodies, "node"), _rules(bodies, "launcher")) == ([], [FINAL])
    rules = runtime(bodies)["template"]["spec"]["failurePolicy"]["rules"]
    assert [rule["name"] for rule in rules] == ["deadline", "launch"]


def test_the_queue_and_the_priority_are_labels_of_the_job(root: Path) -> None:
    (job,) = of_kind(objects(root, "openmpi", "priority: high"), "TrainJob")
    assert job["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] == "training"
    assert job["metadata"]["labels"]["kueue.x-k8s.io/priority-class"] == "training-high"


def test_no_engine_applies_an_archived_run(root: Path) -> None:
    for body in objects(root, "openmpi", "state: archived"):
        if body["kind"] == "ConfigMap":
            continue  # launch scripts, which other runs mount as well
        assert body["metadata"]["annotations"]["argocd.argoproj.io/hook"] == "Skip"
        assert body["metadata"]["annotations"]["kustomize.toolkit.fluxcd.io/ssa"] == "Ignore"


@pytest.mark.parametrize("image", FAMILIES)
def test_a_sync_neither_prunes_runs_nor_waits_for_them(image: str, root: Path) -> None:
    waves = []
    for body in objects(root, image):
        annotations = body["metadata"]["annotations"]
        assert "Prune=false" in annotations["argocd.argoproj.io/sync-options"]
        assert annotations["argocd.argoproj.io/compare-options"] == "IgnoreExtraneous"
        assert "argocd.argoproj.io/hook" not in annotations
        of_team = body["kind"] == "ConfigMap"
        source = {"ConfigMap": "specs/nlp/team.yaml", "TrainJob": "specs/nlp/filings.yaml"}
        assert annotations.get("gangplan.dev/source") == source.get(body["kind"])
        if not of_team:
            waves.append(int(annotations["argocd.argoproj.io/sync-wave"]))
    assert waves == sorted(waves)


# Network


def policies(root: Path, more: str, image: str = "openmpi") -> dict[str, dict[str, Any]]:
    """Return the policies of a run, by the end of their names."""
    bodies = of_kind(objects(root, image, more), "NetworkPolicy")
    run = min((body["metadata"]["name"] for body in bodies), key=len)
    return {body["metadata"]["name"].removeprefix(run): body["spec"] for body in bodies}


def ranges(rule: dict[str, Any]) -> list[tuple[int, int]]:
    """Return the ports that a rule opens."""
    return [(port["port"], port.get("endPort", port["port"])) for port in rule.get("ports", ())]


@pytest.mark.parametrize("image", ["openmpi", "pytorch"])
def test_the_default_posture_opens_every_port_inside_the_run(image: str, root: Path) -> None:
    (policy,) = policies(root, "", image).values()
    assert policy["policyTypes"] == ["Ingress", "Egress"]
    (inside,) = policy["ingress"]
    assert "ports" not in inside
    assert inside["from"] == [{"podSelector": policy["podSelector"]}]
    selected = policy["podSelector"]["matchLabels"]
    assert list(selected) == ["jobset.sigs.k8s.io/jobset-name"], "pods do not carry labels of TrainJob"


@pytest.mark.parametrize("posture", ["restricted", "isolated"])
def test_the_narrow_postures_allow_ssh_only_from_the_launcher(posture: str, root: Path) -> None:
    found = policies(root, f"network: {{posture: {posture}}}")
    assert set(found) == {"", "-launcher-ssh", "-node-ssh"}
    (inside,) = found[""]["ingress"]
    assert ranges(inside) == [(1024, 2221), (2223, 65535)], "every unprivileged port but that of SSH"
    (ssh,) = found["-node-ssh"]["ingress"]
    assert ranges(ssh) == [(2222, 2222)]
    roles_of = [
        found["-node-ssh"]["podSelector"]["matchLabels"]["jobset.sigs.k8s.io/replicatedjob-name"],
        ssh["from"][0]["podSelector"]["matchLabels"]["jobset.sigs.k8s.io/replicatedjob-name"],
    ]
    assert roles_of == ["node", "launcher"]
    assert "egress" not in found["-node-ssh"]
    assert found["-launcher-ssh"]["policyTypes"] == ["Egress"]


def test_torch_in_a_narrow_posture_has_no_ssh(root: Path) -> None:
    (policy,) = policies(root, "network: {posture: isolated}", "pytorch").values()
    (inside,) = policy["ingress"]
    assert ranges(inside) == [(1024, 65535)]


def test_a_run_leaves_dns_to_its_namespace(root: Path) -> None:
    for more in ("", "network: {posture: isolated}"):
        (inside,) = policies(root, more)[""]["egress"]
        assert inside["to"] == [{"podSelector": policies(root, more)[""]["podSelector"]}]


def test_an_endpoint_opens_its_addresses_and_ports(root: Path) -> None:
    policy = policies(root, "network: {egress: [s3]}")[""]
    (endpoint,) = policy["egress"][1:]
    assert endpoint["to"] == [{"ipBlock": {"cidr": "10.40.8.0/24"}}]
    assert ranges(endpoint) == [(443, 443)]


# Tenants


def test_a_tenant_has_its_namespace_account_and_queue(root: Path) -> None:
    workspaces.write(
        root,
        {
            "specs/nlp/team.yaml": workspaces.TEAM
            + "namespace: team-nlp\ncostCentre: cc-1\npullSecrets: [pull]\n"
        },
    )
    workspaces.render(root)
    text = (root / "rendered/lab/tenants/nlp/tenant.yaml").read_text()
    bodies = {body["kind"]: body for body in plain.load_all(text)}
    namespace = bodies["Namespace"]["metadata"]
    assert namespace["name"] == "team-nlp"
    assert namespace["labels"]["pod-security.kubernetes.io/enforce"] == "restricted"
    assert namespace["labels"]["pod-security.kubernetes.io/enforce-version"] == "v1.34"
    assert namespace["annotations"]["argocd.argoproj.io/sync-options"] == "Prune=confirm,Delete=confirm"
    assert bodies["ServiceAccount"]["automountServiceAccountToken"] is False
    assert bodies["ServiceAccount"]["imagePullSecrets"] == [{"name": "pull"}]
    assert bodies["LocalQueue"]["metadata"]["namespace"] == "team-nlp"
    assert bodies["LocalQueue"]["spec"] == {"clusterQueue": "nlp", "stopPolicy": "None"}
    for body in bodies.values():
        assert body["metadata"]["labels"]["gangplan.dev/cost-centre"] == "cc-1"


@pytest.mark.parametrize("more", ["", "retries: 1\n", "launcher: {runsRanks: true}\n"])
@pytest.mark.parametrize("image", ["openmpi", "openmpi4", "mpich", "pytorch"])
def test_scripts_are_shown_line_by_line(image: str, more: str, root: Path) -> None:
    """A reviewer reads them; with an extra line break at its end, YAML would show a text in quotes."""
    if image == "pytorch" and "launcher" in more:
        more = ""
    text = workspaces.SPEC.replace("image: openmpi", f"image: {image}") + more
    workspaces.write(root, {"specs/nlp/filings.yaml": text})
    shown = workspaces.render(root, "-o", "-").out
    assert not re.search(r'^ *(?:- |[\w.-]+: )"[^"\n]*\\n', shown, re.MULTILINE)
    assert shown.count("- |\n") >= (1 if image == "pytorch" else 2)
