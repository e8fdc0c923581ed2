"""Waivers at the API server: it admits what gangplan excuses, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from gangplan.emit import is_run_file
from gangplan.gitops.record import build_run_record
from gangplan.pipeline.render import preview_render
from gangplan.pipeline.request import Request
from gangplan.policy.export import export_objects
from gangplan.source import load_objects
from gangplan.workspace import load_workspace
from tests import workspaces
from tests.e2e.policies.server import Server
from tests.lab.lab import Lab

pytestmark = pytest.mark.e2e
Object = dict[str, Any]
NAMESPACE = "waived-team"
CLUSTER = (
    workspaces.WIDE_CLUSTER.replace("  nlp: {", f"  nlp: {{namespace: {NAMESPACE}, ", 1)
    + "policies: {packs: [baseline, lifecycle]}\n"
)
TEAM = workspaces.TEAM
LONG = workspaces.SPEC + "timeout: 14d\nextendedTimeout: true\n"
WAIVER = """\
apiVersion: gangplan.dev/v1
kind: Waiver
rule: timeout-over-limit
scope: {team: nlp, job: filings}
reason: The solver cannot save its state.
approver: ml-platform@example.com
expires: "2199-12-31"
limit: {timeout: 14d}
"""


@dataclass(frozen=True)
class World:
    """The exported policies in force, and the objects of a waived run with a timeout of 14 days."""

    server: Server
    waived: list[Object]
    root: Path


@pytest.fixture(scope="module")
def world(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    root = workspaces.stock(tmp_path_factory.mktemp("waivers") / "workspace")
    workspaces.write(
        root,
        {
            "overlays/lab/cluster.yaml": CLUSTER,
            "specs/nlp/team.yaml": TEAM,
            "specs/nlp/filings.yaml": LONG,
            "policies/waivers/solver.yaml": WAIVER,
        },
    )
    result = preview_render(Request(root, engine="serial"))
    assert not result.has_errors, result.findings
    (text,) = [text for path, text in result.texts.items() if is_run_file(path)]
    lab.client.apply(
        {
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {"name": NAMESPACE, "labels": {"gangplan.dev/team": "nlp"}},
        }
    )
    server = Server(lab.client)
    server.install(export_objects(load_workspace(root), "lab"))
    try:
        yield World(server, [body for body in load_objects(text) if body["kind"] != "NetworkPolicy"], root)
    finally:
        server.remove()
        lab.client.delete("Namespace", NAMESPACE)


def refusals(world: World, bodies: list[Object]) -> set[str]:
    """Return the policies that refuse objects."""
    texts = [world.server.ask(body).refusal for body in bodies]
    return {
        text.split("'")[1].removeprefix("gangplan-") for text in texts if "ValidatingAdmissionPolicy" in text
    }


def relabelled(bodies: list[Object], **labels: str | None) -> list[Object]:
    """Return the objects with other labels below gangplan.dev/ (None removes one), also in their
    templates."""

    def change(value: Any) -> Any:
        if isinstance(value, list):
            return [change(one) for one in value]
        if not isinstance(value, dict):
            return value
        copy = {key: change(one) for key, one in value.items()}
        if isinstance(copy.get("labels"), dict):
            for name, text in labels.items():
                copy["labels"].pop(f"gangplan.dev/{name.replace('_', '-')}", None)
                if text is not None:
                    copy["labels"][f"gangplan.dev/{name.replace('_', '-')}"] = text
        return copy

    return [change(body) for body in bodies]


def test_the_waived_run_is_admitted(world: World) -> None:
    assert {body["kind"] for body in world.waived} == {"TrainingRuntime", "TrainJob"}
    assert refusals(world, world.waived) == set()


def test_a_run_without_the_waivers_mark_is_refused(world: World) -> None:
    assert refusals(world, relabelled(world.waived, waived_run_deadline=None)) == {"run-deadline"}


def test_the_waivers_mark_on_another_job_is_refused(world: World) -> None:
    """A user who may create runs writes the label by hand, but the waiver is for another job."""
    assert refusals(world, relabelled(world.waived, job="other")) == {"waiver-granted"}


def test_the_guard_cannot_be_waived_by_a_label(world: World) -> None:
    forged = relabelled(world.waived, job="other", waived_waiver_granted="true")
    assert refusals(world, forged) == {"waiver-granted"}


def test_a_waiver_that_ended_admits_no_new_runs(world: World) -> None:
    """Nothing is rendered again: the server uses its own clock. Pods of runs that exist may still be
    created."""
    client, name = world.server.client, "gangplan-waiver-granted"
    data = client.get("ConfigMap", name, "gangplan-policies")["data"]
    assert "2199-12-31=" in data["until"]
    over = {**data, "until": data["until"].replace("2199-12-31", "2020-01-31")}
    client.patch("ConfigMap", name, {"data": over}, "gangplan-policies")
    world.server.settle()
    try:
        assert refusals(world, world.waived) == {"waiver-granted"}
        words = "the waiver of job 'filings' in namespace 'waived-team' ended on 2020-01-31; renew it"
        assert all(words in world.server.ask(body).refusal for body in world.waived)
        (runtime,) = (body for body in world.waived if body["kind"] == "TrainingRuntime")
        assert "waiver" not in world.server.ask(pod_of(runtime)).refusal
        assert (
            refusals(world, [one for one in build_run_record(world.waived) if one["kind"] == "TrainJob"])
            == set()
        )
    finally:
        client.patch("ConfigMap", name, {"data": data}, "gangplan-policies")
        world.server.settle()


def pod_of(runtime: Object) -> Object:
    """Return a pod of the runtime's last role."""
    template = runtime["spec"]["template"]["spec"]["replicatedJobs"][-1]["template"]["spec"]["template"]
    labels = {**runtime["metadata"]["labels"], **(template.get("metadata") or {}).get("labels", {})}
    metadata = {"name": "retry", "namespace": NAMESPACE, "labels": labels}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]}
