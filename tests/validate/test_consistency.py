"""Rules in addition to the schemas: fields and objects must fit together. One case of rules.yaml for each."""

from __future__ import annotations

from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from gangplan.rules.objects import OBJECT_INVALID
from gangplan.validate.apiserver.pods import check_pod_spec as pod_problems
from gangplan.validate.apiserver.schema import SchemaVersions
from gangplan.validate.consistency import check_object_consistency
from gangplan.validate.gate import find_object_problems
from tests import plain
from tests.validate.cases import CLUSTERS

HERE = Path(__file__).parent
POD = ("spec", "template", "spec", "replicatedJobs", 0, "template", "spec", "template", "spec")
STARTS = {"POD": POD, "NODE": (*POD, "containers", 0), "JOBSET": ("spec", "template", "spec")}
CASES: list[dict[str, Any]] = plain.load((HERE / "rules.yaml").read_text(encoding="utf-8"))


@cache
def objects() -> list[dict[str, Any]]:
    """Return run.yaml."""
    bodies: list[dict[str, Any]] = plain.load((HERE / "run.yaml").read_text(encoding="utf-8"))
    return bodies


def changed(case: dict[str, Any]) -> tuple[list[dict[str, Any]], int, tuple[str | int, ...]]:
    """Return the objects with the case's one change, the index of the changed one, and the path."""
    # Entries that the file writes once are two here, so that changing one does not change both.
    bodies = [plain.load(yaml.dump(body, Dumper=NoAliases)) for body in objects()]
    index = next(at for at, body in enumerate(bodies) if body["kind"] == case["object"])
    first, *rest = case["at"]
    path = (*STARTS.get(first, (first,)), *rest)
    node: Any = bodies[index]
    for step in path[:-1]:
        node = node.setdefault(step, {}) if isinstance(node, dict) else node[step]
    if case.get("drop"):
        del node[path[-1]]
    elif isinstance(node, list) and path[-1] == len(node):
        node.append(deepcopy(case["put"]))
    else:
        node[path[-1]] = deepcopy(case["put"])
    return bodies, index, path


class NoAliases(yaml.SafeDumper):
    """A dumper that writes everything out."""

    def ignore_aliases(self, data: Any) -> bool:
        """Never write an alias."""
        return True


def clusters(case: dict[str, Any]) -> list[SchemaVersions]:
    """Return the versions that a case is for."""
    return [at for at in CLUSTERS if at.trainer in case.get("versions", [at.trainer])]


@pytest.mark.parametrize("at", CLUSTERS, ids=lambda at: f"trainer-{at.trainer}")
def test_a_valid_run_passes(at: SchemaVersions) -> None:
    assert find_object_problems(objects(), at) == [[], [], []]


@pytest.mark.parametrize("kind", ["ConfigMap", "CronJob", "Job", "PrometheusRule"])
def test_namespaced_objects_must_name_their_namespace(kind: str) -> None:
    body = {"apiVersion": "v1", "kind": kind, "metadata": {"name": "a"}}
    (problem,) = check_object_consistency(body, (), CLUSTERS[0])
    assert problem.path == ("metadata", "namespace")
    body["metadata"] = {"name": "a", "namespace": "team-nlp"}
    assert check_object_consistency(body, (), CLUSTERS[0]) == []


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["case"].replace(" ", "-"))
def test_objects_that_do_not_fit_together_are_reported(case: dict[str, Any]) -> None:
    bodies, index, path = changed(case)
    for at in clusters(case):
        found = find_object_problems(bodies, at)[index]
        if "says" not in case:
            assert found == []
            continue
        assert {one.rule for one in found} == {OBJECT_INVALID}, found
        said = [one for one in found if case["says"] in f"{one.message} {one.help}"]
        assert said, found
        # The problem is at the change, or directly above or below it.
        shorter = min(len(path), *(len(one.path) for one in said))
        assert any(one.path[: shorter - 1] == path[: shorter - 1] for one in said), said


def test_a_duplicate_name_is_reported_at_the_second_entry() -> None:
    """Ports without names count, and containers are in two lists."""
    bodies = [plain.load(yaml.dump(body, Dumper=NoAliases)) for body in objects()]
    index = next(at for at, body in enumerate(bodies) if body["kind"] == "TrainingRuntime")
    pod: Any = bodies[index]
    for step in POD:
        pod = pod[step]
    first, *_ = pod["containers"]
    first["ports"] = [{"containerPort": 79 + at, **({"name": "a"} if at % 2 else {})} for at in range(4)]
    pod["initContainers"] = [{"name": "setup", "image": "x"}, {"name": first["name"], "image": "x"}]
    found = find_object_problems(bodies, CLUSTERS[-1])[index]
    assert sorted(one.path for one in found if "is there twice" in one.message) == [
        (*POD, "containers", 0, "ports", 3),
        (*POD, "initContainers", 1),
    ]


def test_volumes_are_counted_as_they_stand() -> None:
    pod = {"containers": [], "volumes": [{"name": "a"}, {"name": "a"}, {"name": "b", "secret": {}}]}
    assert [one.path for one in pod_problems((), pod)] == [("volumes", 2, "secret", "secretName")]


def test_a_schema_error_is_reported_once() -> None:
    bodies = deepcopy(objects())
    bodies[1]["spec"]["mlPolicy"]["numNodes"] = "four"
    found = find_object_problems(bodies, CLUSTERS[-1])
    assert [len(problems) for problems in found] == [0, 1, 0]
    assert found[1][0].rule == "schema"


def test_the_size_of_annotations_is_limited_in_bytes() -> None:
    bodies = deepcopy(objects())
    bodies[2]["metadata"]["annotations"] = {"example.com/note": "ü" * 131_073}
    found = find_object_problems(bodies, CLUSTERS[-1])[2]
    assert [one.path for one in found] == [("metadata", "annotations")]


@pytest.mark.parametrize(
    ("label", "value", "says"),
    [
        ("enforce", "restricted", ""),
        ("enforce", "strict", "is not a level"),
        ("warn", "", "is not a level"),
        ("enforce-version", "latest", ""),
        ("enforce-version", "v1.34", ""),
        ("audit-version", "1.34", "is not a version"),
        ("enforce-version", "restricted", "is not a version"),
    ],
)
def test_pod_security_labels_are_read_as_the_server_reads_them(label: str, value: str, says: str) -> None:
    labels = {f"pod-security.kubernetes.io/{label}": value}
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "nlp", "labels": labels}}
    found = find_object_problems([body], CLUSTERS[-1])[0]
    assert [one.message for one in found if says in one.message] == [one.message for one in found]
    assert bool(found) == bool(says)


@pytest.mark.parametrize(
    ("kind", "name", "is_right"),
    [
        ("CronJob", "nightly", True),
        ("CronJob", "a" * 52, True),
        ("CronJob", "a" * 53, False),
        ("CronJob", "a/b", False),
        ("Job", "a" * 53, True),
        ("Job", "A", False),
    ],
)
def test_names_of_jobs_and_cron_jobs_follow_the_server(kind: str, name: str, is_right: bool) -> None:
    """No schema has these rules: a lab's API server refused a/b, and gangplan accepted it."""
    body = {
        "apiVersion": "batch/v1",
        "kind": kind,
        "metadata": {"name": name, "namespace": "nlp"},
        "spec": {},
    }
    assert (check_object_consistency(body, [], SchemaVersions("1.34")) == []) is is_right
