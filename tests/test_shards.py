"""Shards: every spec is in one of them, and merged they report the same as the whole, with its exit code."""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gangplan import workspace
from gangplan.errors import Exit
from gangplan.pipeline import clusters
from gangplan.pipeline.shard import SpecShard, select_shard_teams
from tests import workspaces
from tests.workspaces import Outcome, gangplan

SECRET = "AKIA" + "IOSFODNN7EXAMPLQ"
TEAMS = ("audio", "nlp", "search", "vision")
_ON = "".join(f"  {team}: {{queue: training}}\n" for team in TEAMS)
_CLUSTER = workspaces.CLUSTER.replace("  nlp: {queue: training}\n", _ON)
_WAIVER = """\
apiVersion: gangplan.dev/v1
kind: Waiver
rule: preemptible-without-checkpoint
scope: {team: nlp}
reason: The runs are short.
approver: Platform
expires: 2026-12-31
"""
# Four teams of several sizes on two clusters, one of them patched; priorities, so that runs block each other.
FILES: dict[str, str] = {
    **{f"specs/{team}/team.yaml": workspaces.TEAM.replace("[lab]", "[far, lab]") for team in TEAMS},
    **{
        f"specs/{team}/job-{number}.yaml": workspaces.SPEC.replace("workers: 4", f"workers: {number + 2}")
        for size, team in enumerate(TEAMS, 1)
        for number in range(size)
    },
    "overlays/lab/cluster.yaml": _CLUSTER,
    "overlays/far/cluster.yaml": _CLUSTER,
    "overlays/lab/kustomization.yaml": workspaces.KUSTOMIZATION,
    "images/catalog.yaml": workspaces.CATALOG,
}
_SPEC = FILES["specs/vision/job-1.yaml"]
# Faults of such a workspace, by the files that they add or replace.
FAULTS: dict[str, dict[str, str]] = {
    "nothing": {},
    "errors in specs of several teams": {
        "specs/nlp/job-0.yaml": _SPEC.replace("workers: 3", "workers: three"),
        "specs/vision/job-1.yaml": _SPEC.replace("openmpi", "openmp"),
        "specs/vision/job-2.yaml": _SPEC + "data: {nowhere: /data}\n",
    },
    "a cluster that is closed": {
        "overlays/far/cluster.yaml": _CLUSTER.replace("trainer: ", "trainr: "),
        "specs/nlp/job-0.yaml": _SPEC.replace("workers: 3", "workers: three"),
    },
    "a cluster with a bad version": {"overlays/far/cluster.yaml": _CLUSTER.replace("0.19.2", "0.10.0")},
    "a team file": {"specs/nlp/team.yaml": workspaces.TEAM + "colour: red\n"},
    "no catalog": {"images/catalog.yaml": ""},
    "a patch that matches nothing": {
        "overlays/lab/kustomization.yaml": workspaces.KUSTOMIZATION.replace("kind: Namespace", "kind: Pod")
    },
    "a patch that spoils every run": {
        "overlays/lab/kustomization.yaml": workspaces.KUSTOMIZATION.replace(
            "kind: Namespace", "kind: TrainJob"
        )
        .replace("/metadata/labels/site.example.com~1monitoring", "/spec/suspend")
        .replace('"true"', "7")
    },
    "runs that stand in each other's way": {
        f"specs/{team}/job-0.yaml": _SPEC.replace("gpus: 2", "gpus: 8") for team in TEAMS
    },
    "a job twice": {"specs/vision/again.yaml": _SPEC + "name: job-1\n"},
    "waivers, used and not": {
        "policies/waivers/a.yaml": _WAIVER,
        "policies/waivers/b.yaml": _WAIVER.replace("nlp", "audio"),
        "policies/waivers/over.yaml": _WAIVER.replace("2026-12-31", "2026-01-31"),
    },
    "secrets": {
        "specs/nlp/job-0.yaml": f"{_SPEC}retries: {SECRET}\nenv: {{KEY_ID: {SECRET}}}\n",
        "specs/vision/job-1.yaml": _SPEC.replace("workers: 3", f"workers: {SECRET}"),
        "overlays/far/cluster.yaml": f"{_CLUSTER}description: {SECRET}\n",
        "specs/nlp/notes.txt": f"{SECRET}\n",
        "specs/ghost/notes.txt": f"{SECRET}\n",
    },
    "a team without a file": {"specs/ghost/job.yaml": _SPEC},
    "a file in rendered/ that nobody wrote": {"rendered/lab/runs/nlp/own.yaml": "kind: Pod\n"},
}


