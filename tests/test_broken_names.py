"""Names whose file has errors: these are reported wherever the name is given, not an unknown name."""

from __future__ import annotations

from pathlib import Path

import pytest

from gangplan.errors import Exit
from tests.workspaces import CATALOG, CLUSTER, SPEC, STOCK, TEAM, gangplan, stock, write

LAB, NLP, IMAGES = "overlays/lab/cluster.yaml", "specs/nlp/team.yaml", "images/catalog.yaml"
BASE = "jobtemplates/base.yaml"
BROKEN = {
    LAB: CLUSTER.replace("memory: 240Gi", "memory: 240GB"),
    NLP: TEAM.replace("[ReadOnlyMany]", "[ROX]", 1),
    IMAGES: CATALOG.replace("sha256:1b0f", "md5:1b0f"),
    BASE: "apiVersion: gangplan.dev/v1\nkind: JobTemplate\njob: {wrkers: 2}\ntitel: x\n",
}
SAID = {
    LAB: "nodePools.cpu.memory: '240GB' is not a valid amount",
    NLP: "claims.archive.accessModes[0] is 'ROX'",
    IMAGES: "images.openmpi.digest is 'md5:",
    BASE: "unknown field",
}
CASES = {
    "validate --cluster lab": LAB,
    "render --cluster lab": LAB,
    "render --check --cluster lab": LAB,
    "plan --cluster lab": LAB,
    "cost --cluster lab": LAB,
    "validate specs/nlp/filings.yaml --cluster lab": LAB,
    "validate --cluster lab --team nlp": LAB,
    "simulate --cluster lab": LAB,
    "status --cluster lab": LAB,
    "logs filings-01234567 --cluster lab --team nlp": LAB,
    "diagnose --server --run filings-01234567 --cluster lab --team nlp": LAB,
    "cluster check --cluster lab": LAB,
    "cluster quota --cluster lab": LAB,
    "cluster snapshot lab": LAB,
    "gitops argocd --repo https://git.example.com/ml/training.git --cluster lab": LAB,
    "policy list --cluster lab": LAB,
    "run specs/nlp/filings.yaml --cluster lab": LAB,
    "verify --cluster lab": LAB,
    "import overlay --cluster lab overlays": LAB,
    "schema import x.yaml --cluster lab": LAB,
    "images inspect openmpi --cluster lab": LAB,
    "images pin openmpi --cluster lab": LAB,
    "validate --team nlp": NLP,
    "render --team nlp": NLP,
    "plan --team nlp": NLP,
    "status --team nlp": NLP,
    "logs filings-01234567 --cluster lab --team nlp ": NLP,
    "run specs/nlp/filings.yaml": NLP,
    "import slurm --team nlp job.sh": NLP,
    "new job more --team nlp --image openmpi --command python": NLP,
    "images inspect openmpi": IMAGES,
    "images inspect x --image openmpi": IMAGES,
    "images pin openmpi": IMAGES,
    "images lint --image openmpi": IMAGES,
    "images check": IMAGES,
    "new job more --team nlp --image openmpi --command python ": IMAGES,
    "explain template base": BASE,
    "new job more --team nlp --template base": BASE,
}


@pytest.mark.parametrize("command", CASES)
def test_the_errors_of_a_named_file_are_reported(command: str, tmp_path: Path) -> None:
    file = CASES[command]
    root = write(stock(tmp_path / "w"), {file: BROKEN[file]})
    outcome = gangplan(*command.split(), "-C", root)
    said = outcome.out + outcome.err
    assert outcome.code == Exit.INPUT, said
    assert file in said, said
    assert SAID[file] in said
    assert not any(words in said for words in ("there is no", "has no image", "cannot be read")), said


@pytest.mark.parametrize(
    ("command", "says"),
    [
        ("validate --cluster lap", "there is no cluster 'lap'\n  help: Did you mean 'lab'?"),
        ("simulate --cluster lap", "there is no cluster 'lap'\n  help: Did you mean 'lab'?"),
        ("validate --team nlq", "there is no team 'nlq'\n  help: Did you mean 'nlp'?"),
        ("images inspect openmpj", "the catalog has no image 'openmpj'"),
        ("explain template bas", "there is no template 'bas'"),
    ],
)
def test_an_unknown_name_is_still_reported_as_unknown(command: str, says: str, tmp_path: Path) -> None:
    """Try a near miss with and without a broken file of another name."""
    for files in ({}, {"overlays/far/cluster.yaml": BROKEN[LAB]}):
        outcome = gangplan(*command.split(), "-C", write(stock(tmp_path / "w"), files))
        assert (outcome.code, says in outcome.err) == (Exit.INPUT, True), outcome.err


def test_a_broken_cluster_does_not_stop_work_on_another(tmp_path: Path) -> None:
    files = {
        **STOCK,
        "overlays/far/cluster.yaml": BROKEN[LAB],
        "specs/cv/team.yaml": BROKEN[NLP],
        "specs/cv/a.yaml": SPEC,
    }
    outcome = gangplan("validate", "--cluster", "lab", "--team", "nlp", "-C", write(tmp_path / "w", files))
    assert "checked 1 spec, 1 run" in outcome.out


def test_a_broken_cluster_in_a_budget_is_reported_only_in_its_file(tmp_path: Path) -> None:
    budget = "  nlp: {queue: training, monthlyBudget: {amount: 10, clusters: [far]}}\n"
    lab = CLUSTER.replace("  nlp: {queue: training}\n", budget) + "currency: EUR\n"
    root = stock(tmp_path / "w")
    write(root, {LAB: lab, "overlays/far/cluster.yaml": BROKEN[LAB]})
    assert "budget-cluster" not in {one.rule for one in gangplan("validate", "-C", root).findings}
    write(root, {"overlays/far/cluster.yaml": CLUSTER.replace("  nlp: {queue: training}", "  {}")})
    assert "budget-cluster" in {one.rule for one in gangplan("validate", "-C", root).findings}


@pytest.mark.parametrize(
    ("file", "text", "kind", "like"),
    [
        ("overlays/RDMA/cluster.yaml", CLUSTER, "cluster", " to rdma."),
        ("overlays/far_away/cluster.yaml", CLUSTER, "cluster", " to far-away."),
        (f"overlays/{'far' * 22}/cluster.yaml", CLUSTER, "cluster", f" to {'far' * 21}."),
        ("specs/Audio/team.yaml", TEAM, "team", " to audio."),
    ],
)
def test_a_folder_that_no_object_can_be_named_after_is_refused(
    file: str, text: str, kind: str, like: str, tmp_path: Path
) -> None:
    root = write(stock(tmp_path / "w"), {file: text})
    outcome = gangplan("validate", "-C", root)
    (one,) = [one for one in outcome.findings if one.severity == "error"]
    assert (one.place, one.rule) == (file, "spec-value")
    assert f"cannot be the name of a {kind} (" in one.message
    assert one.help.endswith(like)
