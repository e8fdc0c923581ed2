"""Teams that a cluster does not list: the missing entry is reported first, once for a new team."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import pytest

from gangplan.errors import Exit
from tests.workspaces import CATALOG, CLUSTER, SPEC, gangplan, write

TEAM = "apiVersion: gangplan.dev/v1\nkind: Team\n"
LAB, FAR = "overlays/lab/cluster.yaml", "overlays/far/cluster.yaml"
ML, JOB = "specs/ml/team.yaml", "specs/ml/first.yaml"
LISTED = CLUSTER.replace("nlp: {queue: training}", "ml: {queue: training}")
BOTH = CLUSTER.replace(
    "nlp: {queue: training}", "nlp: {queue: gpu}\n  cv: {queue: gpu}\n  ops: {queue: training}"
)
NOBODY = CLUSTER.replace("\n  nlp: {queue: training}", " {}")
OTHERS = {f"specs/{team}/team.yaml": TEAM for team in ("nlp", "cv", "ops")}
NOWHERE = "no cluster lists team ml, so none of its jobs can run"
ADD = "Add ml: {queue: training} under teams: in overlays/"
ANY = f"{ADD}<cluster>/cluster.yaml (far, lab), or ask the owner to."


@dataclass(frozen=True)
class Case:
    """Files of a workspace, and the findings about clusters: place, rule, and parts of message and help."""

    files: dict[str, str]
    found: list[tuple[str, str]] = field(default_factory=list)
    says: str = ""
    helps: str = ""


CASES = {
    "one cluster": Case(
        {LAB: CLUSTER},
        [(f"{ML}:1:1", "team-not-on-cluster")],
        NOWHERE,
        f"{ADD}lab/cluster.yaml, or ask its owner to.",
    ),
    "two clusters, and two specs": Case(
        {LAB: CLUSTER, FAR: CLUSTER, "specs/ml/second.yaml": SPEC},
        [(f"{ML}:1:1", "team-not-on-cluster")],
        NOWHERE,
        ANY,
    ),
    "the spec names one": Case(
        {LAB: CLUSTER, FAR: CLUSTER, JOB: f"{SPEC}clusters: [lab]\n"},
        [(f"{ML}:1:1", "team-not-on-cluster")],
        NOWHERE,
        ANY,
    ),
    "the team names one": Case(
        {LAB: BOTH, FAR: CLUSTER, ML: f"{TEAM}clusters: [lab]\n"},
        [(f"{ML}:1:1", "team-not-on-cluster")],
        NOWHERE,
        "Add ml: {queue: gpu} under teams: in overlays/lab/cluster.yaml, or ask its owner to.",
    ),
    "a cluster of nobody": Case(
        {LAB: NOBODY}, [(f"{ML}:1:1", "team-not-on-cluster")], NOWHERE, "{queue: training}"
    ),
    "another cluster lists it": Case(
        {LAB: CLUSTER, FAR: LISTED, JOB: f"{SPEC}clusters: [lab]\n"},
        [(f"{JOB}:9:11", "team-not-on-cluster")],
        "team ml has no queue on cluster lab",
        f"{ADD}lab/cluster.yaml, or ask its owner to; it has one on far.",
    ),
    "both list it, and nobody chooses": Case(
        {LAB: LISTED, FAR: LISTED},
        [(f"{JOB}:1:1", "cluster-not-chosen")],
        "team ml may run on 2 clusters (far, lab), and neither the spec nor the team chooses one",
        "Add clusters: [far] or clusters: [lab] to the spec, or to team.yaml.",
    ),
    "a cluster that there is not": Case(
        {LAB: CLUSTER, JOB: f"{SPEC}clusters: [lap]\n"},
        [(f"{JOB}:9:12", "cluster-unknown")],
        "'lap'",
        "'lab'",
    ),
    "one lists it": Case({LAB: LISTED, FAR: CLUSTER}),
    "the team without a spec": Case({LAB: CLUSTER, JOB: ""}),
}


@pytest.mark.parametrize("name", CASES)
def test_the_missing_entry_of_a_team_is_reported(name: str, tmp_path: Path) -> None:
    case = CASES[name]
    files = {"images/catalog.yaml": CATALOG, ML: TEAM, JOB: SPEC, **OTHERS, **case.files}
    root = write(tmp_path / "w", {file: text for file, text in files.items() if text})
    for arguments in ((), ("--team", "ml")):
        outcome = gangplan("validate", *arguments, "-C", root)
        about = [one for one in outcome.findings if one.severity == "error"]
        assert [(one.place, one.rule) for one in about] == case.found, outcome.err
        assert all(case.says in one.message and case.helps in one.help for one in about), outcome.err
        assert (outcome.code == Exit.INPUT) == bool(case.found) or name == "the team without a spec"


def test_only_the_error_of_an_unreadable_cluster_is_reported(tmp_path: Path) -> None:
    """The cluster may list the team, so only its own error is reported."""
    files = {
        "images/catalog.yaml": CATALOG,
        ML: TEAM,
        JOB: SPEC,
        **OTHERS,
        LAB: CLUSTER,
        FAR: "kind: Cluster\n",
    }
    outcome = gangplan("validate", "-C", write(tmp_path / "w", files))
    assert {one.place.split(":")[0] for one in outcome.findings if one.severity == "error"} == {FAR}


def test_following_the_help_fixes_the_error(tmp_path: Path) -> None:
    files = {"images/catalog.yaml": CATALOG, ML: TEAM, JOB: SPEC, **OTHERS, LAB: CLUSTER}
    root = write(tmp_path / "w", files)
    (found,) = [one for one in gangplan("validate", "-C", root).findings if one.severity == "error"]
    line = found.help.removeprefix("Add ").partition(" under")[0]
    write(root, {LAB: f"{CLUSTER}  {line}\n"})
    assert gangplan("validate", "-C", root).errors() == []