def made(folder: Path, fault: str) -> Path:
    """Render the workspace, and then add a fault."""
    root = workspaces.write(folder / "work", FILES)
    workspaces.render(root)
    return workspaces.write(root, FAULTS[fault])


def shards(root: Path, count: int, *words: str) -> tuple[list[Path], list[Outcome]]:
    """Return the reports and outcomes of all shards."""
    files = [root.parent / f"shard-{number}-{count}.json" for number in range(1, count + 1)]
    outcomes = [
        gangplan("validate", "-C", root, "--shard", f"{number}/{count}", "--format", f"json={file}", *words)
        for number, file in enumerate(files, 1)
    ]
    assert all(one.code in (Exit.CLEAN, Exit.FINDINGS, Exit.INPUT) for one in outcomes), outcomes
    return files, outcomes


def whole(root: Path, *words: str) -> tuple[int, dict[str, Any]]:
    """Return exit code and report of the whole."""
    outcome = gangplan("validate", "-C", root, "--no-cache", "--format", "json", *words)
    return outcome.code, json.loads(outcome.out)


def merged(root: Path, files: list[Path]) -> tuple[int, dict[str, Any]]:
    """Return exit code and report of all shards."""
    outcome = gangplan("report", "merge", "-C", root, "--format", "json", *files)
    assert outcome.out, outcome.err
    return outcome.code, json.loads(outcome.out)


@pytest.mark.parametrize("count", [1, 3])
def test_shards_of_the_sample_report_the_same_as_the_whole(tmp_path: Path, count: int) -> None:
    root = workspaces.sample(tmp_path / "work")
    files, _ = shards(root, count)
    assert merged(root, files) == whole(root)


@pytest.mark.parametrize("count", [1, 2, 5])
@pytest.mark.parametrize("fault", ["errors in specs of several teams", "runs that stand in each other's way"])
def test_any_number_of_shards_reports_the_same_as_the_whole(tmp_path: Path, fault: str, count: int) -> None:
    root = made(tmp_path, fault)
    files, _ = shards(root, count, "--no-cache")
    assert merged(root, files) == whole(root)


@pytest.mark.parametrize("fault", FAULTS)
def test_every_fault_is_reported_once(tmp_path: Path, fault: str) -> None:
    """Merged reports equal the whole, and no shard repeats a finding of another one."""
    root = made(tmp_path, fault)
    expected = whole(root, "--today", "2026-11-20")
    files, outcomes = shards(root, 3, "--today", "2026-11-20")
    assert merged(root, files) == expected
    told = Counter(
        (one["file"], one["line"], one["column"], one["rule"], one["object"], one["message"])
        for file in files
        for one in json.loads(file.read_text())["findings"]
        if not one["file"].startswith("overlays/")  # each shard reports for itself what many runs suffer from
    )
    assert max(told.values(), default=1) == 1
    if fault != "nothing":
        assert expected[1]["findings"]
    assert max(one.code for one in outcomes) <= expected[0]


def test_each_fault_is_found_by_its_rule(tmp_path: Path) -> None:
    """Each is found, by the rule that it is about."""
    rules = {
        "a job twice": "job-name-twice",
        "a patch that matches nothing": "overlay-no-match",
        "waivers, used and not": "waiver-unused",
        "a file in rendered/ that nobody wrote": "rendered-foreign",
        "runs that stand in each other's way": "preemptible-without-checkpoint",
    }
    for number, (fault, rule) in enumerate(rules.items()):
        _, report = whole(made(tmp_path / str(number), fault), "--today", "2026-11-20")
        assert rule in {one["rule"] for one in report["findings"]}, fault


def test_runs_of_two_shards_that_block_each_other_are_reported(tmp_path: Path) -> None:
    """Neither shard can know: runs start pod by pod, and together they need more than there is."""
    cluster = _CLUSTER.replace(', kueue: "0.19.2"', "").replace("  lab: {queue: training}\n", "")
    cluster = cluster.replace("teams:", "environment: dev\ngang: none\nteams:")
    spec = workspaces.SPEC.replace("workers: 4", "workers: 3").replace("gpus: 2", "gpus: 8")
    teams = {f"specs/{team}/team.yaml": FILES["specs/nlp/team.yaml"] for team in TEAMS[:2]}
    files = {"images/catalog.yaml": workspaces.CATALOG, **teams}
    files |= {f"specs/{team}/job.yaml": spec for team in TEAMS[:2]}
    left_out = ("  search", "  vision", "  a100-spot")
    for name in ("far", "lab"):
        lines = cluster.split("\n")
        text = "\n".join(line for line in lines if not line.startswith(left_out))
        files[f"overlays/{name}/cluster.yaml"] = text
    root = workspaces.write(tmp_path / "work", files)
    reports, _ = shards(root, 2)
    rules = [{one["rule"] for one in json.loads(file.read_text())["findings"]} for file in reports]
    assert all("runs-block-runs" not in own for own in rules)
    code, report = merged(root, reports)
    assert (code, report) == whole(root)
    assert [one["rule"] for one in report["findings"]].count("runs-block-runs") == 2


