"""rendered/ must hold only what gangplan writes: `validate` and `render --check` report anything else."""

from __future__ import annotations

import os
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import pytest

from gangplan.errors import Exit
from gangplan.objects import dump_object_as_block_yaml
from tests import workspaces
from tests.security.test_kept import BINDING
from tests.workspaces import gangplan, render, write

MARK = "# Rendered by gangplan from overlays/lab/cluster.yaml\n"
JOB = f"{MARK}apiVersion: trainer.kubeflow.org/v1alpha1\nkind: TrainJob\n"
ROLE = "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: more}\n"
TENANT, PLATFORM = "rendered/lab/tenants/nlp/tenant.yaml", "rendered/lab/platform/roles.yaml"
FILES = {
    "a binding": ("rendered/lab/platform/more.yaml", BINDING),
    "in a folder of a run": ("rendered/lab/runs/nlp/more.yaml", BINDING),
    "next to the clusters": ("rendered/more.yaml", BINDING),
    "in JSON": ("rendered/lab/platform/more.json", "{}"),
    "in Jsonnet": ("rendered/lab/platform/more.jsonnet", "{}"),
    "a kustomization": (
        "rendered/lab/platform/kustomization.yaml",
        "resources: [https://evil.example.com]\n",
    ),
    "a chart": ("rendered/lab/platform/Chart.yaml", "name: evil\n"),
    "settings of Argo CD": ("rendered/lab/runs/.argocd-source.yaml", "kustomize: {}\n"),
    "a hidden file": ("rendered/lab/runs/nlp/.more.yaml", BINDING),
    "attributes that hide a difference": ("rendered/.gitattributes", "* -diff\n"),
    "an empty file": ("rendered/lab/more.yaml", ""),
    "the mark, later": ("rendered/lab/more.yaml", f"kind: TrainJob\n{MARK}"),
    "another cluster": ("rendered/prod/platform/roles.yaml", BINDING),
}
# These have our mark; the name or the content gives them away. validate looks, --check compares.
COPIES = {
    "another name": ("rendered/lab/platform/more.yaml", MARK + BINDING),
    "another cluster's": ("rendered/prod/platform/roles.yaml", MARK + BINDING),
    "another team's": ("rendered/lab/tenants/vision/tenant.yaml", MARK + BINDING),
    "a run": ("rendered/lab/runs/nlp/filings-01234567.yaml", MARK + BINDING),
    "a run in another namespace": (
        "rendered/lab/runs/nlp/filings-01234567.yaml",
        f"{JOB}metadata: {{name: filings-01234567, namespace: kube-system}}\n",
    ),
    "a run of another name": (
        "rendered/lab/runs/nlp/filings-01234567.yaml",
        f"{JOB}metadata: {{name: other, namespace: nlp}}\n",
    ),
    "a run of nobody": (
        "rendered/lab/runs/ghosts/filings-01234567.yaml",
        f"{JOB}metadata: {{name: filings-01234567, namespace: ghosts}}\n",
    ),
    "no YAML": ("rendered/lab/runs/nlp/filings-01234567.yaml", f"{MARK}{{\n"),
    "launch scripts in no team": ("rendered/lab/runs/launch.01234567.yaml", MARK + BINDING),
    "launch scripts too deep": ("rendered/lab/runs/nlp/deep/launch.01234567.yaml", MARK + BINDING),
}
MORE: dict[str, tuple[str, Callable[[str], str]]] = {
    "a document more in a tenant": (TENANT, lambda text: text + BINDING),
    "a document more in the platform": (PLATFORM, lambda text: text + BINDING),
    "an object twice": (TENANT, lambda text: text + "---\n" + text.partition("---\n")[0]),
    "a role of the same kind": (
        PLATFORM,
        lambda text: f"{text}---\n{ROLE}",
    ),
}


@pytest.fixture
def done(root: Path) -> Path:
    render(root)
    assert gangplan("validate", "-C", root).code == Exit.CLEAN
    return root


@pytest.mark.parametrize("name", FILES)
def test_an_unmanaged_file_is_reported(done: Path, name: str) -> None:
    path, text = FILES[name]
    write(done, {path: text})
    for command in (
        ("validate",),
        ("render", "--check"),
        ("validate", "--keep-runs"),
        ("validate", "specs/nlp"),
    ):
        outcome = gangplan(*command, "-C", done)
        assert outcome.errors() == [(f"{path}:1:1", "rendered-foreign")], (command, outcome.err)
        assert outcome.code == Exit.FINDINGS
        assert "is fresh" not in outcome.out + outcome.err


@pytest.mark.parametrize("name", COPIES)
def test_a_file_that_copies_our_mark_is_reported(done: Path, name: str) -> None:
    path, text = COPIES[name]
    write(done, {path: text})
    outcome = gangplan("validate", "-C", done)
    assert set(outcome.errors()) == {(f"{path}:1:1", "rendered-foreign")}, outcome.err
    outcome = gangplan("render", "--check", "-C", done)
    assert outcome.code == Exit.FINDINGS
    assert path in outcome.out + outcome.err


