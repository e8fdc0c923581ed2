"""From an empty folder through every kind of edit: the pull request, the tree and the cluster agree.

A real Git repository, the commands of the guides, a real Argo CD. Each step is reviewed as in its pull
request (`plan --base`), then merged and synced. What starts, ends and leaves the cluster is what the review
said, and every other run keeps its uid.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from gangplan.errors import Exit
from gangplan.source import load_objects
from gangplan.workspace import load_workspace
from tests.e2e import world
from tests.lab import build, fixtures, programs
from tests.lab.argocd import NAMESPACE, ArgoCD
from tests.lab.client import ApiError, TooLateError, poll
from tests.lab.gitrepo import GitRepository
from tests.lab.lab import Lab
from tests.lab.stages import Plot, Story
from tests.workspaces import gangplan

pytestmark = pytest.mark.e2e
FORGE = "https://git.example.com/ml/jobs.git"
TEAM, CLUSTER, JOB = "nlp", "lab", "finetune"
SPEC, PLATFORM, CATALOG = (
    f"specs/{TEAM}/{JOB}.yaml",
    f"overlays/{CLUSTER}/cluster.yaml",
    "images/catalog.yaml",
)
STARTS = {"new", "changed", "retrained", "resumed"}
ENDS = {"stopped", "retired"}


@dataclass(slots=True)
class Day:
    """The lab, the repository that its Argo CD follows, and what was in the cluster after the last step."""

    lab: Lab
    argocd: ArgoCD
    repository: GitRepository
    runs: dict[str, str] = field(default_factory=dict)
    """The uid of each TrainJob, by name."""

    @property
    def root(self) -> Path:
        return self.repository.folder

    @property
    def applications(self) -> list[str]:
        return [item["metadata"]["name"] for item in self.lab.client.list("Application", NAMESPACE)]

    def edit(self, file: str, old: str, new: str) -> None:
        """Change a file by hand."""
        text = (self.root / file).read_text()
        assert old in text, f"{file} has no {old!r}"
        (self.root / file).write_text(text.replace(old, new))

    def add(self, line: str) -> None:
        """Add a line to the job's spec."""
        (self.root / SPEC).write_text((self.root / SPEC).read_text() + line + "\n")

    def review(self, *flags: str) -> dict[str, Any]:
        """Return what the pull request would show for the current files."""
        outcome = gangplan("plan", "-C", self.root, "--base", "HEAD", "--format", "json", *flags)
        assert outcome.code in (Exit.CLEAN, Exit.FINDINGS), outcome.err
        found: dict[str, Any] = json.loads(outcome.out)
        return found

    def merge(self, message: str) -> None:
        """Commit, and wait until Argo CD has synced it."""
        revision = self.repository.commit(message=message)
        for name in self.applications:
            self.argocd.refresh(name)
        for name in self.applications:
            try:
                self.argocd.wait(name, revision=revision, timeout=90)
            except TooLateError as late:
                raise AssertionError(f"{message}: {name}: {self.argocd.differing(name)}; {late}") from late

    def step(self, message: str, says: set[tuple[str, str]], rules: set[str] = frozenset()) -> None:  # type: ignore[assignment]
        """Render, review and merge; check that the review says just this, and that it happens in the cluster.

        `says` are edits and jobs, `rules` those of the new findings except for notes.
        """
        rendered = gangplan("render", "-C", self.root)
        assert rendered.code == Exit.CLEAN, rendered.err
        review = self.review()
        edits = review["runs"]
        assert {(one["edit"], one["job"]) for one in edits} == says, message
        assert new_rules(review) == rules, message
        self.merge(message)
        self.agrees(message, edits)

    def agrees(self, message: str, edits: list[dict[str, Any]]) -> None:
        """Check that only what the review said changed in the cluster; nothing else is killed or repeated."""
        started = {one["after"]["name"] for one in edits if one["edit"] in STARTS}
        ended = {one.get("run") or one["after"]["name"] for one in edits if one["edit"] in ENDS}
        expected = started - {name for name in started if name in self.runs}
        poll(lambda: set(self.found()) >= expected, 60, lambda: f"{message}: {expected} of {self.found()}")
        for name in ended & set(self.runs):  # a record replaces the run that ends
            poll(
                lambda name=name: self.found().get(name) != self.runs[name],  # type: ignore[misc]
                60,
                lambda name=name: f"{message}: {name} still runs",  # type: ignore[misc]
            )
        now = self.found()
        # A record starts nothing, so it may replace a record; and those that leave Git are deleted.
        allowed = started | ended | self.leaving() | (self.records("HEAD") & self.records("HEAD~1"))
        assert {name for name in now if name not in self.runs} == expected, message
        changed = {name for name, uid in self.runs.items() if now.get(name) != uid}
        assert changed <= allowed, f"{message}: {changed - allowed} were not announced"
        tree = {path.stem for path in world.run_files(self.root / "rendered" / CLUSTER)}
        assert tree <= set(now), f"{message}: {tree - set(now)} are in Git and not in the cluster"
        self.runs = now

    def leaving(self) -> set[str]:
        """Return the records that the last commit removed."""
        gone = self.repository._git(
            "diff", "--name-only", "--diff-filter=D", "--no-renames", "HEAD~1", "--", "rendered"
        )
        return {Path(path).stem for path in gone.splitlines()} & self.records("HEAD~1")

    def records(self, revision: str) -> set[str]:
        """Return the runs that Git has as records."""
        git, folder = self.repository._git, f"rendered/{CLUSTER}/runs/{TEAM}/"
        paths = git("ls-tree", "--name-only", revision, "--", folder).splitlines()
        return {Path(one).stem for one in paths if "state: stopped" in git("show", f"{revision}:{one}")}

    def found(self) -> dict[str, str]:
        return {
            item["metadata"]["name"]: item["metadata"]["uid"] for item in self.lab.client.list("TrainJob")
        }


