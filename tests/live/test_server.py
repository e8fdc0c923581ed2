"""`validate --server`: every object is checked by dry run, and refusals lead to the line that causes them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gangplan.errors import Exit
from gangplan.live.access import ApiRefusedError
from gangplan.live.refusals import NoVerdict, field_of, parse_path_of_refused_field, parse_server_refusals
from tests import workspaces
from tests.live.answers import KUEUE, TRAINER, resources
from tests.live.server import Server, refusal, serving
from tests.workspaces import Outcome, gangplan

RECORDED = Path(__file__).with_name("refusals.json")
SERVED: dict[str, Any] = {
    "/api/v1": resources(
        "configmaps/ConfigMap",
        "namespaces/Namespace!",
        "resourcequotas/ResourceQuota",
        "limitranges/LimitRange",
        "serviceaccounts/ServiceAccount",
        "persistentvolumeclaims/PersistentVolumeClaim",
    ),
    "/apis/networking.k8s.io/v1": resources("networkpolicies/NetworkPolicy"),
    "/apis/rbac.authorization.k8s.io/v1": resources(
        "clusterroles/ClusterRole!", "roles/Role", "rolebindings/RoleBinding"
    ),
    "/apis/scheduling.k8s.io/v1": resources("priorityclasses/PriorityClass!"),
    f"/apis/{KUEUE}": resources(
        "clusterqueues/ClusterQueue!",
        "localqueues/LocalQueue",
        "resourceflavors/ResourceFlavor!",
        "cohorts/Cohort!",
        "topologies/Topology!",
        "workloadpriorityclasses/WorkloadPriorityClass!",
    ),
    f"/apis/{TRAINER}": resources("trainjobs/TrainJob", "trainingruntimes/TrainingRuntime"),
}


class Accepting(dict[str, Any]):
    """Answers of a server that accepts every object except those that it has an answer for."""

    def get(self, path: str, default: Any = None) -> Any:
        """Return the answer for a path."""
        return super().get(path, {} if path.startswith("PATCH ") and path not in self else default)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Render the small workspace."""
    root = workspaces.stock(tmp_path / "workspace")
    workspaces.render(root)
    return root


def validated(root: Path, answers: dict[str, Any], *more: str) -> tuple[Outcome, Server]:
    """Run `validate --server` with a server that gives these answers."""
    with serving() as server:
        server.answers = Accepting(SERVED | answers)
        path = server.kubeconfig(root.parent, "lab")
        outcome = gangplan("validate", "-C", root, "--server", "--kubeconfig", path, *more)
    return outcome, server


def run_path(root: Path, kind: str) -> str:
    """Return the path at which the API server has an object of the only run."""
    (file,) = (root / "rendered/lab/runs/nlp").glob("*-*.yaml")
    return f"/apis/{TRAINER}/namespaces/nlp/{kind}/{file.stem}"


def test_every_object_is_checked_and_none_is_written(root: Path) -> None:
    outcome, server = validated(root, {})
    assert outcome.code == Exit.CLEAN, outcome.err
    assert "server-" not in outcome.err
    assert server.methods == {"GET", "PATCH"}
    asked = [(path, query, body) for method, path, query, body in server.asked if method == "PATCH"]
    assert all(query["dryRun"] == "All" and query["fieldManager"] == "gangplan" for _, query, _ in asked)
    rendered = sum(
        text.decode().count("\nkind: ") + text.decode().startswith("kind: ")
        for name, text in workspaces.rendered(root).items()
        if name.endswith(".yaml")
    )
    assert len(asked) == rendered
    assert run_path(root, "trainjobs") in {path for path, _, _ in asked}


def test_a_refused_field_is_shown_where_it_was_written(root: Path) -> None:
    cause = {
        "reason": "FieldValueInvalid",
        "message": "Invalid value: 4: too many",
        "field": "spec.trainer.numNodes",
    }
    said = refusal(422, "Invalid", 'TrainJob.trainer.kubeflow.org "x" is invalid', causes=[cause])
    outcome, _ = validated(root, {f"PATCH {run_path(root, 'trainjobs')}": said})
    (shown,) = [one for one in outcome.findings if one.rule == "server-schema"]
    line = 1 + workspaces.SPEC.splitlines().index("workers: 4")
    assert shown.place.startswith(f"specs/nlp/filings.yaml:{line}:")
    assert "spec.trainer.numNodes: Invalid value: 4: too many" in shown.message
    assert shown.message.count("TrainJob/nlp/") == 1
    assert outcome.code == Exit.FINDINGS


@pytest.mark.parametrize(
    ("said", "rule", "words"),
    [
        (
            "ValidatingAdmissionPolicy 'no-eu' with binding 'no-eu' denied request: runs of nlp stay in the EU",
            "server-policy",
            "runs of nlp stay in the EU",
        ),
        (
            'admission webhook "validator.trainjob.trainer.kubeflow.org" denied the request: spec.trainer: odd',
            "server-webhook",
            "spec.trainer: odd",
        ),
    ],
)
def test_the_kind_of_the_refusal_is_reported(root: Path, said: str, rule: str, words: str) -> None:
    outcome, _ = validated(root, {f"PATCH {run_path(root, 'trainjobs')}": refusal(422, "Invalid", said)})
    (shown,) = [one for one in outcome.findings if one.rule.startswith("server-")]
    assert shown.rule == rule
    assert words in shown.message


