"""Files no longer rendered are stale, reported once; files that gangplan did not write are unmanaged."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from gangplan.errors import Exit
from tests.workspaces import CLUSTER, SPEC, STOCK, TEAM, gangplan, render, write

CV = "  cv: {queue: training}\n"
PACKS = "policies: {packs: [images]}\n"
SEEN = "monitoring: {namespace: watch}\n"
WATCHED = "monitoring: {}\n"  # in the namespace monitoring, which no team may have
DISKS = "storageClasses: {fast: {accessModes: [ReadWriteOnce], default: true}}\n"
CRON = "schedules: {client: pytorch, egress: [s3]}\n"
CLAIM = "  made: {accessModes: [ReadWriteOnce], size: 1Gi}\n"
FILES = {
    **STOCK,
    "overlays/lab/cluster.yaml": CLUSTER + CV + PACKS + SEEN + DISKS + CRON,
    "overlays/far/cluster.yaml": CLUSTER + WATCHED,
    "specs/nlp/team.yaml": TEAM,
    "specs/nlp/mounts.yaml": f"{SPEC}files: {{./ds.json: /etc/job/ds.json}}\n",
    "specs/nlp/ds.json": "{}\n",
    "specs/nlp/nightly.yaml": f"{SPEC}schedule: {{cron: '0 2 * * *', timeZone: Europe/Berlin}}\n",
    "specs/cv/team.yaml": TEAM.replace("claims:\n", f"claims:\n{CLAIM}"),
    "specs/cv/first.yaml": SPEC,
}
PLATFORM, TENANT = "rendered/lab/platform/queues.yaml", "rendered/lab/tenants/cv/tenant.yaml"
POLICIES = "rendered/lab/platform/policies.yaml"


@pytest.fixture(scope="module")
def rendered(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Render two teams on a cluster with policies and dashboards; one team is on another cluster, too."""
    root = write(tmp_path_factory.mktemp("past") / "w", FILES)
    render(root)
    outcome = gangplan("validate", "-C", root)
    assert outcome.errors() == [], outcome.err
    return root


@pytest.fixture
def done(rendered: Path, tmp_path: Path) -> Path:
    """Copy the rendered workspace."""
    return shutil.copytree(rendered, tmp_path / "w", symlinks=True)


Change = Callable[[Path], object]


def edit(file: str, old: str, new: str = "") -> Change:
    """Replace a text in a file."""

    def change(root: Path) -> None:
        text = (root / file).read_text()
        assert old in text
        (root / file).write_text(text.replace(old, new))

    return change


def all_of(*changes: Change) -> Change:
    return lambda root: [change(root) for change in changes]


def gone(*paths: str) -> Change:
    """Remove files and folders."""

    def change(root: Path) -> None:
        for path in paths:
            (shutil.rmtree if (root / path).is_dir() else Path.unlink)(root / path)

    return change


def joined(root: Path) -> None:
    """Join the platform's files into one, as it was before each part had its own."""
    folder = root / "rendered/lab/platform"
    texts = []
    for name in ("roles", "priorities", "queues", "alerts", "dashboards"):
        texts.append((folder / f"{name}.yaml").read_text())
        (folder / f"{name}.yaml").unlink()
    (folder / "platform.yaml").write_text("---\n".join(texts))


def followed(root: Path) -> None:
    """Render another job that comes after the one of team cv."""
    write(root, {"specs/cv/late.yaml": f"{SPEC}after: [first]\n"})
    render(root)


OFF = all_of(edit("overlays/lab/cluster.yaml", CV), gone("specs/cv/first.yaml"))
# The change, and how many files are outdated or no longer rendered.
STALE: dict[str, tuple[Change, str]] = {
    "the last spec of a team": (gone("specs/cv/first.yaml"), "2 files (2 no longer rendered)"),
    "a spec with files": (gone("specs/nlp/mounts.yaml"), "1 file (1 no longer rendered)"),
    "a schedule": (gone("specs/nlp/nightly.yaml"), "1 file (1 no longer rendered)"),
    "a spec renamed": (
        lambda root: (root / "specs/cv/first.yaml").rename(root / "specs/cv/second.yaml"),
        "2 files (1 missing, 1 no longer rendered)",
    ),
    "a team off a cluster": (OFF, "no longer rendered"),
    "a team with its folder": (
        all_of(edit("overlays/lab/cluster.yaml", CV), gone("specs/cv")),
        "no longer rendered",
    ),
    "the last packs": (edit("overlays/lab/cluster.yaml", PACKS), "1 no longer rendered"),
    "dashboards": (edit("overlays/lab/cluster.yaml", SEEN), "2 files (2 no longer rendered)"),
    "dashboards in a namespace of the platform": (
        edit("overlays/far/cluster.yaml", WATCHED),
        "2 files (2 no longer rendered)",
    ),
    "a claim": (
        edit("specs/cv/team.yaml", CLAIM),
        "not as rendered now",
    ),
    "a pool": (
        edit(
            "overlays/lab/cluster.yaml",
            "  a100-spot: {count: 4, cpu: 124, memory: 1900Gi, gpu: {model: a100-80gb, count: 8},"
            " labels: {pool: spot}, capacity: spot}\n",
        ),
        "not as rendered now",
    ),
    "the job before another": (
        all_of(followed, edit("specs/cv/first.yaml", "cpu: 8", "cpu: 4")),
        "not as rendered now",
    ),
    "a platform in one file": (joined, "6 files (5 missing, 1 no longer rendered)"),
    "a cluster": (gone("overlays/far"), "no longer rendered"),
}