def new_rules(review: dict[str, Any]) -> set[str]:
    """Return the rules of new findings, without notes."""
    return {one["rule"] for one in review["newFindings"]["findings"] if one["severity"] != "note"}


@pytest.fixture(scope="module")
def day(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Day]:
    """Run `gangplan init`, apply its sync manifests, and merge for the first time."""
    profile = fixtures.chosen()
    fixtures.require(profile)
    if build.missing([programs.ARGOCD]) and (trouble := build.problem()):
        pytest.skip(f"Argo CD cannot be built: {trouble}")
    root = tmp_path_factory.mktemp("day") / "jobs"
    flags = ("--forge", "github", "--sync", "argocd", "--team", TEAM, "--cluster", CLUSTER, "--repo", FORGE)
    assert gangplan("init", root, *flags).code == Exit.CLEAN
    spec = load_workspace(root).clusters[CLUSTER].spec
    if (spec.versions.trainer, spec.versions.kueue) != (profile.trainer, profile.kueue):
        pytest.skip(f"init does not write the versions of profile {profile.name}")
    repository = GitRepository(root)
    with Lab(profile) as lab:
        yield _opened(lab, repository)


def _opened(lab: Lab, repository: GitRepository) -> Day:
    root = repository.folder
    spec = load_workspace(root).clusters[CLUSTER].spec
    lab.add_nodes(world.nodes(spec))
    lab.tell(Story(Plot.RUN, namespace=None, run=None))  # training takes longer than this test
    (settings,) = load_objects((root / "argocd/settings/argocd-cm.yaml").read_text())
    day = Day(lab, ArgoCD(lab, cluster=CLUSTER, settings=settings["data"]), repository)
    for command in ("render", "validate"):
        assert gangplan(command, "-C", root).code == Exit.CLEAN
    revision = repository.commit(message="gangplan init")
    # The lab has no forge: Argo CD reads the folder instead.
    manifests = (root / f"argocd/{CLUSTER}.yaml").read_text().replace(FORGE, repository.url)
    lab.client.apply_all(load_objects(manifests))
    for name in day.applications:
        day.argocd.wait(name, revision=revision, timeout=90)
    poll(lambda: len(day.found()) == 1, 60, lambda: "the first run does not start")
    day.runs = day.found()
    return day


