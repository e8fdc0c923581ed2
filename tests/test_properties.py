"""Laws for every valid spec."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from gangplan.objects import Body, dump_object_as_block_yaml, walk_leaves
from gangplan.pipeline.render import preview_render
from gangplan.pipeline.request import Request, Result
from gangplan.plan.names import HASH_PLACEHOLDER
from gangplan.rules.model import Severity
from tests import kubelet, plain, strategies, workspaces

SPEC = "specs/nlp/filings.yaml"
DNS_LABEL = re.compile(r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?")
MPI_BASE = plain.load(workspaces.SPEC)
relaxed = settings(
    max_examples=30,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


def expand(root: Path, spec: dict[str, Any]) -> tuple[Result, list[Body]]:
    """Render a spec in the small workspace, and return the result and its objects."""
    workspaces.write(
        root, {SPEC: dump_object_as_block_yaml(spec), "overlays/lab/cluster.yaml": workspaces.WIDE_CLUSTER}
    )
    result = preview_render(Request(root, engine="serial"))
    assert [one for one in result.findings if one.severity is Severity.ERROR] == []
    (run,) = result.runs
    return result, [body for body in plain.load_all(result.texts[run.path]) if body]


def by_kind(bodies: list[Body], kind: str) -> Body:
    """Return the only object of a kind."""
    (body,) = [body for body in bodies if body["kind"] == kind]
    return body


def pods(bodies: list[Body]) -> dict[str, Any]:
    """Return the pod of each role."""
    jobs = by_kind(bodies, "TrainingRuntime")["spec"]["template"]["spec"]["replicatedJobs"]
    return {job["name"]: job["template"]["spec"]["template"]["spec"] for job in jobs}


@relaxed
@given(spec=strategies.specs())
def test_names_are_valid_and_unique(spec: dict[str, Any], root: Path) -> None:
    result, bodies = expand(root, spec)
    refs = Counter((body["kind"], body["metadata"]["namespace"], body["metadata"]["name"]) for body in bodies)
    assert max(refs.values()) == 1
    for _, namespace, name in refs:
        assert DNS_LABEL.fullmatch(namespace)
        assert DNS_LABEL.fullmatch(name)
    (run,) = result.runs
    layout = run.unit.layout
    # JobSet's webhook computes the name of the last pod of each replicated job.
    for role, count in (("node", layout.node_pods), ("launcher", layout.launcher_pods)):
        if count:
            assert DNS_LABEL.fullmatch(f"{run.name}-{role}-0-{count - 1}-abcde")
    for body in bodies:
        for key, value in body["metadata"]["labels"].items():
            assert len(value) <= 63, key


@relaxed
@given(spec=strategies.specs())
def test_counts_add_up(spec: dict[str, Any], root: Path) -> None:
    result, bodies = expand(root, spec)
    (run,) = result.runs
    workers, gpus = spec["workers"], spec["gpus"]
    slots = spec.get("slots") or gpus or 1
    layout = run.unit.layout
    assert layout.ranks == workers * slots
    trainer = by_kind(bodies, "TrainJob")["spec"]["trainer"]
    assert (trainer["numNodes"], trainer["numProcPerNode"]) == (workers, slots)
    # Trainer makes numNodes pods of the job `node`, one less where the launcher is one of them.
    found = pods(bodies)
    runs_ranks = "launcher" in spec
    assert layout.node_pods == workers - runs_ranks
    assert layout.pods == workers + (spec["image"] != "pytorch" and not runs_ranks)
    per_pod = {role: _gpus(pod) for role, pod in found.items()}
    assert per_pod["node"] * layout.node_pods + per_pod.get("launcher", 0) == workers * gpus
    if spec["image"] != "pytorch":
        argv = found["launcher"]["containers"][0]["args"]
        count = argv.index("-np" if "-np" in argv else "-n")
        assert argv[count + 1] == str(workers * slots)


def _gpus(pod: dict[str, Any]) -> int:
    (container,) = pod["containers"]
    assert container["resources"]["requests"] == container["resources"]["limits"]
    return int(container["resources"]["limits"].get("nvidia.com/gpu", 0))


@relaxed
@given(spec=strategies.specs())
@example(
    spec={**MPI_BASE, "name": "t", "env": {"MY_START": "checkpoint-00000000"}, "command": ["x", "t-00000000"]}
)
@example(spec={**MPI_BASE, "env": {"MY_TAG": "gp0x3x0gp"}, "command": ["gp0x1x0gp"]})
@example(
    spec={
        **MPI_BASE,
        "env": {"MY_PID": "$$", "MY_HOME": "$(HOME)"},
        "command": ["sh", "-c", "p '$$(x)' '$é$' '$$$((' $(x)"],
    }
)
def test_texts_arrive_as_written(spec: dict[str, Any], root: Path) -> None:
    result, bodies = expand(root, spec)
    container = next(iter(reversed(pods(bodies).values())))["containers"][0]
    argv = [kubelet.expand_like_kubelet(word) for word in container.get("args") or container["command"]]
    written = [_filled(word, spec) for word in spec["command"]]
    assert argv[-len(written) + 1 :] == written[1:] if len(written) > 1 else True
    for pod in pods(bodies).values():
        variables = pod["containers"][0].get("env", ())
        env = {
            variable["name"]: kubelet.expand_like_kubelet(variable.get("value", "")) for variable in variables
        }
        assert {name: env[name] for name in spec.get("env", {})} == spec.get("env", {})
    text = "".join(result.texts.values())
    assert HASH_PLACEHOLDER not in text


def _filled(word: str, spec: dict[str, Any]) -> str:
    slots = spec.get("slots") or spec["gpus"] or 1
    return word.replace("{ranks}", str(spec["workers"] * slots))


@relaxed
@given(spec=strategies.specs())
def test_pods_satisfy_the_restricted_standard(spec: dict[str, Any], root: Path) -> None:
    """The restricted Pod Security Standard and a GitOps engine require this of every pod."""
    _, bodies = expand(root, spec)
    for pod in pods(bodies).values():
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        assert pod["automountServiceAccountToken"] is False
        assert not pod.get("hostNetwork")
        for container in pod["containers"]:
            assert container["securityContext"]["allowPrivilegeEscalation"] is False
            assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
            assert {"cpu", "memory"} <= set(container["resources"]["requests"])
            paths = [mount["mountPath"] for mount in container["volumeMounts"]]
            assert len(paths) == len(set(paths))
        volumes = [volume["name"] for volume in pod["volumes"]]
        assert len(volumes) == len(set(volumes))
        assert {
            mount["name"] for container in pod["containers"] for mount in container["volumeMounts"]
        } == set(volumes)
        assert all("hostPath" not in volume for volume in pod["volumes"])


@relaxed
@given(spec=strategies.specs())
def test_no_leaf_is_null_or_empty(spec: dict[str, Any], root: Path) -> None:
    """Servers drop nulls and empty lists, which shows as drift."""
    _, bodies = expand(root, spec)
    for body in bodies:
        for path, value in walk_leaves(body):
            assert value is not None, path
            assert value != [], path
            assert value != {} or path[-1] in ("torch",), path


# Identity


def name_of(root: Path, spec: dict[str, Any]) -> str:
    """Return the run's name."""
    return expand(root, spec)[0].runs[0].name