@pytest.mark.parametrize("name", STALE)
def test_files_no_longer_rendered_are_stale_and_reported_once(name: str, done: Path) -> None:
    change, words = STALE[name]
    change(done)
    outcome = gangplan("validate", "-C", done)
    told = [one for one in outcome.findings if one.place.startswith("rendered/")]
    assert [(one.severity, one.rule) for one in told] == [("warning", "rendered-stale")], outcome.err
    assert words in told[0].message
    assert told[0].help == "Run gangplan render, and commit rendered/."
    checked = gangplan("render", "--check", "-C", done)
    assert (checked.code, {one.rule for one in checked.findings if one.severity == "error"}) == (
        Exit.FINDINGS,
        {"rendered-stale"},
    )
    render(done)
    assert gangplan("render", "--check", "-C", done).code == Exit.CLEAN


LABELS = "labels: {app.kubernetes.io/managed-by: gangplan}"
MORE = "---\napiVersion: {api}\nkind: {kind}\nmetadata: {{name: more, {where}{labels}}}\n"


def more(file: str, kind: str, api: str, namespace: str = "", labels: str = LABELS) -> Change:
    """Add an object at the end of a rendered file."""
    where = f"namespace: {namespace}, " if namespace else ""

    def change(root: Path) -> None:
        text = MORE.format(api=api, kind=kind, where=where, labels=labels)
        with (root / file).open("a") as out:
            out.write(text)

    return change


def moved(file: str, to: str) -> Change:
    """Rename a rendered file."""

    def change(root: Path) -> None:
        (root / to).parent.mkdir(parents=True, exist_ok=True)
        (root / file).rename(root / to)

    return change


def in_run(old: str, new: str) -> Change:
    """Replace a text in the run of the team that is removed."""

    def change(root: Path) -> None:
        (path,) = (root / "rendered/lab/runs/cv").glob("*-*.yaml")
        edit(path.relative_to(root).as_posix(), old, new)(root)

    return change


def added_to_run(kind: str, api: str, ending: str = "") -> Change:
    """Add an object at the end of the run of team cv, under the run's name with an ending or another one."""

    def change(root: Path) -> None:
        (path,) = (root / "rendered/lab/runs/cv").glob("first-*.yaml")
        more(path.relative_to(root).as_posix(), kind, api, "cv")(root)
        if ending:
            path.write_text(path.read_text().replace("name: more,", f"name: {path.stem}{ending},"))

    return change


