"""The law: gangplan reports what is wrong, or what it renders starts the planned ranks, once, where planned.

Random command lines (a grammar over the table of launchers) and random patches of a site are run by real MPIs
on hosts. `make law COUNT=500 SEED=7` searches further; what it finds becomes a case of its own.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

from tests import workspaces
from tests.kubelet import expand_local_container_like_kubelet as expanded
from tests.launchers import IMAGES, MARK, command_lines, right_lines
from tests.reality import pods, running
from tests.reality.base import ALL, running_spec, spec
from tests.reality.families import FAMILIES, Family

WORKERS, SLOTS = 2, 2
RANKS = WORKERS * SLOTS
#: Examples of each family; most random lines are refused, which takes a third of a second.
COUNT = int(os.environ.get("GANGPLAN_LAW_COUNT", "0"))
SEED = int(os.environ.get("GANGPLAN_LAW_SEED", "1"))
GRAMMAR = {image: name for name, image in IMAGES.items()}
#: Seconds for a launch; one that takes longer hangs.
LIMIT_S = 90


def profile(examples: int) -> settings:
    """Return settings of a search: a few examples in `make test`, COUNT in a campaign."""
    return settings(
        max_examples=COUNT or examples,
        deadline=None,
        derandomize=not COUNT,
        database=None,
        report_multiple_bugs=False,
        suppress_health_check=list(HealthCheck),
    )


class Bench:
    """Running pods of one run, in which the launcher's container of any other spec can be started."""

    def __init__(self, family: Family, folder: Path, run: running.Run) -> None:
        """Take the pods of a run whose launcher sleeps."""
        self.family, self.folder, self.run = family, folder, run

    def hold(self, words: Sequence[str]) -> bool:
        """Assert the law for a command; return whether it was run."""
        # The wheel's own prterun looks for its files where it was built; mpirun is the same with a prefix.
        words = [re.sub(r"\bprterun\b", "mpirun", word) for word in words]
        command = json.dumps([word.replace(MARK, "rank") for word in words])
        text = spec(self.family, WORKERS, command=command)
        root = workspaces.stock(self.folder / "workspace")
        workspaces.write(root, {"specs/nlp/filings.yaml": text})
        outcome = workspaces.gangplan("render", "-C", root, "-o", "-", "specs/nlp/filings.yaml")
        if outcome.code:
            assert outcome.errors(), outcome.err
            return False
        launcher = pods.cluster(pods.load(outcome.out)).launcher
        for path in self.run.reports.iterdir():
            path.unlink()
        env = {"PATH": running.PATH, "HOME": pods.HOME, **launcher.container["env"]}
        code, shown = self.run.launcher.run(launcher.command, env, LIMIT_S)
        context = f"{command}\n{outcome.err}\n{shown}\nranks: {self.run.ranks()}"
        assert code == 0, f"it ended with {code}: {context}"
        assert [rank.rank for rank in self.run.ranks()] == list(range(RANKS)), context
        assert {rank.size for rank in self.run.ranks()} == {RANKS}, context
        hosts = sorted(rank.host for rank in self.run.ranks())
        assert hosts == sorted(worker.name for worker in self.run.workers for _ in range(SLOTS)), context
        return True


@contextmanager
def bench(name: str, folder: Path) -> Iterator[Bench]:
    """Yield running pods of a family."""
    family = FAMILIES[name]
    bodies = pods.objects(folder / "first", spec(family, WORKERS))
    runtime = next(body for body in bodies if body["kind"] == "TrainingRuntime")
    for role in runtime["spec"]["template"]["spec"]["replicatedJobs"]:
        if role["name"] == "launcher":
            container = role["template"]["spec"]["template"]["spec"]["containers"][0]
            container["command"], container["args"] = ["/bin/sh", "-c", "sleep 36000 & wait"], []
            assert expanded(container)
    with running_spec(folder, family, "", bodies=bodies, program=running.PROGRAM, name="rank") as run:
        yield Bench(family, folder, run)


