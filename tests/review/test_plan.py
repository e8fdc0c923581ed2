"""`gangplan plan --base REF`: what happens to every run, what it takes, and which findings are new."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from gangplan.errors import Exit
from gangplan.review import sides
from tests import workspaces
from tests.review.repository import Repository, begin
from tests.workspaces import SPEC, gangplan

SMALL = SPEC.replace("workers: 4", "workers: 2")


@pytest.fixture
def repo(tmp_path: Path) -> Repository:
    """Render and commit the small workspace on main, and check out a branch."""
    return begin(tmp_path / "repo")


def test_an_unchanged_workspace_has_an_empty_plan(repo: Repository) -> None:
    outcome = repo.plan()
    assert outcome.code == Exit.CLEAN, outcome.err
    assert "no run starts or ends; no new findings" in outcome.out
    assert repo.review()["objects"] == []


def test_a_new_job_is_a_new_run(repo: Repository) -> None:
    repo.write(second=SMALL)
    repo.render()
    found = repo.review()
    (run,) = found["runs"]
    assert (run["edit"], run["job"], run["cluster"]) == ("new", "second", "lab")
    assert (run["after"]["gpus"], run["after"]["admission"]["outcome"]) == (4, "admit")
    assert run["before"] is None
    before, after = (found["totals"]["all"][side] for side in ("before", "after"))
    assert (before["runs"], before["gpus"], after["runs"], after["gpus"]) == (1, 8, 2, 12)
    assert found["specs"]["new"] == ["specs/nlp/second.yaml"]


def test_a_plan_is_the_same_before_rendering_and_after(repo: Repository) -> None:
    """Before rendering, rendered/ is stale, and that is reported."""
    repo.write(second=SMALL)
    first = repo.review()
    assert [one["rule"] for one in first["newFindings"]["findings"]] == ["rendered-stale"]
    repo.render()
    second = repo.review()
    assert first["runs"] == second["runs"]
    assert first["objects"] == second["objects"]
    repo.commit()
    assert repo.review() == second


def test_a_changed_spec_is_another_run_while_the_old_one_goes_on(repo: Repository) -> None:
    repo.write(filings=SMALL)
    (run,) = repo.review()["runs"]
    assert run["edit"] == "changed"
    assert run["before"]["gpus"] == 8
    assert run["after"]["gpus"] == 4
    assert run["goesOn"] == run["before"]["name"] != run["after"]["name"]
    repo.write(filings=f"{SMALL}retired: [{run['before']['name']}]\n")
    assert repo.edits() == [("changed", "filings"), ("retired", "filings")]
    assert repo.review()["runs"][0]["goesOn"] == ""


def test_a_run_is_stopped_and_resumed(repo: Repository) -> None:
    repo.write(filings=f"{SPEC}state: stopped\n")
    repo.render()
    found = repo.review()
    assert [(one["edit"], one["after"]["state"]) for one in found["runs"]] == [("stopped", "stopped")]
    assert found["totals"]["all"]["after"]["gpus"] == 0
    repo.commit()
    repo.git("checkout", "-q", "-B", "main")
    repo.git("checkout", "-q", "-b", "again")
    repo.write(filings=SPEC)
    repo.render()
    assert repo.edits() == [("resumed", "filings")]


def test_a_changed_image_retrains_and_names_its_file(repo: Repository) -> None:
    catalog = workspaces.CATALOG.replace("332211ffee", "332211ffef")
    workspaces.write(repo.root, {"images/catalog.yaml": catalog})
    for _ in range(2):  # before it is rendered and after
        found = repo.review()
        assert [one["edit"] for one in found["runs"]] == ["retrained"]
        (reach,) = found["reach"]
        assert (reach["file"], reach["teams"], reach["retrained"]["runs"]) == (
            "images/catalog.yaml",
            ["nlp"],
            1,
        )
        meanings = {(one["meaning"], one["runs"]) for one in found["meanings"]}
        assert ("image", 1) in meanings
        repo.render()


CLUSTER = "overlays/lab/cluster.yaml"


@pytest.mark.parametrize(
    ("file", "old", "new", "fields"),
    [
        ("images/catalog.yaml", "332211ffee", "332211ffef", ["images.openmpi.digest 6:13"]),
        (CLUSTER, ', gpuOperator: "25.10.0"', "", ["versions.gpuOperator 3:11"]),
        (CLUSTER, "ports: [443]", "ports: [443, 80]", ["egress.s3[0].ports 14:36"]),
        (CLUSTER, "egress:\n", "env: {NCCL_DEBUG: INFO}\negress:\n", ["env 13:6"]),
        (CLUSTER, "teams:\n", "# Who runs here.\nteams:\n", []),
        ("specs/nlp/team.yaml", "[huggingface, lidar-s3]", "[huggingface, radar-s3]", ["secrets[1] 12:24"]),
    ],
)
def test_the_plan_names_the_changed_fields_of_a_shared_file(
    file: str, old: str, new: str, fields: list[str], repo: Repository
) -> None:
    text = (repo.root / file).read_text()
    assert old in text
    workspaces.write(repo.root, {file: text.replace(old, new)})
    (reach,) = repo.review()["reach"]
    assert [f"{one['field']} {one['line']}:{one['column']}" for one in reach["changed"]] == fields


def test_a_removed_spec_is_a_run_that_goes_on(repo: Repository) -> None:
    (repo.root / "specs/nlp/filings.yaml").unlink()
    repo.render()
    (run,) = repo.review()["runs"]
    assert (run["edit"], run["after"], run["goesOn"]) == ("removed", None, run["before"]["name"])


def test_an_archived_run_is_an_edit(repo: Repository) -> None:
    repo.write(filings=f"{SPEC}state: archived\n")
    repo.render()
    assert repo.edits() == [("archived", "filings")]


def test_a_spec_with_an_error_is_broken_and_not_removed(repo: Repository) -> None:
    repo.write(filings=SPEC.replace("32Gi", "32GB"))
    outcome = repo.plan()
    assert outcome.code == Exit.INPUT
    found = repo.review()
    assert [one["edit"] for one in found["runs"]] == ["broken"]
    assert found["objects"] == []
    assert "1 run with errors is left out" in found["notes"][0]


def test_a_renamed_spec_is_a_new_run(repo: Repository) -> None:
    """Its job has another name, so it is another run; the file is known to be the same."""
    repo.git("mv", "specs/nlp/filings.yaml", "specs/nlp/reports.yaml")
    found = repo.review()
    assert found["specs"]["renamed"] == [{"from": "specs/nlp/filings.yaml", "to": "specs/nlp/reports.yaml"}]
    assert repo.edits() == [("new", "reports"), ("removed", "filings")]


def test_a_renamed_spec_with_an_explicit_name_stays_the_same_run(repo: Repository) -> None:
    repo.write(filings=f"{SPEC}name: filings\n")
    repo.render()
    repo.commit()
    repo.git("checkout", "-q", "-B", "main")
    repo.git("checkout", "-q", "-b", "again")
    repo.git("mv", "specs/nlp/filings.yaml", "specs/nlp/reports.yaml")
    repo.render()
    assert repo.edits() == []


def test_a_deleted_team_removes_its_runs(repo: Repository) -> None:
    workspaces.write(
        repo.root,
        {
            "specs/cv/team.yaml": workspaces.TEAM,
            "specs/cv/pets.yaml": SPEC,
            "overlays/lab/cluster.yaml": workspaces.CLUSTER + "  cv: {queue: training}\n",
        },
    )
    repo.render()
    repo.commit()
    repo.git("checkout", "-q", "-B", "main")
    repo.git("checkout", "-q", "-b", "gone")
    repo.git("rm", "-rq", "specs/cv")
    workspaces.write(repo.root, {"overlays/lab/cluster.yaml": workspaces.CLUSTER})
    repo.render()
    assert repo.edits() == [("removed", "pets")]
    assert repo.edits("--team", "cv") == [("removed", "pets")]
    assert repo.edits("--team", "nlp") == []
    assert repo.edits(repo.root / "specs/cv/pets.yaml") == [("removed", "pets")]
    assert gangplan("plan", "-C", repo.root, "--base", "main", "--team", "nobody").code == Exit.INPUT


def test_a_plan_can_be_limited_to_a_spec(repo: Repository) -> None:
    repo.write(second=SMALL, third=SMALL)
    repo.render()
    assert repo.edits("specs/nlp/second.yaml") == [("new", "second")]
    found = repo.review("specs/nlp/second.yaml")
    assert {one["job"] for one in found["objects"]} == {"second"}
    assert found["totals"]["all"]["after"]["gpus"] == 4


def test_a_plan_can_be_limited_to_a_cluster(repo: Repository) -> None:
    """Of several clusters, one that is gone too; a warning about another cluster is not reported."""
    workspaces.write(
        repo.root,
        {
            "specs/nlp/team.yaml": workspaces.TEAM.replace("[lab]", "[edge, lab]"),
            "overlays/edge/cluster.yaml": workspaces.CLUSTER.replace("a100: {count: 4", "a100: {count: 2"),
        },
    )
    repo.render()
    repo.commit()
    repo.git("checkout", "-q", "-B", "main")
    repo.write(second=SPEC)
    every = repo.review()
    assert {(one["cluster"], one["job"]) for one in every["runs"]} == {("edge", "second"), ("lab", "second")}
    for name in ("edge", "lab"):
        found = repo.review("--cluster", name)
        assert {one["cluster"] for one in found["runs"]} == {name}
        assert {one["cluster"] for one in found["objects"]} == {name}
        assert {one["cluster"] for one in found["totals"]["teams"]} == {name}
        assert {one["cluster"] for one in found["quotas"]} <= {name}
        assert found["totals"]["all"]["after"]["runs"] * 2 == every["totals"]["all"]["after"]["runs"]
        assert (
            f"{name}/" in gangplan("diff", "-C", repo.root, "--base", "main", "--cluster", name, "--raw").out
        )
    assert repo.edits("--cluster", "edge", "--cluster", "lab") == repo.edits()
    assert repo.edits("--cluster", "edge", "specs/nlp/filings.yaml") == []
    outcome = repo.plan("--cluster", "edge", "--cluster", "lob")
    assert outcome.code == Exit.INPUT
    assert "there is no cluster 'lob'" in outcome.err
    (repo.root / "specs/nlp/second.yaml").unlink()
    repo.git("rm", "-rq", "overlays/edge")
    workspaces.write(repo.root, {"specs/nlp/team.yaml": workspaces.TEAM})
    assert repo.edits("--cluster", "edge") == [("removed", "filings")]
    assert repo.edits("--cluster", "lab") == []


def test_a_warning_about_another_cluster_is_left_out_of_a_plan_of_one(repo: Repository) -> None:
    """On edge the run borrows from four teams, on lab it has all to itself."""
    teams = [f"t{number}" for number in range(4)]
    workspaces.write(
        repo.root,
        {
            "specs/nlp/team.yaml": workspaces.TEAM.replace("[lab]", "[edge, lab]"),
            **{f"specs/{team}/team.yaml": workspaces.TEAM.replace("[lab]", "[edge]") for team in teams},
            "overlays/edge/cluster.yaml": workspaces.CLUSTER
            + "".join(f"  {team}: {{queue: training}}\n" for team in teams),
        },
    )
    repo.render()
    repo.commit()
    repo.git("checkout", "-q", "-B", "main")
    repo.write(second=SPEC)

    def warnings(name: str) -> list[str]:
        return [one.rule for one in repo.plan("--cluster", name).findings if one.severity == "warning"]

    assert warnings("edge") == ["rendered-stale", "preemptible-without-checkpoint"]
    assert warnings("lab") == ["rendered-stale"]


def test_specs_of_teams_that_did_not_change_are_not_read_at_the_base(
    repo: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many there are: the base has the results of today's, except where they must be looked at."""
    secret = SMALL.replace("command: [", f"command: [env, TOKEN=ghp_{'a1B2c3D4e5F6' * 3}, ")
    teams = {f"t{number}": f"  t{number}: {{queue: training}}\n" for number in range(4)}
    workspaces.write(
        repo.root,
        {
            "overlays/lab/cluster.yaml": workspaces.CLUSTER + "".join(teams.values()),
            **{f"specs/{team}/team.yaml": workspaces.TEAM for team in teams},
            **{f"specs/{team}/one.yaml": SMALL for team in teams},
            "specs/t1/leaky/two.yaml": secret,
            "specs/t2/mounted.yaml": f"{SMALL}files: {{./files/a.txt: /etc/a.txt}}\n",
            "specs/t2/files/a.txt": "a",
        },
    )
    gangplan("render", "-C", repo.root)
    repo.commit()
    repo.git("checkout", "-q", "-B", "main")
    workspaces.write(repo.root, {"specs/t3/one.yaml": SPEC})
    written: set[str] = set()
    write = sides._write_files_before_change

    def note(top: Path, files: Mapping[str, bytes]) -> None:
        written.update(path for path in files if path.startswith("specs/") and not path.endswith("team.yaml"))
        write(top, files)

    monkeypatch.setattr(sides, "_write_files_before_change", note)
    found = repo.review("--no-cache")
    assert written == {
        "specs/t1/leaky/two.yaml",
        "specs/t2/files/a.txt",
        "specs/t2/mounted.yaml",
        "specs/t2/one.yaml",
        "specs/t3/one.yaml",
    }
    assert [(one["edit"], one["team"]) for one in found["runs"]] == [("changed", "t3")]


