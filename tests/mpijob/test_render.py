"""Runs as MPIJobs: what is rendered, what is the same as in a TrainJob, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.mpijob.base import FAMILIES, MIXED, OPERATOR, Body, mpi_job, pods, run, spec, workspace
from tests.workspaces import CLUSTER, gangplan

ROLES = {"Launcher": "launcher", "Worker": "node"}


@pytest.mark.parametrize("image", FAMILIES)
def test_a_cluster_without_trainer_gets_mpijobs(image: str, tmp_path: Path) -> None:
    """US-09."""
    workspace(tmp_path, spec(image))
    job = mpi_job(tmp_path)
    body = job["spec"]
    assert body["mpiImplementation"] == FAMILIES[image]
    assert (body["slotsPerWorker"], body["runLauncherAsWorker"]) == (2, False)
    assert body["sshAuthMountPath"] == "/home/mpiuser/.ssh"
    assert body["runPolicy"] == {
        "cleanPodPolicy": "Running",
        "activeDeadlineSeconds": 86400,
        "backoffLimit": 0,
    }
    counts = {name: one["replicas"] for name, one in body["mpiReplicaSpecs"].items()}
    assert counts == {"Launcher": 1, "Worker": 3}
    assert job["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] == "training"
    outcome = gangplan("validate", "-C", tmp_path, "--engine", "serial")
    assert (outcome.code, outcome.findings) == (0, []), outcome.err


@pytest.mark.parametrize("image", FAMILIES)
@pytest.mark.parametrize("more", ["", "launcher: {runsRanks: true}\n", "network: {posture: restricted}\n"])
def test_pods_are_those_of_a_trainjob(image: str, more: str, tmp_path: Path) -> None:
    """They differ only in the restart policy, outside the pod, and in what the launch script must know."""
    workspace(tmp_path / "mpi", spec(image, more), OPERATOR)
    workspace(tmp_path / "train", spec(image, more), CLUSTER)
    ours = pods(mpi_job(tmp_path / "mpi"))
    theirs = runtime_pods(run(tmp_path / "train"))
    for name, role in ROLES.items():
        one, other = plainly(ours[name]), plainly(theirs[role])
        one["restartPolicy"] = "Never"
        assert one == other


def runtime_pods(bodies: list[Body]) -> dict[str, Body]:
    (runtime,) = [body for body in bodies if body["kind"] == "TrainingRuntime"]
    jobs = runtime["spec"]["template"]["spec"]["replicatedJobs"]
    return {job["name"]: job["template"]["spec"]["template"]["spec"] for job in jobs}


# Under the operator, the launcher starts together with the workers, and some variables are its own.
OPTIONS = ("--ssh-wait=", "--hosts-in=", "--unset=")


def plainly(pod: Body) -> Body:
    """Return a pod without what differs because the MPI operator sets variables itself."""
    (box,) = pod["containers"]
    own = (
        "I_MPI_HYDRA_HOST_FILE",
        "I_MPI_HYDRA_BOOTSTRAP_EXEC_EXTRA_ARGS",
        "I_MPI_PERHOST",
        "HYDRA_HOST_FILE",
    )
    env = [one for one in box["env"] if one["name"] not in own]
    command = [word for word in box["command"] if not word.startswith(OPTIONS)]
    return {**pod, "containers": [{**box, "env": env, "command": command}]}


def test_a_spec_can_choose_the_backend(tmp_path: Path) -> None:
    workspace(tmp_path, spec(more="backend: mpijob\n"), MIXED)
    assert mpi_job(tmp_path)
    (tmp_path / "specs/nlp/filings.yaml").write_text(spec(more="backend: trainjob\n"))
    kinds = [body["kind"] for body in run_only(tmp_path)]
    assert kinds == ["NetworkPolicy", "TrainingRuntime", "TrainJob"]


def run_only(root: Path) -> list[Body]:
    for file in root.glob("rendered/lab/runs/nlp/*-*.yaml"):
        file.unlink()
    return run(root)


def test_the_name_of_a_run_depends_on_its_backend(tmp_path: Path) -> None:
    workspace(tmp_path / "one", spec(more="backend: mpijob\n"), MIXED)
    workspace(tmp_path / "two", spec(more="backend: trainjob\n"), MIXED)
    names = [run(tmp_path / one)[-1]["metadata"]["name"] for one in ("one", "two")]
    assert len(set(names)) == 2


def test_a_launcher_that_is_a_worker_is_one_of_the_hosts(tmp_path: Path) -> None:
    workspace(tmp_path, spec(more="launcher: {runsRanks: true}\n"))
    body = mpi_job(tmp_path)["spec"]
    assert body["runLauncherAsWorker"] is True
    assert body["mpiReplicaSpecs"]["Worker"]["replicas"] == 2


def test_with_retries_workers_restart_in_place(tmp_path: Path) -> None:
    workspace(tmp_path, spec(more="retries: 2\n"))
    body = mpi_job(tmp_path)["spec"]
    assert body["runPolicy"]["backoffLimit"] == 2
    restarts = {name: one["restartPolicy"] for name, one in body["mpiReplicaSpecs"].items()}
    assert restarts == {"Launcher": "Never", "Worker": "OnFailure"}


def test_names_of_mpijobs_may_have_45_characters(tmp_path: Path) -> None:
    """<run>-launcher and <run>-worker-2 are host names: 63 characters, nine of them for the hash."""
    fits = "a" * 45
    workspace(tmp_path, spec(more=f"name: {fits}\n"))
    assert mpi_job(tmp_path)["metadata"]["name"].startswith(fits)
    (tmp_path / "specs/nlp/filings.yaml").write_text(spec(more=f"name: {fits}a\n"))
    assert ("specs/nlp/filings.yaml:7:7", "name-too-long") in gangplan("validate", "-C", tmp_path).errors()


REFUSED = {
    "no operator": (CLUSTER, spec(more="backend: mpijob\n"), "backend-missing"),
    "no trainer": (OPERATOR, spec(more="backend: trainjob\n"), "backend-missing"),
    "torch": (OPERATOR, spec("pytorch"), "backend-framework"),
    "plain": (
        MIXED,
        spec(more="framework: plain\nbackend: mpijob\n").replace("slots: 2\n", ""),
        "backend-framework",
    ),
    "exit codes": (OPERATOR, spec(more="retries: 1\nexitCodes: {fail: [42]}\n"), "backend-field"),
    "pod groups": (OPERATOR + "gang: volcano\n", spec(), "backend-gang"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_an_mpijob_cannot_do_is_refused(case: str, tmp_path: Path) -> None:
    cluster, text, rule = REFUSED[case]
    workspace(tmp_path, text, cluster)
    outcome = gangplan("validate", "-C", tmp_path, "--engine", "serial")
    assert rule in {shown for _, shown in outcome.errors()}, outcome.err
    assert outcome.code != 0


def test_a_cluster_needs_trainer_or_the_mpi_operator(tmp_path: Path) -> None:
    workspace(tmp_path, spec(), OPERATOR.replace(', mpiOperator: "0.8.2"', ""))
    outcome = gangplan("validate", "-C", tmp_path)
    assert "neither trainer nor mpiOperator is stated" in outcome.err
    assert outcome.code == 2


def test_policies_select_by_the_labels_of_the_operator(tmp_path: Path) -> None:
    workspace(tmp_path, spec(more="network: {posture: restricted}\n"))
    bodies = run(tmp_path)
    name = bodies[-1]["metadata"]["name"]
    policies = [body for body in bodies if body["kind"] == "NetworkPolicy"]
    selected = [one["spec"]["podSelector"]["matchLabels"] for one in policies]
    label, role = "training.kubeflow.org/job-name", "training.kubeflow.org/job-role"
    assert selected == [{label: name}, {label: name, role: "launcher"}, {label: name, role: "worker"}]
    assert [one["metadata"]["name"] for one in policies] == [
        name,
        f"{name}-launcher-ssh",
        f"{name}-worker-ssh",
    ]