NEW_RUN: dict[str, Any] = {
    "image": "openmpi4",
    "command": ["python", "other.py"],
    "workers": 5,
    "gpus": 4,
    "slots": 1,
    "cpu": 9,
    "memory": "33Gi",
    "data": {"filings": "/data"},
    "env": {"SEED": "1"},
    "secrets": {"env": {"HF_TOKEN": "huggingface/token"}},
    "checkpoint": {"to": "filings"},
    "mpi": {"bindTo": "core"},
    "launcher": {"runsRanks": True},
    "placement": {"spread": "spread"},
    "timeout": "2h",
    "retries": 1,
    "labels": {"project": "filings"},
    "run": 2,
    "name": "other",
}
SAME_RUN: dict[str, Any] = {
    "description": "Other words",
    "state": "archived",
    "priority": "high",
    "team": "nlp",
    "clusters": ["lab"],
    "network": {"egress": ["s3"]},
}


@pytest.mark.parametrize("field", NEW_RUN)
def test_fields_that_change_the_run_rename_it(field: str, root: Path) -> None:
    assert name_of(root, MPI_BASE) != name_of(root, {**MPI_BASE, field: NEW_RUN[field]})


@pytest.mark.parametrize("field", SAME_RUN)
def test_fields_that_do_not_change_the_run_keep_its_name(field: str, root: Path) -> None:
    assert name_of(root, MPI_BASE) == name_of(root, {**MPI_BASE, field: SAME_RUN[field]})


def test_an_equal_amount_in_other_words_is_the_same_run(root: Path) -> None:
    other = {**MPI_BASE, "memory": "32768Mi", "cpu": "8000m"}
    assert name_of(root, MPI_BASE) == name_of(root, other)


@relaxed
@given(spec=strategies.specs(), words=st.tuples(strategies.words, strategies.words))
def test_a_description_never_renames_a_run(spec: dict[str, Any], words: tuple[str, str], root: Path) -> None:
    assert name_of(root, {**spec, "description": words[0]}) == name_of(
        root, {**spec, "description": words[1]}
    )
