"""Targets select what kustomize selects: the real program builds the same table."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gangplan.component.target import TargetError, parse_patch_target
from gangplan.objects import Body, dump_all
from gangplan.plan.names import HASH_PLACEHOLDER
from gangplan.tools.kustomize import KustomizeEngine
from tests import plain

BODIES: list[Body] = [
    {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": kind,
        "metadata": {
            "name": name,
            "namespace": "nlp",
            "labels": {"team": "nlp", "gangplan.dev/job": name},
            "annotations": {"gangplan.dev/source": f"specs/nlp/{name}.yaml"},
        },
    }
    for kind in ("TrainJob", "TrainingRuntime")
    for name in ("filings", "filings-2")
] + [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "nlp"}}]
NAMES = [f"{body['kind']}/{body['metadata']['name']}" for body in BODIES]
JOBS, RUNTIMES, NAMESPACE = NAMES[:2], NAMES[2:4], NAMES[4:]
TARGETS = [
    ({"kind": "TrainJob"}, JOBS),
    ({"kind": "Train.*"}, JOBS + RUNTIMES),
    ({"kind": "Train"}, []),
    ({"kind": "trainjob"}, []),
    ({"kind": "TrainJob|Namespace"}, JOBS + NAMESPACE),
    ({"kind": ".*"}, NAMES),
    ({"version": "v1"}, NAMESPACE),
    ({"version": "v1.*"}, NAMES),
    ({"group": "trainer.kubeflow.org"}, JOBS + RUNTIMES),
    ({"group": "trainer"}, []),
    ({"group": "trainer.*", "kind": "TrainJob"}, JOBS),
    ({"name": "filings"}, [JOBS[0], RUNTIMES[0]]),
    ({"name": "filings.*"}, JOBS + RUNTIMES),
    ({"name": "^filings$"}, [JOBS[0], RUNTIMES[0]]),
    ({"name": "ilings"}, []),
    # Patterns as Go reads them and Python does not, and one on which a backtracking matcher would hang.
    ({"name": r"(?P<job>\pL+)"}, [JOBS[0], RUNTIMES[0], *NAMESPACE]),
    ({"name": r"(([a-z]+)*)*-\d"}, [JOBS[1], RUNTIMES[1]]),
    # An empty selector selects everything.
    ({"kind": "TrainJob", "name": "", "namespace": ""}, JOBS),
    ({"namespace": "nlp"}, JOBS + RUNTIMES),
    ({"namespace": "nl."}, JOBS + RUNTIMES),
    ({"labelSelector": "team=nlp"}, JOBS + RUNTIMES),
    ({"labelSelector": "team==nlp"}, JOBS + RUNTIMES),
    ({"labelSelector": "team"}, JOBS + RUNTIMES),
    ({"labelSelector": "!team"}, NAMESPACE),
    ({"labelSelector": "team!=nlp"}, NAMESPACE),
    ({"labelSelector": "team=vision"}, []),
    ({"labelSelector": "gangplan.dev/job in (filings, other)"}, [JOBS[0], RUNTIMES[0]]),
    ({"labelSelector": "gangplan.dev/job notin (filings)"}, [JOBS[1], RUNTIMES[1], *NAMESPACE]),
    ({"labelSelector": "team=nlp,gangplan.dev/job in (filings,filings-2)", "kind": "TrainJob"}, JOBS),
    ({"annotationSelector": "gangplan.dev/source"}, JOBS + RUNTIMES),
]


@pytest.mark.parametrize(
    ("target", "expected"), TARGETS, ids=lambda value: json.dumps(value) if isinstance(value, dict) else ""
)
def test_each_target_selects_the_listed_objects(target: dict[str, str], expected: list[str]) -> None:
    parsed = parse_patch_target(target)
    assert sorted(name for name, body in zip(NAMES, BODIES, strict=True) if parsed.matches(body)) == sorted(
        expected
    )


def test_kustomize_selects_the_same_objects(real_kustomize: KustomizeEngine, tmp_path: Path) -> None:
    """All targets are in one build: each adds a field with its own number."""
    patches = [
        {
            "target": target,
            "patch": json.dumps([{"op": "add", "path": f"/t{number}", "value": "x"}]),
        }
        for number, (target, _) in enumerate(TARGETS)
    ]
    (tmp_path / "objects.yaml").write_text(dump_all(BODIES))
    (tmp_path / "kustomization.yaml").write_text(
        json.dumps({"resources": ["objects.yaml"], "patches": patches})
    )
    built = {
        f"{body['kind']}/{body['metadata']['name']}": body
        for body in plain.load_all(real_kustomize.build(tmp_path))
    }
    for number, (target, expected) in enumerate(TARGETS):
        assert sorted(name for name, body in built.items() if f"t{number}" in body) == sorted(expected), (
            target
        )


@pytest.mark.parametrize(
    ("target", "says"),
    [
        (None, "has no target"),
        ({}, "has no target"),
        ({"kinds": "TrainJob"}, "unknown field 'kinds'"),
        ({"kind": ["TrainJob"]}, "kind of a target is text"),
        ({"kind": "Train("}, "kind is not a regular expression .*missing closing"),
        ({"kind": "Train(?=Job)"}, "invalid or unsupported Perl syntax"),
        ({"labelSelector": "a = = b"}, "a part that is not a selector"),
    ],
)
def test_invalid_targets_are_refused(target: object, says: str) -> None:
    with pytest.raises(TargetError, match=says):
        parse_patch_target(target)


RUN = {
    "apiVersion": "trainer.kubeflow.org/v1alpha1",
    "kind": "TrainJob",
    "metadata": {
        "name": f"filings-{HASH_PLACEHOLDER}",
        "namespace": "nlp",
        "labels": {"gangplan.dev/job": "filings"},
    },
}


@pytest.mark.parametrize(
    ("target", "matches"),
    [
        ({"name": "filings-.*"}, True),
        ({"name": "filings-[0-9a-f]{8}"}, True),
        ({"name": "fil[a-z]+-[[:xdigit:]]+"}, True),
        ({"labelSelector": "gangplan.dev/job=filings"}, True),
        ({"name": "filings"}, False),  # kustomize compares the whole name
        ({"name": "filings-25c614e6"}, False),  # the hash is unknown while the run is built
        ({"name": "filings-[0-9]{8}"}, False),
    ],
)
def test_the_name_of_a_run_ends_in_hexadecimal_digits(target: dict[str, str], matches: bool) -> None:
    assert parse_patch_target({"kind": "TrainJob", **target}).matches(RUN) is matches
