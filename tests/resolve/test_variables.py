"""Variables that are read from the pod, from its resources and from ConfigMaps of the team."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gangplan.emit import is_run_file
from tests import workspaces
from tests.resolve.test_workdir import SPEC, pods, put
from tests.workspaces import gangplan, rendered

TEAM = workspaces.TEAM + "configMaps: [tuning, site.v2]\n"
NODE = "env: {NODE: {field: spec.nodeName}}\n"
MPICH = "mpich"


@pytest.fixture
def team(root: Path) -> Path:
    """Create the small workspace, whose team has ConfigMaps."""
    workspaces.write(root, {"specs/nlp/team.yaml": TEAM})
    return root


def env(root: Path, role: str) -> dict[str, Any]:
    """Return the values of a role's variables by name, or where they come from."""
    found = pods(root)[role]["containers"][0]["env"]
    return {one["name"]: one.get("valueFrom", one.get("value")) for one in found}


def options(root: Path, role: str) -> dict[str, list[str]]:
    """Return the options of the script that a role's container starts with, each with its words."""
    command = pods(root)[role]["containers"][0]["command"]
    found = (one.partition("=") for one in command[4 : command.index("--")])
    return {name: value.split() for name, _, value in found}


def told(root: Path, lines: str, image: str = "openmpi") -> list[Any]:
    put(root, lines, image)
    return list(gangplan("validate", "-C", root).findings)


SOURCES = {
    "{field: spec.nodeName}": {"fieldRef": {"fieldPath": "spec.nodeName"}},
    "{field: status.podIP}": {"fieldRef": {"fieldPath": "status.podIP"}},
    "{field: \"metadata.annotations['batch.kubernetes.io/job-completion-index']\"}": {
        "fieldRef": {"fieldPath": "metadata.annotations['batch.kubernetes.io/job-completion-index']"}
    },
    "{resource: limits.memory}": {"resourceFieldRef": {"resource": "limits.memory"}},
    "{resource: requests.ephemeral-storage}": {
        "resourceFieldRef": {"resource": "requests.ephemeral-storage"}
    },
    "{configMap: tuning/algo}": {"configMapKeyRef": {"name": "tuning", "key": "algo"}},
    "{configMap: site.v2/nccl.conf}": {"configMapKeyRef": {"name": "site.v2", "key": "nccl.conf"}},
    "007": "007",
    "true": "true",
}


@pytest.mark.parametrize("written", SOURCES)
@pytest.mark.parametrize(
    ("image", "role"), [("openmpi", "launcher"), ("openmpi", "node"), ("pytorch", "node")]
)
def test_a_value_comes_from_its_source(written: str, image: str, role: str, team: Path) -> None:
    put(team, f"env: {{VALUE: {written}}}\n", image)
    assert env(team, role)["VALUE"] == SOURCES[written]
    # Pools of this cluster state no disk, so a worker has no request of it.
    noted = ["env-amount-unstated"] if "ephemeral-storage" in written else []
    assert [one.rule for one in gangplan("validate", "-C", team).findings] == noted


WRONG = {
    "{field: spec.hostname}": "env.VALUE.field is 'spec.hostname', which does not have the right form",
    "{field: metadata.labels}": "which does not have the right form",
    "{resource: limits.nvidia.com/gpu}": "the right form (limits or requests",
    "{configMap: tuning}": "the right form (the name of a ConfigMap, a slash and its key)",
    "{field: spec.nodeName, resource: limits.cpu}": "one of field, resource and configMap, not several",
    "{}": "expected one of field, resource and configMap",
    "{fieldPath: spec.nodeName}": "did you mean 'field'?",
    "[a, b]": "expected text",
}


@pytest.mark.parametrize("written", WRONG)
def test_an_invalid_source_is_refused(written: str, team: Path) -> None:
    put(team, f"env: {{VALUE: {written}}}\n")
    outcome = gangplan("validate", "-C", team)
    (found,) = outcome.findings
    assert (outcome.code, found.place.rpartition(":")[0]) == (2, f"{SPEC}:9")
    assert WRONG[written] in found.message + found.help
    assert found.help


def test_an_undeclared_config_map_is_refused(team: Path) -> None:
    (found,) = told(team, "env: {ALGO: {configMap: tunning/algo}}\n")
    assert (found.rule, found.place) == ("config-map-unknown", f"{SPEC}:9:25")
    assert "tuning" in found.help


