"""What controllers create for a run, as gangplan predicts it for policies, compared with a real control
plane."""

from __future__ import annotations

from typing import Any

import pytest

from gangplan.source import load_objects
from gangplan.validate.made import UID, MadeObject, list_objects_made_by_controllers
from gangplan.workspace import load_workspace
from tests.e2e import story, world
from tests.golden import render_example
from tests.lab import fixtures
from tests.lab.client import ApiError, poll
from tests.lab.lab import Lab
from tests.lab.stages import Plot, Story

pytestmark = pytest.mark.e2e
EXAMPLE = story.ROOT / "tests/examples/openmpi5-cpu"
# Kueue's sample, "Set up a job admission policy", for JobSets.
QUEUED = """\
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: queued}
spec:
  failurePolicy: Fail
  matchConstraints:
    resourceRules:
    - {apiGroups: [jobset.x-k8s.io], apiVersions: [v1alpha2], operations: [CREATE], resources: [jobsets]}
  validations:
  - expression: object.metadata.?labels['kueue.x-k8s.io/queue-name'].orValue('') != ''
    message: name a queue
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: queued}
spec: {policyName: queued, validationActions: [Deny]}
"""


def differences(made: MadeObject, real: dict[str, Any]) -> list[str]:
    """Return where gangplan's prediction of an object is wrong, except for values that only a cluster
    knows."""
    mine, theirs = made.body["metadata"], real["metadata"]
    found = [
        f"label {key}: {value} is {theirs.get('labels', {}).get(key)}"
        for key, value in (mine.get("labels") or {}).items()
        if UID.replace("-", "") not in value.replace("-", "") and theirs.get("labels", {}).get(key) != value
    ]
    more = {*theirs.get("labels", {})} - {*(mine.get("labels") or {})}
    found += [
        f"label {key} is not predicted" for key in more if not key.startswith(("jobset.", "kueue.", "batch."))
    ]
    (owner,) = theirs["ownerReferences"]
    said = made.body["metadata"]["ownerReferences"][0]
    found += [f"owner {said[key]} is {owner[key]}" for key in ("kind", "name") if owner[key] != said[key]]
    return [f"{made.body['kind']} {mine['name']}: {one}" for one in found]


def test_predicted_objects_equal_those_that_controllers_create() -> None:
    profile = fixtures.chosen()
    fixtures.require(profile)
    if profile.name != "new":
        pytest.skip("the example is for the versions of profile new")
    spec = load_workspace(EXAMPLE / "input").clusters["lab"].spec
    with Lab(profile) as lab:
        lab.add_nodes(world.nodes(spec))
        lab.tell(Story(Plot.RUN, namespace=None, run=None))
        tree = render_example(EXAMPLE.name) / "lab"
        (run,) = world.run_files(tree)
        for folder in ("platform", "tenants", "runs"):
            for path in sorted({*(tree / folder).rglob("*.yaml")} - {run}):
                for body in load_objects(path.read_text()):
                    lab.client.apply_patiently(body)
        bodies = load_objects(run.read_text())
        for body in bodies:
            lab.client.apply_patiently(body)
        predicted = list_objects_made_by_controllers(bodies)
        assert {one.body["kind"] for one in predicted} >= {
            "JobSet",
            "Job",
            "Pod",
            "Service",
            "Secret",
            "Workload",
        }

        def real(made: MadeObject) -> dict[str, Any] | None:
            metadata = made.body["metadata"]
            name = metadata["name"].removesuffix("aaaaa")
            every = lab.client.list(made.body["kind"], metadata["namespace"])
            return next((one for one in every if one["metadata"]["name"].startswith(name)), None)

        def missing() -> list[str]:
            return [
                f"{one.body['kind']} {one.body['metadata']['name']}" for one in predicted if not real(one)
            ]

        poll(lambda: not missing(), 60, lambda: f"not there: {missing()}")
        wrong = [one for made in predicted for one in differences(made, real(made) or {})]
        assert wrong == []
        # The server accepts the complete ones unchanged, and the sample policy refuses the JobSet among them.
        whole = [one.body for one in predicted if one.is_whole]
        for body in whole:
            again = {**body, "metadata": {**body["metadata"], "name": f"x{body['metadata']['name']}"[:60]}}
            lab.client.create(again, dry_run=True)
        for body in load_objects(QUEUED):
            lab.client.apply_patiently(body)

        def refused() -> bool:
            (job_set,) = (body for body in whole if body["kind"] == "JobSet")
            again = {**job_set, "metadata": {**job_set["metadata"], "name": "another"}}
            try:
                lab.client.create(again, dry_run=True)
            except ApiError as error:
                return "name a queue" in str(error)
            return False

        poll(refused, 60, lambda: "the server let the JobSet in")