def test_a_report_of_a_shard_repeats_no_secret(tmp_path: Path) -> None:
    root = made(tmp_path, "secrets")
    files, _ = shards(root, 3)
    assert not [file for file in files if SECRET in file.read_text()]


def test_an_error_of_one_shard_does_not_fail_the_others(tmp_path: Path) -> None:
    root = workspaces.write(made(tmp_path, "nothing"), {"specs/vision/job-1.yaml": "kind: Nothing\n"})
    _, outcomes = shards(root, 2)
    assert [one.code for one in outcomes] == [Exit.INPUT, Exit.CLEAN]


def test_later_shards_name_the_findings_of_the_first(tmp_path: Path) -> None:
    root = made(tmp_path, "a team file")
    first, second = (gangplan("validate", "-C", root, "--shard", f"{number}/2") for number in (1, 2))
    assert first.code == Exit.INPUT
    assert second.code == Exit.CLEAN, second.err
    assert "shard 1/2 tells 1 finding about the platform" in second.out


def test_a_shard_without_specs_is_valid(tmp_path: Path) -> None:
    outcome = gangplan("validate", "-C", made(tmp_path, "nothing"), "--shard", "5/5")
    assert outcome.code == Exit.CLEAN
    assert "shard 5/5 has the specs of 0 of 4 teams" in outcome.out


def test_shards_of_one_cluster_report_the_same_as_the_whole(tmp_path: Path) -> None:
    root = made(tmp_path, "errors in specs of several teams")
    files, _ = shards(root, 2, "--cluster", "lab", "--fail-on", "warning")
    assert merged(root, files) == whole(root, "--cluster", "lab", "--fail-on", "warning")


def test_files_changed_by_hand_are_reported_as_by_the_whole(tmp_path: Path) -> None:
    """A file of rendered/ that differs from what is rendered now gives the same findings in shards."""
    root = made(tmp_path, "nothing")
    for path in sorted((root / "rendered/lab").rglob("*.yaml")):
        path.write_text(path.read_text() + "---\napiVersion: v1\nkind: Pod\nmetadata: {name: more}\n")
    files, _ = shards(root, 3)
    code, report = merged(root, files)
    assert (code, report) == whole(root)
    assert {one["rule"] for one in report["findings"]} >= {"rendered-foreign"}


@pytest.mark.parametrize("words", [[], ["--no-cache"]])
def test_the_cache_changes_no_report(tmp_path: Path, words: list[str]) -> None:
    root = made(tmp_path, "nothing")
    first, _ = shards(root, 3)
    texts = [file.read_text() for file in first]
    again, _ = shards(root, 3, *words)
    assert [file.read_text() for file in again] == texts


def test_merging_expands_nothing_again(tmp_path: Path) -> None:
    """The merge expands no spec and no cluster, however many there are."""
    root = made(tmp_path, "nothing")
    files, _ = shards(root, 3)
    counts = {workspace.load_spec.__code__: 0, clusters.expand_cluster_platform_and_tenants.__code__: 0}

    def count(frame: object, event: str, _: object) -> None:
        code = getattr(frame, "f_code", None)
        if event == "call" and code in counts:
            counts[code] += 1

    sys.setprofile(count)
    try:
        code, _ = merged(root, files)
    finally:
        sys.setprofile(None)
    assert code == Exit.CLEAN
    assert list(counts.values()) == [0, 0]


def test_every_format_is_the_same_as_of_the_whole(tmp_path: Path) -> None:
    root = made(tmp_path, "errors in specs of several teams")
    files, _ = shards(root, 2)
    for format in ("text=/dev/stdout", "sarif", "junit", "gitlab", "github", "markdown"):
        own = gangplan("report", "merge", "-C", root, "--format", format, *files)
        assert own == gangplan("validate", "-C", root, "--no-cache", "--format", format)


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Path]]:
    root = made(tmp_path_factory.mktemp("three"), "nothing")
    return root, shards(root, 3)[0]


def refused(root: Path, *files: Path) -> str:
    outcome = gangplan("report", "merge", "-C", root, *files)
    assert outcome.code == Exit.INPUT
    assert not outcome.out
    return outcome.err


