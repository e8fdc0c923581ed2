"""Runs that train again although their specs did not change: cause, price and way out, in every report."""

from __future__ import annotations

import re
import subprocess
from html import unescape
from pathlib import Path

import pytest

from tests import workspaces
from tests.review.repository import Repository, begin
from tests.workspaces import Shown, gangplan

CATALOG, CLUSTER, TEAM = "images/catalog.yaml", "overlays/lab/cluster.yaml", "specs/nlp/team.yaml"
DIGEST = "images/catalog.yaml:6:13 (images.openmpi.digest)"
VARIABLE = "specs/nlp/team.yaml:13:30 (defaults.env.NCCL_DEBUG)"
LABEL = "overlays/lab/cluster.yaml:8:108 (nodePools.a100.labels['example.com/pool'])"
OLD = "sha256:1b0f7c64e0a3fe2d1c2d9a4b8a37f1f3f5d3a2b1c0998877665544332211ffee"
NEW = OLD.replace("ffee", "ffef")


@pytest.fixture
def shared(tmp_path: Path) -> Repository:
    """Commit a workspace with prices, and a second job that uses another image."""
    found = begin(tmp_path / "top", is_rendered=False)
    change(found, CLUSTER, "labels: {pool: a100}", "labels: {example.com/pool: a100}")
    change(found, CLUSTER, "pool: a100}}", 'pool: a100}, price: {perGpuHour: "2"}}')
    with (found.root / TEAM).open("a") as file:
        file.write("defaults: {env: {NCCL_DEBUG: WARN}}\n")
    found.write(other=workspaces.SPEC.replace("image: openmpi", "image: openmpi4\ntimeout: 10h"))
    found.render()
    found.commit("base")
    found.git("branch", "-f", "main")
    return found


def change(at: Repository, file: str, old: str, new: str) -> None:
    """Replace a text in a file of the workspace."""
    text = (at.root / file).read_text()
    assert old in text
    (at.root / file).write_text(text.replace(old, new))


def settle(at: Repository) -> None:
    """Render and commit, as a pull request does."""
    at.render()
    at.commit()


def replaced(at: Repository, *flags: str, base: str = "main") -> dict[str, Shown]:
    """Return the findings about replaced runs by their jobs."""
    outcome = gangplan("validate", "-C", at.root, "--base", base, *flags)
    found = [one for one in outcome.findings if one.rule.startswith("run-re")]
    assert {one.rule for one in found} <= {"run-replaced"}
    jobs = [Path(one.place.partition(":")[0]).stem for one in found]
    assert len(jobs) == len({*jobs})
    return dict(zip(jobs, found, strict=True))


@pytest.mark.parametrize("is_committed", [False, True])
def test_each_retrained_run_has_its_own_cause_and_no_other(shared: Repository, is_committed: bool) -> None:
    change(shared, CATALOG, OLD, NEW)
    change(shared, TEAM, "WARN", "INFO")
    if is_committed:
        settle(shared)
    found = replaced(shared)
    assert found["filings"].message.endswith(f"; because of {DIGEST}, {VARIABLE}")
    assert found["other"].message.endswith(f"; because of {VARIABLE}")


def test_a_digest_concerns_only_runs_of_its_image(shared: Repository) -> None:
    change(shared, CATALOG, OLD, NEW)
    settle(shared)
    assert list(replaced(shared)) == ["filings"]


def test_fields_are_written_in_one_way(shared: Repository) -> None:
    change(shared, CLUSTER, "{example.com/pool: a100}", "{example.com/pool: b100}")
    (renamed, _) = (
        one for one in gangplan("validate", "-C", shared.root).findings if one.rule == "run-renamed"
    )
    assert renamed.message.endswith(f"; because of {LABEL}")
    settle(shared)
    assert replaced(shared)["other"].message.endswith(f"; because of {LABEL}")


def test_a_field_that_is_gone_is_one_of_the_possible_causes(shared: Repository) -> None:
    """Nothing that is rendered today comes from it, so that no trace leads to it."""
    change(shared, TEAM, "defaults: {env: {NCCL_DEBUG: WARN}}\n", "")
    change(shared, CATALOG, '"4.1.8"}\n  horovod', '"4.1.9"}\n  horovod')
    settle(shared)
    found = replaced(shared)
    assert re.search(r"; probably because of specs/nlp/team.yaml:\S+ \(defaults\)$", found["filings"].message)
    assert (
        "; because of one of images/catalog.yaml:11:45 (images.openmpi4.mpi.version), specs/nlp/team.yaml:"
        in (found["other"].message)
    )