@pytest.mark.parametrize("name", ALL)
def test_random_command_lines_keep_the_law(name: str, tmp_path: Path) -> None:
    grammar = GRAMMAR[FAMILIES[name].image]
    with bench(name, tmp_path) as pod:

        @seed(SEED)
        @profile(1)
        @given(right_lines(grammar, RANKS, SLOTS))
        def right(words: list[str]) -> None:
            assert pod.hold(words), f"{words} is right, and was refused"

        @seed(SEED)
        @profile(4)
        @given(command_lines(grammar, RANKS, SLOTS))
        def any_line(words: list[str]) -> None:
            pod.hold(words)

        right()
        any_line()


# Patches of a site

LAUNCHER = "/spec/template/spec/replicatedJobs/1"
NODE = "/spec/template/spec/replicatedJobs/0"
POD = "/template/spec/template"
_PLACES = [
    "/spec/mlPolicy/numNodes",
    "/spec/mlPolicy/mpi/numProcPerNode",
    "/spec/mlPolicy/mpi/runLauncherAsNode",
    "/spec/mlPolicy/mpi/sshAuthMountPath",
    "/spec/template/spec/network/enableDNSHostnames",
    "/spec/template/spec/network/publishNotReadyAddresses",
    f"{LAUNCHER}/dependsOn",
    f"{LAUNCHER}/name",
    f"{NODE}/replicas",
    f"{LAUNCHER}{POD}/spec/containers/0/args/2",
    f"{LAUNCHER}{POD}/spec/containers/0/args/0",
    f"{LAUNCHER}{POD}/spec/containers/0/command/0",
    f"{LAUNCHER}{POD}/spec/containers/0/env/0/value",
    f"{LAUNCHER}{POD}/spec/containers/0/env/1",
    f"{LAUNCHER}{POD}/spec/terminationGracePeriodSeconds",
    f"{NODE}{POD}/spec/containers/0/args",
    f"{NODE}{POD}/spec/containers/0/name",
    f"{NODE}{POD}/spec/containers/0/startupProbe/failureThreshold",
    f"{NODE}{POD}/spec/terminationGracePeriodSeconds",
    f"{NODE}{POD}/metadata/labels/gangplan.dev~1role",
    f"{NODE}{POD}/metadata/labels/site.example.com~1rack",
]
_VALUES = st.sampled_from([1, 2, 3, 30, True, False, "4", "9", "x", "node", "/root/.ssh", "python", "b"])
patches = st.fixed_dictionaries(
    {"op": st.sampled_from(["add", "replace", "remove"]), "path": st.sampled_from(_PLACES), "value": _VALUES}
)


def hold_patch(patch: dict[str, object], family: Family, folder: Path) -> None:
    """Assert the law for a patch of the TrainingRuntime."""
    operation = {key: value for key, value in patch.items() if key != "value" or patch["op"] != "remove"}
    component = {
        "apiVersion": "kustomize.config.k8s.io/v1alpha1",
        "kind": "Component",
        "patches": [{"target": {"kind": "TrainingRuntime"}, "patch": json.dumps([operation])}],
    }
    shutil.rmtree(folder, ignore_errors=True)
    root = workspaces.stock(folder / "workspace")
    workspaces.write(
        root,
        {
            "overlays/lab/kustomization.yaml": json.dumps(component),
            "specs/nlp/filings.yaml": spec(family, WORKERS),
        },
    )
    outcome = workspaces.gangplan("render", "-C", root, "-o", "-")
    if outcome.code:
        assert outcome.errors(), outcome.err
        return
    with running_spec(folder, family, "", bodies=pods.load(outcome.out)) as run:
        assert run.end(LIMIT_S) == 0, f"{operation} {run.story()}"
        run.check()


@pytest.mark.parametrize("name", ["mpich"])
def test_random_patches_keep_the_law(name: str, tmp_path: Path, builder: str) -> None:
    @seed(SEED)
    @profile(3)
    @given(patches)
    def holds(patch: dict[str, object]) -> None:
        hold_patch(patch, FAMILIES[name], tmp_path / "run")

    holds()