def test_a_missing_shard_is_refused(three: tuple[Path, list[Path]]) -> None:
    root, files = three
    assert "shard 2/3 is missing" in refused(root, files[0], files[2])
    assert "shard 1/3, 2/3 are missing" in refused(root, files[2])


def test_a_doubled_shard_is_refused(three: tuple[Path, list[Path]]) -> None:
    root, files = three
    assert "shard 3/3 is there twice" in refused(root, *files, files[2])


def test_shards_of_different_counts_are_refused(three: tuple[Path, list[Path]]) -> None:
    root, files = three
    others, _ = shards(root, 2)
    assert "of wholes with 2 and 3 shards" in refused(root, *files, others[0])


def test_shards_of_different_files_are_refused(tmp_path: Path) -> None:
    root = made(tmp_path, "nothing")
    files, _ = shards(root, 2)
    path = root / "specs/nlp/job-0.yaml"
    path.write_text(path.read_text() + "run: 2\n")
    assert "the files of the workspace are not the same" in refused(root, *files)
    shards(root, 2)
    later = files[1].read_text()
    workspaces.write(root, FILES)
    shards(root, 2)
    files[1].write_text(later)
    assert "the files of the workspace are not the same" in refused(root, *files)


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        (("state", "gangplan"), "0.0.9", "Use one version of gangplan everywhere"),
        (("state", "program"), "0" * 64, "another build of gangplan"),
        (("state", "overlays"), "kustomize 5.0.0", "overlays were built by"),
        (("judge",), "kubeconform 0.0.1", "was checked with kubeconform 0.0.1"),
        (("asked", "today"), "2026-01-01", "asked with different flags"),
        (("specs",), {"specs/nlp/job-0.yaml": [1]}, "damaged"),
        (("of",), "3", "damaged"),
        (("shared",), 7, "damaged"),
    ],
)
def test_shards_with_different_conditions_are_refused(
    three: tuple[Path, list[Path]], tmp_path: Path, path: tuple[str, ...], value: Any, said: str
) -> None:
    root, files = three
    document = json.loads(files[1].read_text())
    held = document["shard"]
    for name in path[:-1]:
        held = held[name]
    held[path[-1]] = value
    changed = tmp_path / "changed.json"
    changed.write_text(json.dumps(document))
    assert said in refused(root, files[0], changed, files[2])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is not a JSON report"),
        ("[]", "not a JSON report of this"),
        ('{"version": 1}', "not the report of a"),
    ],
)
def test_files_that_are_not_shard_reports_are_refused(
    three: tuple[Path, list[Path]], tmp_path: Path, text: str, said: str
) -> None:
    (tmp_path / "other.json").write_text(text)
    assert said in refused(three[0], tmp_path / "other.json")
    assert "cannot be read" in refused(three[0], tmp_path / "none.json")


@pytest.mark.parametrize("part", ["0/3", "4/3", "3", "a/b", "1/0", "-1/2", "1/99999"])
def test_an_invalid_part_is_refused(three: tuple[Path, list[Path]], part: str) -> None:
    outcome = gangplan("validate", "-C", three[0], f"--shard={part}")
    assert outcome.code == Exit.INPUT
    assert "Write --shard 3/8" in outcome.err


@pytest.mark.parametrize(
    "words", [["--team", "nlp"], ["specs/nlp/job-0.yaml"], ["--base", "main"], ["--fix"]]
)
def test_flags_about_the_whole_are_refused_with_shards(
    three: tuple[Path, list[Path]], words: list[str]
) -> None:
    outcome = gangplan("validate", "-C", three[0], "--shard", "1/2", *words)
    assert outcome.code == Exit.INPUT
    assert "--shard" in outcome.err


def test_render_refuses_shards(three: tuple[Path, list[Path]]) -> None:
    outcome = gangplan("render", "-C", three[0], "--shard", "1/2")
    assert outcome.code == Exit.INPUT
    assert "what is rendered is one tree" in outcome.err


@given(st.lists(st.sampled_from("abcdefgh"), max_size=60), st.integers(1, 9), st.randoms())
def test_every_team_is_in_one_shard_and_shards_are_even(teams: list[str], of: int, chance: Any) -> None:
    parts = [select_shard_teams(SpecShard(number, of), teams) for number in range(1, of + 1)]
    assert Counter(team for part in parts for team in part) == Counter(set(teams))
    sizes = Counter(teams)
    loads = [sum(sizes[team] for team in part) for part in parts]
    assert max(loads) - min(loads) <= max(sizes.values(), default=0)
    chance.shuffle(teams)
    assert parts == [select_shard_teams(SpecShard(number, of), teams) for number in range(1, of + 1)]