@pytest.mark.parametrize("is_committed", [False, True])
def test_retrained_runs_have_a_price_and_one_total(shared: Repository, is_committed: bool) -> None:
    other = CLUSTER.replace("lab", "lab2")
    workspaces.write(shared.root, {other: (shared.root / CLUSTER).read_text()})
    change(shared, TEAM, "clusters: [lab]", "clusters: [lab, lab2]")
    settle(shared)
    shared.git("branch", "-f", "main")
    change(shared, TEAM, "WARN", "INFO")
    if is_committed:
        settle(shared)
    outcome = gangplan("validate", "-C", shared.root, "--base", "main")
    found = [one.message for one in outcome.findings if one.rule == "run-replaced"]
    assert len(found) == 4
    assert [bool(re.search(r"; the price is at most \d+\.\d\d USD; ", one)) for one in found] == [True] * 4
    each = [int(hours) for one in found for hours in re.findall(r"retrained, at most (\d+) GPU-hours", one)]
    prices = [float(cost) for one in found for cost in re.findall(r"price is at most (\S+) USD", one)]
    total = f"; all 4 runs that are retrained take at most {sum(each)} GPU-hours ({sum(prices):.2f} USD); "
    assert [total in one for one in found] == [True, False, False, False]
    plan = shared.plan().out
    assert f"at most {sum(each)} GPU-hours, {sum(prices):.2f} USD" in plan


def add_line(at: Repository, line: str) -> None:
    """Add a line to the spec of filings, whatever its team is called."""
    (spec,) = at.root.glob("specs/*/filings.yaml")
    spec.write_text(f"{spec.read_text()}{line}\n")


def find_help(at: Repository) -> str:
    """Return the help about the run of filings, which may be at its rendered file."""
    (found,) = [one.help for one in replaced(at).values() if one.message.startswith("run filings-")]
    return found


def rename_team(at: Repository) -> None:
    """Call the team lang, in the namespace that it has."""
    at.git("mv", "specs/nlp", "specs/lang")
    change(at, CLUSTER, "  nlp: {", "  lang: {namespace: nlp, ")


def follow(at: Repository, steps: str) -> None:
    """Do what a help says, step by step: commands, images to list, and a line of the spec."""
    for step in steps.split(", then "):
        if step.startswith(("git ", "mkdir ", "cp ")):
            subprocess.run(["sh", "-ec", step], cwd=at.root, check=True, capture_output=True)
        elif listed := re.fullmatch(r"list (sha256:\S+) in images\.openmpi\.earlier of (\S+)", step):
            change(at, listed[2], NEW, f"{NEW}\n    earlier: [{listed[1]}]")
        elif step == "write keep: true in the spec":
            add_line(at, "keep: true")
        elif written := re.fullmatch(r"write (keepRuns: true) in (\S+)", step):
            with (at.root / written[2]).open("a") as file:
                file.write(f"{written[1]}\n")
        else:
            assert step == "gangplan render"
            outcome = gangplan(*step.split()[1:], "-C", at.root)
            assert not outcome.errors(), outcome.err


@pytest.mark.parametrize("is_committed", [False, True])
def test_the_help_keeps_a_run_when_followed_literally(shared: Repository, is_committed: bool) -> None:
    """A commit of the new run removed the earlier one from rendered/, where keep: true looks for it."""
    change(shared, CATALOG, OLD, NEW)
    if is_committed:
        settle(shared)
    help = replaced(shared)["filings"].help
    steps = re.search(r"To keep the old one: (.*?)\. ", help)
    assert steps
    assert ("git checkout" in steps[1]) == is_committed
    follow(shared, steps[1])
    shared.commit()
    outcome = gangplan("validate", "-C", shared.root, "--base", "main")
    assert [one.rule for one in outcome.findings] == ["run-kept"]


@pytest.mark.parametrize("is_committed", [False, True])
def test_the_help_keeps_all_runs_when_followed_literally(shared: Repository, is_committed: bool) -> None:
    change(shared, CATALOG, OLD, NEW)
    change(shared, TEAM, "WARN", "INFO")
    if is_committed:
        settle(shared)
    steps = re.search(r"To keep all runs: (.*?)\. ", replaced(shared)["filings"].help)
    assert steps
    follow(shared, steps[1])
    shared.commit()
    outcome = gangplan("validate", "-C", shared.root, "--base", "main")
    assert [one.rule for one in outcome.findings] == ["run-kept", "run-kept"]


@pytest.mark.parametrize("is_committed", [False, True])
@pytest.mark.parametrize("which", ["the old one", "all runs"])
def test_the_help_keeps_runs_of_a_renamed_team(shared: Repository, which: str, is_committed: bool) -> None:
    """keep: true looks for a run in the folder that its team has today."""
    rename_team(shared)
    if is_committed:
        settle(shared)
    steps = re.search(rf"To keep {which}: (.*?)\. ", find_help(shared))
    assert steps
    follow(shared, steps[1])
    shared.commit()
    outcome = gangplan("validate", "-C", shared.root, "--base", "main")
    found = [one.rule for one in outcome.findings if one.rule.startswith("run-")]
    assert sorted(found) == ["run-kept", "run-replaced" if which == "the old one" else "run-kept"]


