"""Patches that name jobs by index and match a step: reported once, with the index that is meant."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import workspaces
from tests.workspaces import gangplan, write

JOBS = "/spec/template/spec/replicatedJobs"
POD = "template/spec/template/spec"
ADD = f"{{op: add, path: {JOBS}/%s/{POD}/hostAliases, value: [{{ip: 10.1.1.1, hostnames: [a.example.com]}}]}}"
STEPS = "steps: [{name: tokenize, command: [python, tokenize.py]}, {name: shards, command: [python, s.py]}]\n"
REF = "TrainingRuntime/nlp/filings: the patch changes the"
FIRST = f"{REF} step 'tokenize' of job 'filings'; in runs without steps, replicatedJobs/0 is the workers"
SECOND = f"{REF} step 'shards' of job 'filings'; in runs without steps, replicatedJobs/1 is the launcher"
ALSO = f"{{op: add, path: {JOBS}/0/{POD}/hostUsers, value: true}}"
HELP = (
    "Write labelSelector: gangplan.dev/job notin (filings) in its target, and for the workers of this job"
    " a patch of replicatedJobs/2 with gangplan.dev/job=filings."
)


def told(
    root: Path, *operations: str, selector: str = "", image: str = "pytorch", steps: str = STEPS
) -> list[str]:
    aimed = f", labelSelector: '{selector}'" if selector else ""
    listed = "".join(f"    - {one}\n" for one in operations)
    overlay = (
        "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\npatches:\n"
        f"- target: {{kind: TrainingRuntime{aimed}}}\n  patch: |-\n{listed}"
    )
    spec = workspaces.SPEC.replace("openmpi", image) + steps
    write(root, {"specs/nlp/filings.yaml": spec, "overlays/lab/kustomization.yaml": overlay})
    found = [one for one in gangplan("validate", "-C", root).findings if one.rule == "patch-meets-step"]
    assert all(one.place.startswith("overlays/lab/kustomization.yaml:6:") for one in found)
    assert all(one.severity == "warning" for one in found)
    return [one.message for one in found]


# Operations, labelSelector, image; messages.
CASES: dict[str, tuple[tuple[str, ...], str, str, list[str]]] = {
    "the workers are meant": ((ADD % 0,), "", "pytorch", [FIRST]),
    "two operations at one number": ((ADD % 0, ALSO), "", "pytorch", [FIRST]),
    "the launcher is meant": ((ADD % 1,), "", "openmpi", [SECOND]),
    "a number that runs without steps do not have": ((ADD % 2,), "", "pytorch", []),
    "aimed at the job": ((ADD % 2,), "gangplan.dev/job=filings", "pytorch", []),
    "aimed at the first step": ((ADD % 0,), "gangplan.dev/job in (filings)", "pytorch", []),
    "aimed at all others but one": ((ADD % 0,), "gangplan.dev/job notin (other)", "pytorch", [FIRST]),
    "aimed at a team": ((ADD % 0,), "gangplan.dev/team=nlp", "pytorch", [FIRST]),
    "it tests the name": (
        (f"{{op: test, path: {JOBS}/0/name, value: tokenize}}", ADD % 0),
        "",
        "pytorch",
        [],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_patches_that_change_a_step_by_its_index_are_reported(name: str, root: Path) -> None:
    operations, selector, image, said = CASES[name]
    assert told(root, *operations, selector=selector, image=image) == said


def test_the_help_names_the_index_that_is_meant(root: Path) -> None:
    told(root, ADD % 0)
    (found,) = (one for one in gangplan("validate", "-C", root).findings if one.rule == "patch-meets-step")
    assert found.help == HELP
    assert told(root, ADD % 0, steps="") == []
