"""`gangplan policy export -o FILE` and `policy list`: no file is lost, and no text acts as a command."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gangplan.errors import Exit
from tests import plain
from tests.workspaces import CLUSTER, Outcome, gangplan, tree, write


@pytest.fixture
def site(root: Path) -> Path:
    """Create a workspace whose cluster has policies."""
    return write(root, {"overlays/lab/cluster.yaml": CLUSTER + "policies: {packs: [baseline]}\n"})


def export(root: Path, output: str | Path) -> Outcome:
    """Export into a file."""
    return gangplan("policy", "export", "-C", root, "--cluster", "lab", "-o", output)


def test_links_and_pipes_are_written_through(site: Path, tmp_path: Path) -> None:
    (tmp_path / "real").write_text("old")
    (tmp_path / "link").symlink_to("real")
    os.mkfifo(tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    shown = gangplan("policy", "export", "-C", site, "--cluster", "lab").out
    for name in ("link", "/dev/null"):
        assert export(site, tmp_path / name).code == Exit.CLEAN
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_text() == shown
    assert not Path("/dev/null").is_file()
    os.set_blocking(reader, False)
    write(site, {"overlays/lab/cluster.yaml": CLUSTER, "policies/x.yaml": SMALL})
    assert export(site, tmp_path / "pipe").code == Exit.CLEAN
    assert b"kind: ConfigMap" in os.read(reader, 1 << 16)
    os.close(reader)
    assert (tmp_path / "pipe").is_fifo()


@pytest.mark.parametrize("labels", ["", ", labels: {a: b}"])
def test_what_the_workspace_adds_has_the_label_that_sync_removes_by(labels: str, site: Path) -> None:
    write(site, {"policies/x.yaml": SMALL.replace("default}", f"default{labels}}}")})
    shown = gangplan("policy", "export", "-C", site, "--cluster", "lab").out
    found = list(plain.load_all(shown))
    assert "ConfigMap/a" in [f"{one['kind']}/{one['metadata']['name']}" for one in found]
    assert [one["metadata"]["labels"].get("app.kubernetes.io/managed-by") for one in found] == [
        "gangplan"
    ] * len(found)


SMALL = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: default}\ndata: {b: c}\n"


@pytest.mark.parametrize(
    ("output", "said"),
    [
        ("specs/nlp/filings.yaml", "specs/ holds what is checked"),
        ("overlays/lab/new.yaml", "overlays/ holds what is checked"),
        ("schemas", "is a folder"),
        (".", "is a folder"),
        ("", "the name is empty"),
        ("nowhere/a.yaml", "there is no folder nowhere"),
        ("loop", "Too many levels of symbolic links"),
        ("a" * 300, "File name too long"),
    ],
)
def test_a_bad_file_is_refused(output: str, said: str, site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (site / "schemas").mkdir()
    (site / "loop").symlink_to("loop")
    monkeypatch.chdir(site)
    before = tree(site)
    outcome = export(site, output) if output else gangplan("policy", "export", "--cluster", "lab", "-o", "")
    assert (outcome.code, outcome.out) == (Exit.INPUT, "")
    assert said in outcome.err
    assert "\n  help: " in outcome.err
    assert tree(site) == before
    assert not list(site.glob(".gangplan.*"))


def test_a_folder_that_takes_no_file_is_reported(site: Path) -> None:
    outcome = export(site, "/proc/x.yaml")
    assert outcome.code == Exit.ENVIRONMENT
    assert "fatal: the export /proc/x.yaml was not written: " in outcome.err
    assert "Traceback" not in outcome.err


def test_a_broken_cluster_file_is_reported_as_such(site: Path) -> None:
    write(site, {"overlays/lab/cluster.yaml": CLUSTER + 'policies: {packs: [""]}\n'})
    for command in (["export"], ["list"]):
        outcome = gangplan("policy", *command, "-C", site, "--cluster", "lab")
        assert outcome.code == Exit.INPUT
        assert [place.rpartition(":")[0] for place, _ in outcome.errors()] == ["overlays/lab/cluster.yaml:17"]
        assert "there is no cluster" not in outcome.err


def test_a_long_list_of_known_names_ends_in_an_ellipsis(root: Path) -> None:
    write(root, {f"overlays/c{number}/cluster.yaml": CLUSTER for number in range(9)})
    outcome = gangplan("policy", "export", "-C", root, "--cluster", "zzz")
    assert outcome.err.endswith("c7, ...\n")


def test_the_list_of_policies_contains_no_workflow_command(site: Path) -> None:
    evil = '"t\\n::error::pwned \\e[31m"'
    policy = SMALL.replace("ConfigMap", "ValidatingAdmissionPolicy").replace(
        "v1", "admissionregistration.k8s.io/v1"
    )
    page = f"{{title: {evil}, why: w, fix: f}}"
    write(
        site,
        {
            "policies/mine/pack.yaml": f"title: a\nwhy: b\npolicies: {{p1: {page}}}\n",
            "policies/x.yaml": policy.replace("name: a", 'name: "::error::pwned"'),
        },
    )
    outcome = gangplan("policy", "list", "-C", site)
    assert outcome.out.count("::error::pwned") == 2
    assert "\033" not in outcome.out
    assert not any(line.lstrip().startswith("::") for line in outcome.out.splitlines())