@pytest.mark.parametrize("name", MORE)
def test_an_extra_object_in_a_rendered_file_is_reported(done: Path, name: str) -> None:
    path, change = MORE[name]
    text = (done / path).read_text()
    write(done, {path: change(text)})
    outcome = gangplan("validate", "-C", done)
    assert outcome.errors() == [(f"{path}:1:1", "rendered-foreign")], outcome.err
    assert gangplan("render", "--check", "-C", done).code == Exit.FINDINGS


@pytest.mark.parametrize("kind", ["file", "folder", "dangling", "pipe", "tree"])
def test_links_and_pipes_in_rendered_are_reported(done: Path, tmp_path: Path, kind: str) -> None:
    outside = write(tmp_path / "outside", {"a.yaml": f"{MARK}{BINDING}"})
    place = done / "rendered/lab/link.yaml"
    if kind == "pipe":
        os.mkfifo(place)
    elif kind == "tree":
        place = done / "rendered"
        place.rename(tmp_path / "moved")
        place.symlink_to(tmp_path / "moved")
    else:
        place.symlink_to({"file": outside / "a.yaml", "folder": outside, "dangling": tmp_path / "no"}[kind])
    outcome = gangplan("validate", "-C", done)
    assert outcome.errors() == [(f"{place.relative_to(done).as_posix()}:1:1", "rendered-foreign")]


def test_earlier_runs_and_readme_files_are_accepted(done: Path) -> None:
    """Between an edit and the next render, the earlier run is still in rendered/."""
    write(done, {"rendered/README.md": "Do not edit.\n", "rendered/lab/.gitkeep": ""})
    write(done, {"specs/nlp/filings.yaml": workspaces.SPEC.replace("workers: 4", "workers: 3")})
    assert gangplan("validate", "-C", done).code == Exit.CLEAN
    (done / "specs/nlp/filings.yaml").unlink()
    write(done, {"specs/nlp/other.yaml": workspaces.SPEC})
    assert gangplan("validate", "-C", done).code == Exit.CLEAN
    assert gangplan("render", "--check", "-C", done).code == Exit.FINDINGS


SCRIPTS = {"common.sh": "exit 0\n", "launcher.sh": "exit 1\n"}
LISTED = "".join(f"{sha256(text.encode()).hexdigest()}  {name}\n" for name, text in SCRIPTS.items())
DIGITS = sha256(LISTED.encode()).hexdigest()[:8]


def earlier(namespace: str, team: str = "nlp", **fields: object) -> str:
    """Return a file of launch scripts as an earlier gangplan may have written it."""
    labels = {"app.kubernetes.io/managed-by": "gangplan"}
    name = {"name": f"gangplan-launch-{DIGITS}", "namespace": namespace, "labels": labels}
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": name, "immutable": True, "data": SCRIPTS}
    return (
        f"# Rendered by gangplan from specs/{team}/team.yaml\n{dump_object_as_block_yaml({**body, **fields})}"
    )


@pytest.mark.parametrize(
    ("team", "text", "is_ours"),
    [
        ("nlp", earlier("nlp"), True),
        ("gone", earlier("gone", "gone"), True),
        ("gone", earlier("gone-ns", "gone"), True),
        ("gone", earlier("nlp", "gone"), False),
        ("gone", earlier("kube-system", "gone"), False),
        ("nlp", earlier("other"), False),
        ("nlp", earlier("nlp", "other"), False),
        ("nlp", earlier("nlp", data={**SCRIPTS, "common.sh": "exit 2\n"}), False),
        ("nlp", earlier("nlp", data={}), False),
        ("nlp", earlier("nlp", immutable=False), False),
        ("nlp", earlier("nlp", binaryData={"zz.sh": "eA=="}), False),
        ("nlp", earlier("nlp", kind="Secret"), False),
    ],
)
def test_earlier_launch_scripts_are_accepted_if_they_are_what_their_name_says(
    done: Path, team: str, text: str, is_ours: bool
) -> None:
    """After an upgrade, those of the runs before it are still there."""
    path = f"rendered/lab/runs/{team}/launch.{DIGITS}.yaml"
    write(done, {path: text})
    outcome = gangplan("validate", "-C", done)
    assert outcome.errors() == ([] if is_ours else [(f"{path}:1:1", "rendered-foreign")]), outcome.err
    assert gangplan("render", "--check", "-C", done).code == Exit.FINDINGS


def test_without_rendered_nothing_is_reported(root: Path) -> None:
    assert gangplan("validate", "-C", root).code == Exit.CLEAN


def test_unmanaged_files_are_reported_with_other_errors(done: Path) -> None:
    write(done, {"rendered/more.yaml": BINDING, "specs/nlp/second.yaml": "kind: TrainingJob\n"})
    rules = {rule for _, rule in gangplan("validate", "-C", done).errors()}
    assert {"rendered-foreign", "spec-missing-field"} <= rules