def test_a_changed_file_that_git_does_not_look_at_is_an_object_that_differs(repo: Repository) -> None:
    """Git's index answers for most of rendered/; this is one of the files for which it cannot."""
    (path,) = (repo.root / "rendered/lab/runs/nlp").glob("filings-*.yaml")
    name = path.relative_to(repo.root)
    assert repo.review()["objects"] == []
    repo.git("update-index", "--assume-unchanged", name)
    path.write_text(path.read_text().replace("numNodes: 4", "numNodes: 5"))
    found = repo.review()
    assert [one["rule"] for one in found["newFindings"]["findings"]] == ["rendered-stale"]
    assert found["objects"] == []
    repo.git("update-index", "--no-assume-unchanged", name)
    repo.commit()
    repo.git("checkout", "-q", "-B", "main")
    repo.git("update-index", "--assume-unchanged", name)
    repo.render()
    (change,) = repo.review()["objects"]
    assert (change["change"], change["job"]) == ("changed", "filings")


def test_earlier_findings_are_counted_and_not_reported_again(repo: Repository) -> None:
    warned = SPEC.replace("gpus: 2", "gpus: 2\nlabels: {}") + "checkpoint: {to: notes}\n"
    repo.write(first=warned)
    gangplan("render", "-C", repo.root)
    repo.commit()
    repo.git("checkout", "-q", "-B", "main")
    repo.git("checkout", "-q", "-b", "next")
    old = gangplan("validate", "-C", repo.root).findings
    repo.write(first=f"# a line more\n{warned}", second=SMALL.replace("memory: 32Gi", "memory: 32GB"))
    outcome = repo.plan()
    assert [one.rule for one in outcome.findings if one.severity == "error"] == ["spec-value"]
    assert not {one.message for one in old} & {one.message for one in outcome.findings}
    assert f"{len(old)} as before" in outcome.out