def test_workers_pass_their_own_values_to_the_sessions_of_ranks(root: Path) -> None:
    put(root, NODE + "placement: {spread: pack}\n")
    (worker,) = pods(root)["node"]["containers"]
    assert options(root, "node")["--own"] == ["NODE"]
    assert worker["args"][4:] == ["-o", "ForceCommand=exec /bin/sh /dev/shm/gangplan-session"]
    (launcher,) = pods(root)["launcher"]["containers"]
    assert "NODE" not in launcher["args"]
    # Open MPI passes on only the variables that it is asked to.
    assert "--unset" not in options(root, "launcher")


@pytest.mark.parametrize(
    ("image", "command"),
    [
        ("mpich", "[python, train.py]"),
        ("horovod", '[horovodrun, -np, "8", python, train.py]'),
        ("deepspeed", "[deepspeed, train.py]"),
    ],
)
def test_launchers_that_pass_on_everything_unset_pod_values(image: str, command: str, root: Path) -> None:
    """They would give the launcher's node to every rank."""
    put(root, "env: {NODE: {field: spec.nodeName}, SEED: 7}\n", image)
    text = (root / SPEC).read_text().replace("[python, train.py]", command)
    workspaces.write(root, {SPEC: text})
    found = options(root, "launcher")
    assert found["--unset"] == ["NODE"]
    assert "NODE" not in found.get("--deepspeed", [])
    assert ("SEED" in found.get("--deepspeed", [])) == (image == "deepspeed")


def test_torch_needs_no_session_script(root: Path) -> None:
    put(root, NODE, "pytorch")
    assert "--own" not in options(root, "node")
    assert not any("gangplan-session" in word for word in pods(root)["node"]["containers"][0]["args"])


REFUSED = {
    "a launcher with ranks under Hydra": ("mpich", "", "launcher: {runsRanks: true}\n", "Hydra hands"),
    "a launcher with ranks under horovodrun": (
        "horovod",
        '[horovodrun, -np, "8", python, train.py]',
        "launcher: {runsRanks: true}\n",
        "horovodrun hands",
    ),
    "an option": ("openmpi", "", "mpi: {flags: [-x, NODE]}\n", "an option hands NODE"),
    "an option with a value": ("openmpi", "", "mpi: {flags: [-x, NODE=a]}\n", "an option hands NODE"),
    "an option of the user's mpirun": (
        "openmpi",
        '[mpirun, -np, "8", -x, NODE, python, train.py]',
        "",
        "an option hands NODE",
    ),
}
ALLOWED = {
    "a launcher with ranks under Open MPI": ("openmpi", "", "launcher: {runsRanks: true}\n"),
    "Hydra with a launcher of its own": ("mpich", "", ""),
    "an option that names another": ("openmpi", "", "mpi: {flags: [-x, OTHER]}\n"),
    "torch": ("pytorch", "", ""),
}


@pytest.mark.parametrize("name", [*REFUSED, *ALLOWED])
def test_values_that_ranks_would_take_from_the_launcher_are_refused(name: str, root: Path) -> None:
    image, command, lines, *words = REFUSED.get(name) or ALLOWED[name]
    put(root, NODE + lines, image)
    text = (root / SPEC).read_text().replace("[python, train.py]", command or "[python, train.py]")
    workspaces.write(root, {SPEC: text})
    errors = [one for one in gangplan("validate", "-C", root).findings if one.severity == "error"]
    assert [(one.rule, one.place) for one in errors] == [("env-own-value", f"{SPEC}:9:13")] * len(words)
    assert all(word in errors[0].message for word in words)


def test_another_source_is_another_run(root: Path) -> None:
    names = set()
    for source in ("spec.nodeName", "status.hostIP"):
        put(root, f"env: {{NODE: {{field: {source}}}}}\n")
        names |= set(rendered_runs(root))
    assert len(names) == 2


def rendered_runs(root: Path) -> list[str]:
    pods(root)
    return [path for path in rendered(root) if is_run_file(path)]


def test_a_new_job_takes_variables_from_its_flags(team: Path) -> None:
    words = ("--image", "openmpi", "--command", "python train.py", "--env", "SEED=7")
    outcome = gangplan(
        "new", "job", "seeds", "-C", team, *words, "--env", "NODE={field: spec.nodeName}", "-n"
    )
    assert outcome.code == 0, outcome.err
    assert (
        "env: {SEED: 7, NODE: {field: spec.nodeName}}" in outcome.out or "field: spec.nodeName" in outcome.out
    )


def test_why_leads_to_the_source(root: Path) -> None:
    put(root, NODE)
    (path,) = rendered_runs(root)
    lines = rendered(root)[path].decode().splitlines()
    line = next(number for number, one in enumerate(lines, 1) if "fieldPath" in one)
    found = gangplan("why", "-C", root, f"rendered/{path.removeprefix('rendered/')}:{line}").out
    assert f"{SPEC}:9:21" in found
    assert "env.NODE.field" in found