@pytest.mark.parametrize("is_committed", [False, True])
@pytest.mark.parametrize("is_renamed", [False, True])
def test_the_help_ends_the_old_run_when_followed_literally(
    shared: Repository, is_renamed: bool, is_committed: bool
) -> None:
    """A record is made from the file of the run, which a render removed."""
    if is_renamed:
        rename_team(shared)
    add_line(shared, "run: 2")
    if is_committed:
        settle(shared)
    help = find_help(shared)
    line = re.search(r"To end the old one, add to the spec: (retired: \S+)\.", help)
    command = re.search(r" First bring its file back: (.*)\.$", help)
    assert line
    assert bool(command) == (is_committed or is_renamed)
    if command:
        follow(shared, command[1])
    add_line(shared, line[1])
    settle(shared)
    outcome = gangplan("validate", "-C", shared.root, "--base", "main")
    assert "run-stopped" in [one.rule for one in outcome.findings]


@pytest.mark.parametrize("is_committed", [False, True])
def test_a_plan_says_what_retrains_each_run_its_price_and_the_way_out(
    shared: Repository, is_committed: bool
) -> None:
    change(shared, CATALOG, OLD, NEW)
    change(shared, TEAM, "WARN", "INFO")
    if is_committed:
        settle(shared)
    runs = {one["job"]: one for one in shared.review()["runs"]}
    assert {one["edit"] for one in runs.values()} == {"retrained"}
    assert runs["other"]["causes"] == [
        {"file": TEAM, "line": 13, "column": 30, "field": "defaults.env.NCCL_DEBUG"}
    ]
    assert [one["field"] for one in runs["filings"]["causes"]] == [
        "images.openmpi.digest",
        "defaults.env.NCCL_DEBUG",
    ]
    assert runs["filings"]["why"] == f"because of {DIGEST}, {VARIABLE}"
    says = (
        "Warning: 2 runs train again although their specs did not change, at most 272 GPU-hours (544.00 USD)."
    )
    for form in ("text", "markdown"):
        out = unescape(shared.plan("--format", form).out).replace("\\", "")
        assert says in out
        assert f"because of {VARIABLE}" in out
    follow(shared, runs["filings"]["keep"])
    shared.commit()
    assert shared.edits() == [("retrained", "other")]


def test_a_plan_without_retrained_runs_has_no_causes(shared: Repository) -> None:
    shared.write(third=workspaces.SPEC)
    (run,) = shared.review()["runs"]
    assert (run["causes"], run["why"], run["keep"]) == ([], "", "")
    assert "Warning" not in shared.plan().out


@pytest.fixture
def stale(shared: Repository) -> Repository:
    """Check out a branch that adds a job, while main got another digest and was rendered."""
    shared.write(third=workspaces.SPEC)
    settle(shared)
    shared.git("checkout", "-q", "main")
    change(shared, CATALOG, OLD, NEW)
    settle(shared)
    shared.git("checkout", "-q", "topic")
    return shared


@pytest.mark.parametrize("command", [["validate"], ["render", "--check"]])
def test_a_branch_is_not_blamed_for_what_others_merged_since(stale: Repository, command: list[str]) -> None:
    outcome = gangplan(*command, "-C", stale.root, "--base", "main")
    assert "run-replaced" not in outcome.err
    (started,) = (one for one in outcome.findings if one.rule == "run-started")
    assert "since the merge base with main" in started.message


def test_a_revision_itself_can_be_compared(stale: Repository) -> None:
    assert list(replaced(stale, base="main..")) == ["filings"]


@pytest.mark.parametrize("command", [["validate"], ["render", "--check"]])
def test_a_clean_merge_that_would_make_a_render_stale_is_reported_before(
    stale: Repository, command: list[str]
) -> None:
    """Git merges both sides without a conflict, and the new run was rendered with the digest of before."""
    (before,) = (stale.root / "rendered/lab/runs/nlp").glob("third-*.yaml")
    outcome = gangplan(*command, "-C", stale.root, "--base", "main")
    (found,) = (one for one in outcome.findings if one.rule == "rendered-stale")
    assert found.severity == "warning"
    says = re.search(rf"main has moved on: .*: {before.stem} would be (third-\w+)$", found.message)
    assert says
    stale.git("merge", "-q", "--no-edit", "main")
    merged = gangplan("validate", "-C", stale.root, "--base", "main")
    assert "rendered-stale" in {one.rule for one in merged.findings}
    stale.render()
    assert [path.stem for path in (stale.root / "rendered/lab/runs/nlp").glob("third-*.yaml")] == [says[1]]


def test_a_merge_that_leaves_nothing_stale_is_not_reported(shared: Repository) -> None:
    shared.write(third=workspaces.SPEC)
    settle(shared)
    shared.git("checkout", "-q", "main")
    shared.write(fourth=workspaces.SPEC.replace("openmpi", "openmpi4"))
    settle(shared)
    shared.git("checkout", "-q", "topic")
    outcome = gangplan("validate", "-C", shared.root, "--base", "main")
    assert {one.rule for one in outcome.findings} <= {"run-started"}