RBAC = "rbac.authorization.k8s.io/v1"
FOREIGN: dict[str, tuple[Change, ...]] = {
    "a binding in the platform": (more(PLATFORM, "ClusterRoleBinding", RBAC),),
    "a role like ours": (more(PLATFORM, "ClusterRole", RBAC),),
    "a pod with our label": (more(PLATFORM, "Pod", "v1", "watch"),),
    "a queue without our label": (
        more(PLATFORM, "ClusterQueue", "kueue.x-k8s.io/v1beta1", labels="labels: {}"),
    ),
    "a ConfigMap somewhere else": (more(PLATFORM, "ConfigMap", "v1", "kube-system"),),
    "of dashboards that are off, a ConfigMap among the system's": (
        edit("overlays/lab/cluster.yaml", SEEN),
        more("rendered/lab/platform/dashboards.yaml", "ConfigMap", "v1", "kube-system"),
    ),
    "of policies that are off, a namespace of the system": (
        edit("overlays/lab/cluster.yaml", PACKS),
        edit(POLICIES, "  name: gangplan-policies\n", "  name: kube-system\n"),
    ),
    "a binding in a tenant": (more(TENANT, "RoleBinding", RBAC, "cv"),),
    "a claim in another tenant": (more(TENANT, "PersistentVolumeClaim", "v1", "nlp"),),
    "of a team that is off, a binding elsewhere": (OFF, more(TENANT, "RoleBinding", RBAC, "nlp")),
    "of a team that is off, a role that is not ours": (
        OFF,
        edit(TENANT, "kind: ClusterRole, name: gangplan-scheduler", "kind: ClusterRole, name: admin"),
    ),
    "of a team that is off, a namespace that admits all": (
        OFF,
        edit(
            TENANT,
            "pod-security.kubernetes.io/enforce: restricted",
            "pod-security.kubernetes.io/enforce: privileged",
        ),
    ),
    "of a team that is off, a role of the cluster": (OFF, more(TENANT, "ClusterRole", RBAC)),
    "of a team that is off, a binding without our label": (
        OFF,
        more(TENANT, "RoleBinding", RBAC, "cv", "labels: {}"),
    ),
    "of a team that is off, in the folder of nobody": (
        OFF,
        moved(TENANT, "rendered/lab/tenants/ghosts/tenant.yaml"),
    ),
    "of a team that is off, under another name": (OFF, moved(TENANT, "rendered/lab/tenants/cv/more.yaml")),
    "of a team that is off, its run in another's namespace": (OFF, in_run("namespace: cv", "namespace: nlp")),
    "of a team that is off, its run among the system's": (
        OFF,
        in_run("namespace: cv", "namespace: kube-system"),
    ),
    "of a team that is off, its run of another name": (OFF, in_run("name: first-", "name: other-")),
    "a Job of another name in a run": (added_to_run("Job", "batch/v1"),),
    "a Job that waits for nothing in a run": (added_to_run("Job", "batch/v1", "-more"),),
    "policies of another cluster": (moved(POLICIES, "rendered/prod/platform/policies.yaml"),),
}


@pytest.mark.parametrize("name", FOREIGN)
def test_files_that_no_render_wrote_are_unmanaged(name: str, done: Path) -> None:
    all_of(*FOREIGN[name])(done)
    outcome = gangplan("validate", "-C", done)
    assert {rule for _, rule in outcome.errors()} == {"rendered-foreign"}, outcome.err
    assert gangplan("render", "--check", "-C", done).code == Exit.FINDINGS


def test_a_merge_conflict_is_reported_once(done: Path) -> None:
    """It is not stale in addition, neither in a file that is rendered nor in one that is not."""
    for change in (lambda _: None, gone("specs/nlp/mounts.yaml")):
        (path,) = (done / "rendered/lab/runs/nlp").glob("mounts-*.yaml")
        text = path.read_text()
        if "<<<<<<<" not in text:
            path.write_text(
                text.replace(
                    "kind: TrainJob", "<<<<<<< HEAD\nkind: TrainJob\n=======\nkind: Job\n>>>>>>> main"
                )
            )
        change(done)
        told = [one for one in gangplan("validate", "-C", done).findings if one.place.startswith("rendered/")]
        assert [one.rule for one in told] == ["merge-conflict"]
        assert told[0].message.startswith("an unresolved merge conflict")
        assert "run gangplan render" in told[0].help


@pytest.mark.parametrize(
    "file",
    [
        "specs/nlp/filings.yaml",
        "specs/nlp/team.yaml",
        "overlays/lab/cluster.yaml",
        "images/catalog.yaml",
        "overlays/lab/kustomization.yaml",
        "overlays/lab/patch.yaml",
        "policies/waivers/w.yaml",
        "policies/own.yaml",
        "policies/site/pack.yaml",
        "jobtemplates/base.yaml",
    ],
)
@pytest.mark.parametrize("side", ["a: 1\n", "- a\n", "    - {op: add}\n", ""])
def test_a_conflict_in_a_written_file_is_reported_as_a_merge_conflict(
    file: str, side: str, done: Path
) -> None:
    """Either side may have any text, as Git writes it, also with the version before both."""
    head = "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\npatches:\n"
    write(
        done,
        {"overlays/lab/kustomization.yaml": f"{head}- {{path: patch.yaml, target: {{kind: TrainJob}}}}\n"},
    )
    before = (done / file).read_text() if (done / file).is_file() else "apiVersion: v1\n"
    write(done, {file: f"{before}<<<<<<< HEAD\n{side}||||||| 0a1b2c3\n=======\nb: 2\n>>>>>>> main\n"})
    outcome = gangplan("validate", "-C", done)
    (found,) = [one for one in outcome.findings if one.place.startswith(file)]
    line = before.count("\n") + 1
    assert (found.place, found.rule, found.message) == (
        f"{file}:{line}:1",
        "yaml-syntax",
        "an unresolved merge conflict",
    )