def test_each_step_of_a_user_day_does_what_its_review_said(day: Day) -> None:
    """The steps in the life of a job, in order. One test, because each step begins where the one before
    ended."""
    root = day.root

    # A first job.
    new = (
        "--team",
        TEAM,
        "--image",
        "openmpi",
        "--command",
        "python train.py",
        "--workers",
        "2",
        "--cpu",
        "2",
    )
    assert gangplan("new", "job", JOB, "-C", root, *new, "--memory", "4Gi").code == Exit.CLEAN
    day.step("first job", {("new", JOB)})

    # What cannot change while a run trains starts another run, also labels of pods; what can change does not.
    day.edit(SPEC, "workers: 2", "workers: 3")
    day.step("immutable change", {("changed", JOB)})
    day.add("labels: {project: filings}")
    day.step("label change", {("changed", JOB)})
    day.add("description: Fine-tunes on the filings of 2026.")
    day.step("words for people", set())
    day.add("run: 2")
    day.step("re-run", {("changed", JOB)})

    # A stopped run ends and stays as a record; earlier runs are retired, and records are removed.
    day.add("state: stopped")
    day.step("stop", {("stopped", JOB)})
    _retire(day)
    day.step("retire", {("retired", JOB)})
    day.edit(SPEC, "state: stopped\n", "")
    day.edit(SPEC, "run: 2", "run: 3")
    day.step("another run", {("resumed", JOB)})
    _retire(day)
    day.step("records go", set())

    # A quota that no run fits is found, and nothing is merged.
    day.edit(
        PLATFORM, f"{TEAM}: {{queue: training}}", f"{TEAM}: {{queue: training, quota: {{cpu: {{cpu: 4}}}}}}"
    )
    review = day.review()
    assert review["newFindings"]["counts"]["error"]
    assert gangplan("render", "-C", root).code == Exit.FINDINGS
    day.repository._git("checkout", "--quiet", ".")
    assert day.found() == day.runs

    # Another image retrains every job that uses it: reported, priced, and kept where that is requested.
    (old,) = re.findall(r"sha256:\w+332211ffee", (root / CATALOG).read_text())
    day.edit(CATALOG, old, f"{old[:-1]}d")
    review = day.review()
    retrained = {(one["edit"], one["job"]) for one in review["runs"]}
    assert retrained == {("retrained", JOB), ("retrained", "quickstart")}
    assert all(one["after"]["cpuHours"] != "0" for one in review["runs"])
    assert "run-renamed" in new_rules(review)
    for file in (SPEC, f"specs/{TEAM}/quickstart.yaml"):
        (root / file).write_text((root / file).read_text() + "keep: true\n")
    day.edit(CATALOG, f"digest: {old[:-1]}d\n", f"digest: {old[:-1]}d\n    earlier: [{old}]\n")
    day.step("image bump, runs kept", set())
    for file in (SPEC, f"specs/{TEAM}/quickstart.yaml"):
        day.edit(file, "keep: true\n", "")
    day.step("image bump", {("retrained", JOB), ("retrained", "quickstart")})

    # Another Trainer would retrain everything: the review says so before anyone upgrades.
    trainer = load_workspace(root).clusters[CLUSTER].spec.versions.trainer
    day.edit(PLATFORM, f'trainer: "{trainer}"', 'trainer: "2.2.1"')
    review = day.review()
    assert {one["edit"] for one in review["runs"]} <= {"retrained"}
    day.repository._git("checkout", "--quiet", ".")

    # Policies of the cluster: first they only warn, then they refuse. No run is affected.
    day.edit(PLATFORM, "packs: [", "enforcement: Audit\n  packs: [")
    day.step("audit", set())
    day.edit(PLATFORM, "enforcement: Audit\n", "enforcement: Deny\n")
    day.step("deny", set())
    _refuses(day)

    # The whole tree is in Git, and what is in Git is in the cluster.
    assert gangplan("validate", "-C", root).code == Exit.CLEAN
    for name in day.applications:
        assert day.argocd.get(name)["status"]["sync"]["status"] == "Synced"


def _retire(day: Day) -> None:
    outcome = gangplan("retire", "-C", day.root, "--superseded", "--write")
    assert outcome.code == Exit.CLEAN, outcome.err


def _refuses(day: Day) -> None:
    """Check that a policy of ours refuses a run that is applied by hand without its labels."""
    path = world.run_files(day.root / "rendered" / CLUSTER)[0]
    (job,) = (one for one in load_objects(path.read_text()) if one["kind"] == "TrainJob")
    meta = {**job["metadata"], "name": "by-hand", "labels": {}, "annotations": {}}
    body = {**job, "metadata": meta}

    said: list[str] = []

    def is_refused() -> bool:
        try:
            day.lab.client.apply(body, dry_run=True)
        except ApiError as error:
            said.append(error.message)
        return any("ValidatingAdmissionPolicy 'gangplan-" in one for one in said)

    poll(is_refused, 30, lambda: f"not refused by a policy: {said}")