def test_missing_rights_are_reported(root: Path) -> None:
    """For some objects this is a note; for all of them the command ends, with the role that is needed."""
    words = 'trainjobs is forbidden: User "ann" cannot create resource "trainjobs" in API group "x"'
    denied = refusal(403, "Forbidden", words)
    outcome, _ = validated(root, {f"PATCH {run_path(root, 'trainjobs')}": denied})
    (shown,) = [one for one in outcome.findings if one.rule == "server-unasked"]
    assert "you may not create trainjobs.trainer.kubeflow.org" in shown.message
    assert '"verbs":["create","patch"]' in shown.help
    assert outcome.code == Exit.CLEAN
    files = {f"PATCH {run_path(root, kind)}": denied for kind in ("trainjobs", "trainingruntimes")}
    network = run_path(root, "networkpolicies").replace(TRAINER, "networking.k8s.io/v1")
    files[f"PATCH {network}"] = denied
    (scripts,) = (root / "rendered/lab/runs/nlp").glob("launch.*.yaml")
    launch = scripts.stem.replace("launch.", "gangplan-launch-")
    files[f"PATCH /api/v1/namespaces/nlp/configmaps/{launch}"] = denied
    outcome, _ = validated(root, files, "specs/nlp/filings.yaml")
    assert outcome.code == Exit.ENVIRONMENT
    assert "you may not create" in outcome.err


def test_kinds_that_are_not_served_are_reported(root: Path) -> None:
    outcome, _ = validated(root, {f"/apis/{TRAINER}": resources("trainjobs/TrainJob")})
    (shown,) = [one for one in outcome.findings if one.rule == "server-unasked"]
    assert shown.severity == "warning"
    assert "it does not serve TrainingRuntime (trainer.kubeflow.org/v1alpha1)" in shown.message


def test_warnings_of_the_server_are_notes(root: Path) -> None:
    with serving() as server:
        server.answers = Accepting(SERVED)
        server.warnings.append("this version is deprecated")
        path = server.kubeconfig(root.parent, "lab")
        outcome = gangplan("validate", "specs/nlp/filings.yaml", "-C", root, "--server", "--kubeconfig", path)
    found = [one for one in outcome.findings if one.rule == "server-advice"]
    assert len(found) == 4, outcome.err
    assert {one.severity for one in found} == {"note"}


def test_a_server_that_is_too_busy_is_reported(root: Path) -> None:
    said = refusal(429, "TooManyRequests", "the server has received too many requests")
    outcome, _ = validated(root, {f"PATCH {run_path(root, 'trainjobs')}": said})
    assert outcome.code == Exit.ENVIRONMENT
    assert "429" in outcome.err


def test_other_formats_have_the_refusals(root: Path) -> None:
    said = refusal(
        403, "Forbidden", 'x "y" is forbidden: exceeded quota: few, requested: a=1, used: a=1, limited: a=1'
    )
    outcome, _ = validated(root, {f"PATCH {run_path(root, 'trainjobs')}": said}, "--format", "json")
    document = json.loads(outcome.out)
    (one,) = [one for one in document["findings"] if one["rule"] == "server-quota"]
    assert one["severity"] == "warning"


@pytest.mark.parametrize("flags", [("--context", "x"), ("--server", "--shard", "1/2"), ("--kubeconfig", "x")])
def test_invalid_flags_are_refused(root: Path, flags: tuple[str, ...]) -> None:
    assert gangplan("validate", "-C", root, *flags).code == Exit.INPUT


def test_invalid_specs_are_not_sent_to_the_server(root: Path) -> None:
    path = root / "specs/nlp/filings.yaml"
    path.write_text(path.read_text().replace("workers: 4", "workers: 1000"))
    outcome, server = validated(root, {})
    assert outcome.code != Exit.CLEAN
    assert server.asked == []


@pytest.mark.parametrize(
    ("words", "path"),
    [
        ("spec.replicas: Invalid value: 3", ("spec", "replicas")),
        (".spec.trainer.foo: field not declared in schema", ("spec", "trainer", "foo")),
        (
            'unknown field "spec.template.spec.containers[0].imag"',
            ("spec", "template", "spec", "containers", 0, "imag"),
        ),
        ("[spec.a: one, spec.b: two]", ("spec", "a")),
        ("the spec of it is wrong", ()),
        ("metadata.labels[example.com/team]: bad", ("metadata", "labels", "example.com/team")),
    ],
)
def test_fields_are_found_in_messages(words: str, path: tuple[str | int, ...]) -> None:
    assert field_of(words) == path


@pytest.mark.parametrize(
    "words", ["runtime 'a-1' not found", 'TrainingRuntime.trainer.kubeflow.org "a-1" not found']
)
def test_a_runtime_that_comes_with_the_run_is_not_a_refusal(words: str) -> None:
    """Webhooks of Trainer and Kueue are called at the same time, and either may be the first to miss it."""
    body = {"message": f'admission webhook "vtrainjob.kb.io" denied the request: {words}'}
    assert [one.by for one in parse_server_refusals(ApiRefusedError(403, body, "lab"))] == [NoVerdict.EARLIER]


def test_paths_are_parsed() -> None:
    assert parse_path_of_refused_field("spec.a[2]['x.y/z'].b") == ("spec", "a", 2, "x.y/z", "b")


@pytest.mark.parametrize(
    "case",
    json.loads(RECORDED.read_text()) if RECORDED.exists() else [],
    ids=lambda one: f"{one['profile']}-{one['case']}",
)
def test_recorded_refusals_keep_their_meaning(case: dict[str, Any]) -> None:
    """The refusals are those of real API servers (tests/e2e/test_live.py --update), with their meaning."""
    error = ApiRefusedError(case["status"], case["body"], "lab")
    found = [[one.by.name, one.name, list(one.path)] for one in parse_server_refusals(error)]
    assert found == case["means"]
