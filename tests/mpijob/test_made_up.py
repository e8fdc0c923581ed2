"""A made-up backend: with a row in each table and a generator, its runs are rendered and proved."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import gangplan as gangplan_package
from gangplan import generators
from gangplan.generators.common import TemplateRenderer
from gangplan.generators.mpijob import generate_mpi_job
from gangplan.gitops import argocd, flux, health
from gangplan.live import whole
from gangplan.model import backend, kinds
from gangplan.plan import RunPlan
from gangplan.trace import run as traced
from gangplan.validate import consistency, expand, made, promise, transition, world
from gangplan.validate.expand import ExpandedPods
from gangplan.validate.kueue import proof
from gangplan.validate.network import pods
from gangplan.validate.promise import roles
from gangplan.validate.trainer import launching, lifecycle
from tests.mpijob.base import Body, run, spec, workspace
from tests.workspaces import gangplan

# Programs that are run on their own.
LEFT_OUT = ("gangplan.__main__", "gangplan.engines.mpi", "gangplan.local.hop", "gangplan.local.tag")
REPOSITORY = "https://git.example.com/a.git"
COMPONENT = "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\n"
KIND, GROUP, ROLE, RUN = "RankJob", "example.com", "example.com/role", "example.com/run"
# It replaces the MPI operator, whose version is in the cluster's file.
RANKJOB = replace(
    backend.MPIJOB,
    kind=KIND,
    api_version=f"{GROUP}/v1",
    plural="rankjobs",
    controller="the rank operator",
    run_label=RUN,
    role_label=ROLE,
    roles=(("launcher", "head"), ("worker", "rank")),
    suspended=("spec", "suspend"),
    holder=KIND,
    index_label="example.com/index",
    workers=("spec", "ranks"),
    manager="",
    by_jobset=False,
)
CRD = f"""\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {{name: rankjobs.{GROUP}}}
spec:
  group: {GROUP}
  names: {{kind: {KIND}, plural: rankjobs}}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            required: [ranks, head, rank]
            properties:
              ranks: {{type: integer, minimum: 1}}
              head: {{type: object, x-kubernetes-preserve-unknown-fields: true}}
              rank: {{type: object, x-kubernetes-preserve-unknown-fields: true}}
"""


# Every table in which a backend has a row, by the attribute that is the key of its rows.
TABLES = {
    "name": (generators.RUN_GENERATORS, pods.LABELS, argocd.DRIFTS, flux._REPLACING),
    "kind": (
        *(expand.EXPANDERS, consistency.CHECKS, lifecycle.TRAPS, proof._RESIZED),
        *(made._SKETCHES, made._MAKERS, whole._CHILDREN, traced.RUN_TABLES),
        {one.name: one for one in health.HEALTH_KINDS},
        {one.name: one for one in kinds.RENDERED_KINDS},
    ),
    "holder": (world.TEMPLATES, roles._PODS, launching._LAUNCHERS, transition.EDITED),
    "stated": (argocd.MADE_BY,),
}


@pytest.mark.parametrize("attribute", TABLES)
def test_every_table_has_a_row_for_each_backend(attribute: str) -> None:
    wanted = {getattr(one, attribute) for one in backend.BACKENDS.values()}
    assert [sorted(table) for table in TABLES[attribute] if not wanted <= {*table}] == []


def rank_job(unit: RunPlan, write: TemplateRenderer) -> list[Body]:
    """Return the object that its controller reads: two templates and a number."""
    (made,) = generate_mpi_job(unit)
    roles = made["spec"]["mpiReplicaSpecs"]
    own = {"ranks": roles["Worker"]["replicas"]}
    own |= {"head": roles["Launcher"]["template"], "rank": roles["Worker"]["template"]}
    return [{"apiVersion": RANKJOB.api_version, "kind": KIND, "metadata": made["metadata"], "spec": own}]


def templates(body: Body) -> Iterator[tuple[Any, Body]]:
    for name in ("head", "rank"):
        yield ("spec", name), body["spec"][name]


def expanded(job: Body, holder: Body, index: int) -> list[ExpandedPods]:
    found = []
    for (at, template), count in zip(templates(job), (1, job["spec"]["ranks"]), strict=True):
        entry = {"name": at[1], "template": {"spec": {"template": template}}}
        found.append(ExpandedPods(at[1], 1, count, count, template, entry, index, at, at))
    return found


def labels(job: Body, holder: Body, every: Sequence[ExpandedPods], at: int) -> pods.PodLabels:
    own = {RUN: job["metadata"]["name"], ROLE: every[at].name}
    return pods.PodLabels(
        {key: pods.build_label_values(value) for key, value in {**every[at].labels, **own}.items()}, ""
    )


@pytest.fixture
def made_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Add the rows; modules imported later would keep what they derive from them, so import all first."""
    for module in pkgutil.walk_packages(gangplan_package.__path__, "gangplan."):
        if not module.name.startswith(LEFT_OUT):
            importlib.import_module(module.name)
    name = RANKJOB.name
    monkeypatch.setitem(backend.BACKENDS, name, RANKJOB)
    monkeypatch.setitem(backend.BACKEND_BY_KIND, KIND, RANKJOB)
    monkeypatch.setitem(backend.BACKEND_BY_HOLDER, KIND, RANKJOB)
    row = kinds.RenderedKind(KIND, GROUP, (("runs", 10),), needs=RANKJOB.stated)
    others = tuple(one for one in kinds.RENDERED_KINDS if one.name != backend.MPIJOB.kind)
    monkeypatch.setattr(kinds, "RENDERED_KINDS", (*others, row))
    monkeypatch.setitem(kinds.SYNC_WAVES, ("runs", KIND), 10)
    monkeypatch.setitem(
        generators.RUN_GENERATORS, name, {**generators.RUN_GENERATORS[name], "mpijob": rank_job}
    )
    monkeypatch.setitem(world.TEMPLATES, KIND, templates)
    monkeypatch.setitem(expand.EXPANDERS, KIND, expanded)
    monkeypatch.setitem(pods.LABELS, name, labels)
    monkeypatch.setitem(argocd.DRIFTS, name, lambda _: (("/spec/suspend",), ()))
    monkeypatch.setitem(promise.INSTEAD, name, lambda: ())