def test_added_expired_and_removed_waivers_are_reported(repo: Repository) -> None:
    waiver = (
        "apiVersion: gangplan.dev/v1\nkind: Waiver\nrule: image-catalog\nscope: {team: nlp}\n"
        "reason: The vendor ships no other image\napprover: platform@example.com\nexpires: 2026-12-31\n"
    )
    workspaces.write(repo.root, {"policies/waivers/vendor.yaml": waiver})

    def told(day: str) -> list[tuple[str, str]]:
        return [(one["change"], one["name"]) for one in repo.review("--today", day)["waivers"]]

    assert told("2026-12-01") == [("added", "vendor")]
    assert told("2027-01-01") == [("expired", "vendor")]
    repo.commit()
    repo.git("checkout", "-q", "-B", "main")
    assert told("2026-12-01") == []
    (repo.root / "policies/waivers/vendor.yaml").unlink()
    assert told("2026-12-01") == [("removed", "vendor")]


def test_the_plan_shows_quota_headroom(repo: Repository) -> None:
    repo.write(second=SPEC.replace("workers: 4", "workers: 8").replace("gpus: 2", "gpus: 4"))
    repo.render()
    rows = {one["pool"]: one for one in repo.review()["quotas"]}
    pool = repo.review()["runs"][0]["after"]["pool"]
    assert (rows[pool]["before"]["wanted"], rows[pool]["after"]["wanted"]) == ("8", "40")
    text = repo.plan().out
    assert "Quota headroom" in text


