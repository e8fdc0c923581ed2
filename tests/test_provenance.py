"""`gangplan provenance` and `gangplan verify`: what rendered/ was made from, and whether it still matches."""

from __future__ import annotations

import base64
import json
import shutil
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from gangplan import __version__
from gangplan.errors import Exit
from tests import workspaces
from tests.workspaces import CLUSTER, SPEC, Outcome, gangplan, render


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Render two clusters; one of them has one team more."""
    folder = workspaces.stock(tmp_path / "jobs")
    workspaces.write(
        folder,
        {
            "overlays/far/cluster.yaml": CLUSTER,
            "specs/nlp/team.yaml": workspaces.TEAM.replace("[lab]", "[lab, far]"),
            "specs/cv/team.yaml": workspaces.TEAM,
            "specs/cv/pets.yaml": SPEC,
            "overlays/lab/cluster.yaml": CLUSTER + "  cv: {queue: training}\n",
        },
    )
    render(folder)
    return folder


def statements(root: Path, *flags: str) -> dict[str, dict[str, Any]]:
    """Return the printed statements by cluster."""
    outcome = gangplan("provenance", "-C", root, *flags)
    assert outcome.code == Exit.CLEAN, outcome.err
    found = [json.loads(line) for line in outcome.out.splitlines()]
    return {one["predicate"]["buildDefinition"]["externalParameters"]["cluster"]: one for one in found}


def verify(root: Path, *words: str | Path) -> tuple[int, list[str]]:
    """Return the exit code, and the lines about differences."""
    outcome: Outcome = gangplan("verify", "-C", root, *words)
    return outcome.code, outcome.out.splitlines()[:-1]


def test_each_cluster_has_a_complete_statement(root: Path) -> None:
    found = statements(root)
    assert sorted(found) == ["far", "lab"]
    for cluster, one in found.items():
        assert one["_type"] == "https://in-toto.io/Statement/v1"
        assert one["predicateType"] == "https://slsa.dev/provenance/v1"
        names = [subject["name"] for subject in one["subject"]]
        tree = [path for path in workspaces.tree(root) if path.startswith(f"rendered/{cluster}/")]
        assert names == sorted(tree)
        for subject in [*one["subject"], *one["predicate"]["buildDefinition"]["resolvedDependencies"]]:
            assert subject["digest"]["sha256"] == sha256((root / subject["name"]).read_bytes()).hexdigest()
        builder = one["predicate"]["runDetails"]["builder"]
        assert builder["version"]["gangplan"] == __version__
        assert builder["id"] == "https://gangplan.dev/builder/unspecified"
    read = {one["name"] for one in found["far"]["predicate"]["buildDefinition"]["resolvedDependencies"]}
    assert read == {
        "images/catalog.yaml",
        "overlays/far/cluster.yaml",
        "overlays/lab/cluster.yaml",
        "specs/nlp/filings.yaml",
        "specs/nlp/team.yaml",
    }


def test_statements_are_the_same_bytes_elsewhere(root: Path, tmp_path: Path) -> None:
    """Paths, time, and the order of files and workers change nothing."""
    first = gangplan("provenance", "-C", root).out
    copy = tmp_path / "other" / "place"
    shutil.copytree(root, copy, ignore=shutil.ignore_patterns(".gangplan"))
    assert gangplan("provenance", "-C", copy, "--no-cache").out == first
    assert gangplan("provenance", "-C", copy, "--engine", "process", "-j", "2").out == first
    assert str(tmp_path) not in first


def test_statements_are_written_only_outside_of_what_is_applied(root: Path, tmp_path: Path) -> None:
    folder = tmp_path / "ci"
    assert gangplan("provenance", "-C", root, "-o", folder, "--builder", "https://ci.example.com/1").code == 0
    assert sorted(path.name for path in folder.iterdir()) == ["far.intoto.jsonl", "lab.intoto.jsonl"]
    assert '"id":"https://ci.example.com/1"' in (folder / "lab.intoto.jsonl").read_text()
    for place in ("rendered", "rendered/lab", "specs/nlp"):
        outcome = gangplan("provenance", "-C", root, "-o", root / place)
        assert outcome.code == Exit.INPUT
        assert "statements are not committed" in outcome.err
    assert verify(root, *sorted(folder.iterdir())) == (Exit.CLEAN, [])


def test_a_stale_tree_gets_no_statement(root: Path) -> None:
    workspaces.write(root, {"specs/nlp/second.yaml": SPEC})
    outcome = gangplan("provenance", "-C", root)
    assert (outcome.code, outcome.out) == (Exit.FINDINGS, "")
    assert "rendered-stale" in outcome.err


def test_verify_names_every_difference_from_the_tree(root: Path) -> None:
    assert verify(root) == (Exit.CLEAN, [])
    tenant = "rendered/lab/tenants/nlp/tenant.yaml"
    (root / tenant).write_text((root / tenant).read_text() + "# more\n")
    (run,) = (root / "rendered/lab/runs/cv").glob("*-*.yaml")
    run.unlink()
    workspaces.write(
        root, {"specs/nlp/second.yaml": SPEC, "specs/nlp/filings.yaml": f"{SPEC}state: archived\n"}
    )
    code, lines = verify(root, "--cluster", "lab")
    assert code == Exit.FINDINGS
    assert f"{tenant}: not what is rendered now" in lines
    assert f"{run.relative_to(root)}: missing, but it is rendered now" in lines
    assert any(line.startswith("rendered/lab/runs/nlp/second-") for line in lines)
    assert not any("rendered/far" in line for line in lines)
    document = json.loads(gangplan("verify", "-C", root, "--format", "json").out)
    assert {one["what"] for one in document["differences"]} > {line.split(": ")[0] for line in lines}


def test_verify_names_every_difference_from_a_statement(root: Path, tmp_path: Path) -> None:
    file = tmp_path / "all.jsonl"
    file.write_text(gangplan("provenance", "-C", root).out)
    assert verify(root, file) == (Exit.CLEAN, [])
    workspaces.write(
        root, {"specs/nlp/filings.yaml": f"{SPEC}description: Other\n", "specs/nlp/new.yaml": SPEC}
    )
    render(root)
    code, lines = verify(root, file)
    assert code == Exit.FINDINGS
    assert any(
        line.startswith("all.jsonl: specs/nlp/filings.yaml: read with other contents (") for line in lines
    )
    assert "all.jsonl: specs/nlp/new.yaml: read now, and not for the statement" in lines
    changed = [line for line in lines if ": rendered with other contents (" in line]
    assert [line.split(": ")[1].split("/")[1] for line in changed] == ["far", "lab"]
    text = file.read_text().replace(f'"gangplan":"{__version__}"', '"gangplan":"0.0.1"')
    file.write_text(text)
    assert f"all.jsonl: gangplan: 0.0.1 in the statement, {__version__} now" in verify(root, file)[1]


def test_a_tree_that_was_edited_with_its_statement_is_refused(root: Path, tmp_path: Path) -> None:
    """Someone who can write both files still cannot make gangplan render them."""
    path = root / "rendered/lab/tenants/nlp/tenant.yaml"
    old = sha256(path.read_bytes()).hexdigest()
    file = tmp_path / "forged.jsonl"
    text = gangplan("provenance", "-C", root).out
    path.write_text(path.read_text() + "# more\n")
    file.write_text(text.replace(old, sha256(path.read_bytes()).hexdigest()))
    code, lines = verify(root, file)
    assert code == Exit.FINDINGS
    assert any("rendered with other contents" in line for line in lines)
    file.write_text(text)
    assert any("in the tree with other contents" in line for line in verify(root, file)[1])


def test_statements_in_envelopes_and_bundles_are_verified(root: Path, tmp_path: Path) -> None:
    lines = gangplan("provenance", "-C", root).out.splitlines()
    file = tmp_path / "signed.json"
    envelope = {
        "payloadType": "application/vnd.in-toto+json",
        "payload": base64.b64encode(lines[0].encode()).decode(),
        "signatures": [{"sig": "AA=="}],
    }
    for document in (
        envelope,
        {"mediaType": "application/vnd.dev.sigstore.bundle.v0.3+json", "dsseEnvelope": envelope},
    ):
        file.write_text(json.dumps(document, indent=2))
        assert verify(root, file) == (Exit.CLEAN, [])


@pytest.mark.parametrize(
    "text",
    [
        "",
        "no JSON",
        "[]",
        "{}",
        "[" * 100_000,
        '{"_type": "https://in-toto.io/Statement/v1"}',
        '{"_type": "https://in-toto.io/Statement/v1", "predicateType": "https://e.com/x", "subject": []}',
        '{"payload": "%%%", "payloadType": "application/vnd.in-toto+json"}',
        '{"payload": "e30=", "payloadType": "text/plain"}',
    ],
)
def test_an_invalid_statement_is_refused(root: Path, tmp_path: Path, text: str) -> None:
    file = tmp_path / "odd.json"
    file.write_text(text)
    outcome = gangplan("verify", "-C", root, file)
    assert outcome.code == Exit.INPUT
    assert "help" in outcome.err


def test_a_statement_cannot_name_files_elsewhere(root: Path, tmp_path: Path) -> None:
    """No file outside of rendered/ is read for it."""
    secret = tmp_path / "secret"
    secret.write_text("secret")
    digest = sha256(b"secret").hexdigest()
    (one,) = statements(root, "--cluster", "lab").values()
    one["subject"] = [{"name": "rendered/../../secret", "digest": {"sha256": digest}}]
    file = tmp_path / "evil.json"
    file.write_text(json.dumps(one))
    code, lines = verify(root, file)
    assert code == Exit.FINDINGS
    assert "evil.json: rendered/../../secret: rendered for the statement, and not now" in lines


def test_a_removed_cluster_is_reported(root: Path, tmp_path: Path) -> None:
    file = tmp_path / "all.jsonl"
    file.write_text(gangplan("provenance", "-C", root).out)
    shutil.rmtree(root / "overlays/far")
    workspaces.write(root, {"specs/nlp/team.yaml": workspaces.TEAM})
    render(root)
    assert "all.jsonl: far: a cluster that the workspace no longer has" in verify(root, file)[1]
    assert gangplan("verify", "-C", root, "--cluster", "far").code == Exit.INPUT