@pytest.fixture
def root(tmp_path: Path, made_up: None) -> Path:
    """Write a workspace whose cluster serves the kind."""
    (tmp_path / "crd.yaml").write_text(CRD, encoding="utf-8")
    found = workspace(tmp_path / "workspace", spec())
    outcome = gangplan("schema", "import", tmp_path / "crd.yaml", "-C", found)
    assert outcome.code == 0, outcome.err
    return found


def test_runs_of_the_made_up_backend_are_rendered(root: Path) -> None:
    (job,) = [body for body in run(root) if body["kind"] == KIND]
    assert job["spec"]["ranks"] == 3
    assert job["metadata"]["annotations"]["argocd.argoproj.io/sync-wave"] == "10"


def test_pods_of_the_made_up_backend_are_proved(root: Path) -> None:
    """The run has no findings; with too many workers, Kueue's choice of another pool is reported."""
    run(root)
    outcome = gangplan("validate", "-C", root, "--engine", "serial")
    assert (outcome.code, outcome.findings) == (0, []), outcome.err
    workspace(root, spec().replace("workers: 3", "workers: 90"))
    outcome = gangplan("validate", "-C", root, "--engine", "serial")
    found = {one.rule: one.message for one in outcome.findings}
    assert set(found) == {"admitted-elsewhere", "workers-many", "rendered-stale"}
    assert found["admitted-elsewhere"].startswith("RankJob/nlp/filings: workers are planned on pool 'cpu'")


def test_a_blocked_connection_between_its_pods_is_reported(root: Path) -> None:
    change = '[{"op": "remove", "path": "/spec/ingress"}]'
    target = "target: {kind: NetworkPolicy, name: filings-.*}"
    patch = f"{COMPONENT}patches:\n- {target}\n  patch: '{change}'\n"
    workspace(root, spec(), **{"overlays/lab/kustomization.yaml": patch})
    outcome = gangplan("validate", "-C", root, "--engine", "serial")
    assert "network-unreachable" in {one.rule for one in outcome.findings}, outcome.err


def test_both_engines_apply_the_made_up_kind(root: Path) -> None:
    run(root)
    argo = gangplan("gitops", "argocd", "-C", root, "--repo", REPOSITORY).out.partition("# settings/")[0]
    for text in (argo, gangplan("gitops", "flux", "-C", root, "--repo", REPOSITORY).out):
        assert KIND in text
        assert backend.MPIJOB.kind not in text