def test_the_work_tree_and_the_index_stay_as_they_are(repo: Repository) -> None:
    repo.write(second=SMALL)
    repo.render()
    repo.plan()  # fills the cache in .gangplan/
    (repo.root / "specs/nlp/filings.yaml").touch()  # the index no longer knows its time
    before = {path: path.stat().st_mtime_ns for path in repo.top.rglob("*") if ".gangplan" not in path.parts}
    contents = workspaces.tree(repo.top / ".git")
    repo.plan()
    assert {path: path.stat().st_mtime_ns for path in before} == before
    assert workspaces.tree(repo.top / ".git") == contents


@pytest.mark.parametrize("change", ["spec", "platform"])
def test_the_cache_does_not_change_the_plan(repo: Repository, change: str) -> None:
    """The plan is the same with and without a cache, cold and warm."""
    repo.write(second=SMALL)
    if change == "platform":
        catalog = workspaces.CATALOG.replace("332211ffee", "332211ffef")
        workspaces.write(repo.root, {"images/catalog.yaml": catalog})
    found: list[dict[str, Any]] = [repo.review("--no-cache"), repo.review(), repo.review()]
    gangplan("render", "-C", repo.root)
    repo.git("add", "-A")
    assert found[0] == found[1] == found[2]
    again = [repo.review(), repo.review("--no-cache")]
    assert again[0] == again[1]
    for one in (*again[0]["runs"], *found[0]["runs"]):
        del one["keep"]  # the steps depend on what rendered/ has
    assert again[0]["runs"] == found[0]["runs"]


def test_incompatible_flags_are_refused(repo: Repository) -> None:
    for flags in (["--network"], ["--format", "sarif"], ["--limit", "5000"], ["--hostfile"]):
        assert repo.plan(*flags).code == Exit.INPUT, flags
    assert gangplan("plan", "-C", repo.root, "--limit", "5000").code == Exit.INPUT
    assert gangplan("plan", "-C", repo.root, "--format", "markdown").code == Exit.INPUT
