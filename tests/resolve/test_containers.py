"""Setup and sidecars: containers before and next to the program, in the pods that run ranks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gangplan.emit import is_run_file
from gangplan.validate.kueue.requests import LimitRanges, adjust_workload_pod_spec, requests_of
from tests import workspaces
from tests.resolve.test_workdir import SPEC, pods, put
from tests.workspaces import gangplan, rendered

CLUSTER = "overlays/lab/cluster.yaml"
SETUP = "setup: [{command: [python, fetch.py, 1e-4]}]\n"
SIDECAR = "sidecars: [{name: metrics, image: exporter, env: {LEVEL: 7}, cpu: 1, memory: 2Gi}]\n"
EXPORTER = """\
  exporter:
    repository: registry.example.com/tools/exporter
    digest: sha256:9384f5ec682b7697960f72c3f2bf797d7b7d3a2948211afedccbbaa998877665
    framework: torch
"""
DIGEST = "sha256:9384f5ec682b7697960f72c3f2bf797d7b7d3a2948211afedccbbaa998877665"
REFERENCE = f"registry.example.com/tools/exporter@{DIGEST}"


@pytest.fixture
def lab(root: Path) -> Path:
    """Create the small workspace with one more image."""
    workspaces.write(root, {"images/catalog.yaml": workspaces.CATALOG + EXPORTER})
    return root


def inits(pod: dict[str, Any]) -> list[dict[str, Any]]:
    return list(pod.get("initContainers", []))


def told(root: Path, lines: str, image: str = "openmpi") -> list[Any]:
    put(root, lines, image)
    return list(gangplan("validate", "-C", root).findings)


@pytest.mark.parametrize(
    ("image", "more", "having"),
    [
        ("openmpi", "", {"node"}),
        ("openmpi", "launcher: {runsRanks: true}\n", {"node", "launcher"}),
        ("pytorch", "", {"node"}),
    ],
)
def test_only_pods_that_run_ranks_have_setup_and_sidecars(
    image: str, more: str, having: set[str], lab: Path
) -> None:
    assert told(lab, SETUP + SIDECAR + more, image) == []
    found = pods(lab)
    assert {role for role, pod in found.items() if inits(pod)} == having
    for role in having:
        setup, sidecar = inits(found[role])
        (program,) = found[role]["containers"]
        assert [setup["name"], sidecar["name"]] == ["setup-1", "metrics"]
        # Setup runs before the program, with the same resources; a shell passes SIGTERM on.
        assert setup["image"] == program["image"]
        assert setup["args"] == ["python", "fetch.py", "1e-4"]
        assert "restartPolicy" not in setup
        assert setup["resources"]["requests"] == {"cpu": "8", "memory": "32Gi"}
        # A sidecar runs next to the program: another image starts its own command.
        assert (sidecar["image"], sidecar["restartPolicy"]) == (REFERENCE, "Always")
        assert not {"command", "args"} & set(sidecar)
        assert sidecar["resources"]["limits"] == {"cpu": "1", "memory": "2Gi"}
        for one in (setup, sidecar):
            assert one["securityContext"]["allowPrivilegeEscalation"] is False
            assert one["securityContext"]["capabilities"] == {"drop": ["ALL"]}


def test_setup_and_sidecars_have_the_mounts_and_variables_of_the_job(lab: Path) -> None:
    more = "data: {filings: /data}\nworkdir: /data\nenv: {A: job, B: job, NODE: {field: spec.nodeName}}\n"
    more += "secrets: {env: {TOKEN: huggingface/token}}\n"
    assert told(lab, SETUP.replace("]}]", "], env: {B: own}}]") + SIDECAR + more) == []
    pod = pods(lab)["node"]
    for one, value in zip(inits(pod), ("own", "job"), strict=True):
        env = {variable["name"]: variable for variable in one["env"]}
        assert (env["A"]["value"], env["B"]["value"]) == ("job", value)
        assert env["NODE"]["valueFrom"] == {"fieldRef": {"fieldPath": "spec.nodeName"}}
        assert env["TOKEN"]["valueFrom"]["secretKeyRef"] == {"name": "huggingface", "key": "token"}
        # They request no GPU, but without this variable the node may show them its own.
        assert env["NVIDIA_VISIBLE_DEVICES"]["value"] == "void"
        # gangplan starts no script in them.
        assert one["volumeMounts"] == pod["containers"][0]["volumeMounts"][:-1]
        assert one["workingDir"] == "/data"
    assert {one["name"]: one for one in inits(pod)[1]["env"]}["LEVEL"]["value"] == "7"


def test_without_setup_and_sidecars_pods_have_no_init_containers(root: Path) -> None:
    put(root, "")
    assert all("initContainers" not in pod for pod in pods(root).values())


# CPU of setup, sidecar and program -> what the pod takes, by Kubernetes' arithmetic (KEP-753).
AMOUNTS = {
    "the program and its sidecar": (None, 1, 8, 9),
    "a small setup": (2, 1, 8, 9),
    "a setup as large as both": (9, 1, 8, 9),
    "a setup larger than both": (20, 1, 8, 20),
    "setup alone": (20, None, 8, 20),
}


@pytest.mark.parametrize("name", AMOUNTS)
def test_the_resources_of_a_pod_are_counted_as_kubernetes_does(name: str, lab: Path) -> None:
    setup, sidecar, cpu, whole = AMOUNTS[name]
    lines = f"setup: [{{command: [a], cpu: {setup}}}, {{command: [b], cpu: 1}}]\n" if setup else ""
    lines += f"sidecars: [{{command: [c], cpu: {sidecar}}}]\n" if sidecar else ""
    assert told(lab, lines) == []
    (run,) = json.loads(gangplan("plan", "-C", lab, "--format", "json").out)["runs"]
    launcher = 1
    assert run["totals"]["cpu"] == str(4 * whole + launcher)
    assert run["worker"]["cpu"] == str(cpu)
    # Kueue computes the same from the rendered pod.
    assert (
        requests_of(adjust_workload_pod_spec(pods(lab)["node"], LimitRanges([]), {}))["cpu"] == whole * 1000
    )


# The lines, the only rule that they break, its column, and words of the message.
CASES = {
    "an image that is not there": ("setup: [{image: expoter}]\n", "image-unknown", 17, "expoter"),
    "a name twice": (
        "setup: [{name: a, command: [x]}]\nsidecars: [{name: a, command: [y]}]\n",
        "container-name-taken",
        19,
        "'a' is the name of setup[0] as well",
    ),
    "the program's name": ("sidecars: [{name: node, command: [y]}]\n", "container-name-taken", 19, "program"),
    "a ConfigMap that is not there": (
        "setup: [{command: [x], env: {A: {configMap: tuning/a}}}]\n",
        "config-map-unknown",
        45,
        "tuning",
    ),
    "neither command nor image": ("setup: [{env: {A: b}}]\n", "spec-value", 9, "needs a command"),
    "the job's image by name, which starts its own": ("sidecars: [{image: openmpi}]\n", "", 0, ""),
    "a command for a shell": ("setup: [{command: a && b}]\n", "command-shell", 19, "only a shell"),
    "as much as a node": ("sidecars: [{command: [y], cpu: 116, memory: 1868Gi}]\n", "", 0, ""),
    "more than a node": (
        "sidecars: [{command: [y], cpu: 117}]\n", "pool-no-fit", 11, "with its sidecars needs 125"
    ),
    "a setup of a node": ("setup: [{command: [y], cpu: 124}]\n", "", 0, ""),
    "a setup beyond a node": (
        "setup: [{command: [y], memory: 1901Gi}]\n", "pool-no-fit", 8, "with setup needs 1901 GiB"
    ),
    "several are fewer than a node": (
        "sidecars: [{command: [a], cpu: 58}, {command: [b], cpu: 58}]\n", "", 0, ""
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_each_wrong_container_breaks_one_rule(name: str, lab: Path) -> None:
    lines, rule, column, words = CASES[name]
    found = told(lab, lines)
    assert [one.rule for one in found] == ([rule] if rule else [])
    if rule:
        line = 8 + len(lines.splitlines())
        assert found[0].place == f"{SPEC}:{line}:{column}"
        assert words in found[0].message
        assert found[0].help


def test_an_image_of_an_untrusted_registry_is_refused(lab: Path) -> None:
    text = workspaces.CLUSTER.replace(
        "topology:", "registries: [registry.example.com/training]\ntopology:", 1
    )
    workspaces.write(lab, {CLUSTER: text})
    (found,) = told(lab, SIDECAR)
    assert (found.rule, found.place) == ("registry-untrusted", f"{SPEC}:9:35")
    assert "registry.example.com/tools/exporter" in found.message


def test_why_leads_to_the_field(lab: Path) -> None:
    put(lab, SETUP + SIDECAR)
    pods(lab)
    (path,) = (one for one in rendered(lab) if is_run_file(one))
    lines = rendered(lab)[path].decode().splitlines()
    for words, field in (
        ("fetch.py", "setup[0].command"),
        ("name: metrics", "sidecars[0].name"),
        ("memory: 2Gi", "sidecars[0].memory"),
        ("tools/exporter", "exporter.repository"),
    ):
        line = next(n for n, one in enumerate(lines, 1) if words in one)
        place = f"rendered/{path.removeprefix('rendered/')}:{line}"
        assert field in gangplan("why", "-C", lab, place).out, words


def test_a_new_job_takes_containers_from_its_flags(lab: Path) -> None:
    words = ("--image", "openmpi", "--command", "python train.py", "-n")
    flags = ("--setup", "{command: [python, fetch.py]}", "--sidecars", "{name: metrics, image: exporter}")
    outcome = gangplan("new", "job", "beside", "-C", lab, *words, *flags)
    assert outcome.code == 0, outcome.err
    assert "command: [python, fetch.py]" in outcome.out
    assert "name: metrics" in outcome.out


@pytest.mark.parametrize(("word", "field"), [("initContainers", "setup"), ("sidecar", "sidecars")])
def test_words_of_other_tools_lead_to_setup_and_sidecars(word: str, field: str, root: Path) -> None:
    put(root, f"{word}: []\n")
    (found,) = gangplan("validate", "-C", root).findings
    assert found.rule == "spec-unknown-field"
    assert field in found.message + found.help


def test_another_sidecar_is_another_run(lab: Path) -> None:
    names = set()
    for lines in ("", SETUP, SIDECAR, SIDECAR.replace("7", "8")):
        put(lab, lines)
        pods(lab)
        names |= {path for path in rendered(lab) if is_run_file(path)}
    assert len(names) == 4
