"""What errors hide is left out of both sides of a review, and said; and filters mean the same everywhere."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gangplan.review.objects import iterate_changed_leaves
from tests import workspaces
from tests.review.repository import Repository, begin
from tests.workspaces import SPEC, gangplan

SMALL = SPEC.replace("workers: 4", "workers: 2")
WAIVER = (
    "apiVersion: gangplan.dev/v1\nkind: Waiver\nrule: image-catalog\nscope: {SCOPE}\n"
    "reason: The vendor ships no other image\napprover: platform@example.com\nexpires: 2036-12-31\n"
)


@pytest.fixture
def repo(tmp_path: Path) -> Repository:
    """Render and commit two jobs of a team on two clusters, and check out a branch."""
    found = begin(tmp_path / "repo")
    workspaces.write(
        found.root,
        {
            "specs/nlp/team.yaml": workspaces.TEAM.replace("[lab]", "[edge, lab]"),
            "overlays/edge/cluster.yaml": workspaces.CLUSTER,
        },
    )
    found.write(second=SMALL)
    found.render()
    found.commit()
    found.git("checkout", "-q", "-B", "main")
    found.git("checkout", "-q", "-b", "change")
    return found


def totals(found: dict[str, Any]) -> list[tuple[int, int]]:
    """Return the active runs of each team on each cluster, before and after."""
    return [(one["before"]["runs"], one["after"]["runs"]) for one in found["totals"]["teams"]]


def test_a_run_with_errors_is_in_no_total(repo: Repository) -> None:
    repo.write(second=f"{SMALL}timeout: soon\n")
    found = repo.review()
    assert [(one["edit"], one["job"]) for one in found["runs"]] == [("broken", "second")] * 2
    assert totals(found) == [(1, 1), (1, 1)]
    assert all(one["before"]["wanted"] == one["after"]["wanted"] for one in found["quotas"])
    assert found["objects"] == []
    assert found["notes"] == [
        "2 runs with errors are left out of totals, quotas and objects, before and after"
    ]
    one = repo.review("--cluster", "lab")["notes"]
    assert one == ["1 run with errors is left out of totals, quotas and objects, before and after"]


@pytest.mark.parametrize(
    ("file", "old", "new", "clusters"),
    [
        ("overlays/edge/cluster.yaml", "region: eu-central", "region: 7", "edge"),
        ("overlays/edge/cluster.yaml", "kind: Cluster", "kind: [", "edge"),
        ("images/catalog.yaml", "kind: ImageCatalog", "kind: [", "edge, lab"),
        ("images/catalog.yaml", "sha256:1b0f", "sha256:1b0x", "edge, lab"),
    ],
)
def test_nothing_is_compared_of_clusters_whose_files_have_errors(
    repo: Repository, file: str, old: str, new: str, clusters: str
) -> None:
    path = repo.root / file
    path.write_text(path.read_text().replace(old, new))
    found = repo.review()
    named = clusters.split(", ")
    assert found["notes"] == [f"files of {clusters} have errors, so what changes there is not known"]
    assert {one["cluster"] for one in found["totals"]["teams"]}.isdisjoint(named)
    assert {one["cluster"] for one in found["quotas"]}.isdisjoint(named)
    assert found["objects"] == []
    assert found["totals"]["all"]["before"] == found["totals"]["all"]["after"]
    assert found["goneFindings"]["findings"] == []
    assert {one["edit"] for one in found["runs"]} <= {"broken"}


def test_a_new_spec_with_errors_is_named(repo: Repository) -> None:
    repo.write(third=f"{SMALL}timeout: soon\n")
    found = repo.review()
    assert (found["runs"], totals(found)) == ([], [(2, 2), (2, 2)])
    assert found["notes"] == ["specs with errors, which would start runs: specs/nlp/third.yaml"]
    assert repo.review("specs/nlp/second.yaml")["notes"] == []


def test_another_run_that_is_stopped_does_not_stop_the_one_that_runs(repo: Repository) -> None:
    repo.write(second=SMALL.replace("train.py", "other.py") + "state: stopped\n")
    found = repo.review("--cluster", "lab")
    (run,) = found["runs"]
    assert (run["edit"], run["job"]) == ("removed", "second")
    assert run["goesOn"].startswith("second-")
    assert run["goesOn"] == run["before"]["name"]
    repo.write(second=f"{SMALL}state: stopped\n")
    assert repo.edits("--cluster", "lab") == [("stopped", "second")]


def test_hidden_files_of_other_tools_are_not_changes(repo: Repository) -> None:
    workspaces.write(repo.root, {"images/.hadolint.yaml": "ignored: []\n"})
    repo.commit()
    repo.git("checkout", "-q", "-B", "main")
    assert repo.review()["reach"] == []
    workspaces.write(repo.root, {"images/.hadolint.yaml": "ignored: [DL3008]\n"})
    assert repo.review()["reach"] == []


def test_specs_of_a_cluster_are_those_that_run_there(repo: Repository) -> None:
    repo.write(
        third=f"{SMALL}clusters: [lab]\n", fourth=f"{SMALL}clusters: [edge]\ndescription: Other words\n"
    )
    assert repo.review("--cluster", "edge")["specs"]["new"] == ["specs/nlp/fourth.yaml"]
    assert repo.review("--cluster", "lab", "--team", "nlp")["specs"]["new"] == ["specs/nlp/third.yaml"]
    assert len(repo.review()["specs"]["new"]) == 2
    repo.render()
    repo.commit()
    repo.git("checkout", "-q", "-B", "main")
    (repo.root / "specs/nlp/fourth.yaml").unlink()
    found = repo.review("--cluster", "edge")
    assert found["specs"]["removed"] == ["specs/nlp/fourth.yaml"]
    assert found["specs"]["descriptions"] == {"specs/nlp/fourth.yaml": "Other words"}
    assert repo.review("--cluster", "lab")["specs"]["removed"] == []


@pytest.mark.parametrize(
    ("scope", "flags", "is_shown"),
    [
        ("{team: nlp}", (), True),
        ("{team: nlp}", ("--team", "nlp"), True),
        ("{team: vision}", ("--team", "nlp"), False),
        ("{team: n*}", ("--team", "nlp"), True),
        ("{cluster: lab}", ("--team", "nlp"), True),
        ("{cluster: lab}", ("--cluster", "edge"), False),
        ("{cluster: e*, team: nlp}", ("--cluster", "edge", "--team", "nlp"), True),
        ("{team: nlp}", ("specs/nlp/second.yaml",), True),
        ("{team: vision}", ("specs/nlp/second.yaml",), False),
    ],
)
def test_waivers_are_those_of_the_part(
    repo: Repository, scope: str, flags: tuple[str, ...], is_shown: bool
) -> None:
    workspaces.write(repo.root, {"policies/waivers/vendor.yaml": WAIVER.replace("{SCOPE}", scope)})
    assert [one["name"] for one in repo.review(*flags)["waivers"]] == ["vendor"] * is_shown


def test_a_named_file_with_a_stale_run_is_reported(repo: Repository) -> None:
    repo.write(second=SMALL.replace("train.py", "other.py"))
    for flags in ((), ("specs/nlp/second.yaml",), ("--team", "nlp")):
        rules = [one["rule"] for one in repo.review(*flags)["newFindings"]["findings"]]
        assert "rendered-stale" in rules, flags
    other = repo.review("specs/nlp/filings.yaml")["newFindings"]["findings"]
    assert "rendered-stale" not in [one["rule"] for one in other]


def test_the_queue_of_a_team_is_an_object_of_the_team(repo: Repository) -> None:
    team = workspaces.CLUSTER.replace("nlp: {queue: training}", "nlp: {queue: training, weight: 2}")
    workspaces.write(repo.root, {"overlays/lab/cluster.yaml": team + "  vision: {queue: training}\n"})
    workspaces.write(repo.root, {"specs/vision/team.yaml": workspaces.TEAM})
    queues = {
        name: {(one["kind"], one["name"]) for one in repo.review("--team", name)["objects"]}
        for name in ("nlp", "vision")
    }
    assert ("ClusterQueue", "nlp") in queues["nlp"] - queues["vision"]
    assert ("ClusterQueue", "vision") in queues["vision"] - queues["nlp"]
    assert [one["file"] for one in repo.review("--team", "vision")["reach"]] == [
        "overlays/lab/cluster.yaml",
        "specs/vision/team.yaml",
    ]
    assert [one["file"] for one in repo.review("--team", "nlp")["reach"]] == ["overlays/lab/cluster.yaml"]
    assert "ClusterQueue" in gangplan("diff", "-C", repo.root, "--base", "main", "--team", "nlp").out


def test_the_words_fit_the_numbers(repo: Repository) -> None:
    team = repo.root / "specs/nlp/team.yaml"
    team.write_text(f"{team.read_text()}contact: nlp@example.com\n")
    repo.render()
    out = repo.plan().out
    count = len(repo.review()["objects"])
    assert (
        f"no run starts or ends, {count} object{'s' if count > 1 else ''} change{'' if count > 1 else 's'};"
        in out
    )


@pytest.mark.parametrize(
    ("old", "new", "found"),
    [
        (["a", "b", "c"], ["a", "x", "c"], [((1,), "b", "x")]),
        (["a", "b"], ["b", "a"], [((0,), "a", "b"), ((1,), "b", "a")]),
        (["a", "b", "c"], ["b", "c", "d"], [((2,), "a", "d")]),
        (["--lr", "1", "--bs", "2"], ["--lr", "2", "--bs", "1"], [((1,), "1", "2"), ((3,), "2", "1")]),
        (
            [{"r": "q", "team": "a"}, {"r": "q", "team": "b"}],
            [{"r": "q", "team": "b"}, {"r": "q", "team": "c"}],
            [((1, "team"), "a", "c")],
        ),
    ],
)
def test_entries_without_names_are_compared_with_those_they_replace(
    old: list[Any], new: list[Any], found: list[Any]
) -> None:
    assert list(iterate_changed_leaves(old, new)) == found


def test_only_files_that_a_workspace_reads_have_a_reach(repo: Repository) -> None:
    """Whatever else is in a shared folder decides no run, also if another file retrains some."""
    others = ("images/openmpi/Containerfile", "images/notes.md", "policies/__pycache__/one.pyc")
    catalog = workspaces.CATALOG.replace("332211ffee", "332211ffef")
    workspaces.write(repo.root, {**dict.fromkeys(others, "x"), "images/catalog.yaml": catalog})
    repo.render()
    assert [one["file"] for one in repo.review()["reach"]] == ["images/catalog.yaml"]
