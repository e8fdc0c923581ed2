"""The attack corpus: what a member of a team can commit to break out; `validate` refuses each attack.

docs/security.md says what each check stops. Links are in test_links.py, forged runs in test_kept.py, files
in rendered/ in test_foreign.py, labels and grants in tests of their own, patches in hostile.yaml. What would
reach the API server anyway is in tests/e2e/test_attacks.py.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from gangplan.errors import Exit
from gangplan.generators.scripts import scripts_digest
from tests import plain, workspaces
from tests.workspaces import CLUSTER, SPEC, TEAM, gangplan, render, write

ATTACKS: dict[str, dict[str, Any]] = plain.load(
    Path(__file__).with_name("attacks.yaml").read_text(encoding="utf-8")
)
SPEC_FILE, TEAM_FILE = "specs/nlp/filings.yaml", "specs/nlp/team.yaml"
VISION = """\
apiVersion: gangplan.dev/v1
kind: Team
clusters: [lab]
claims: {scans: {accessModes: [ReadWriteMany]}}
connections: {films: {endpoint: "https://s3.example.com", bucket: films, secret: vision-keys}}
secrets: [vision-keys]
"""
GIVEN = (
    "  nlp: {queue: training, posture: restricted, priorities: [low, normal]}\n  vision: {queue: training}\n"
)
MARK = "# Rendered by gangplan from specs/nlp/filings.yaml\n"
TEXTS: dict[str, bytes] = {
    "SPEC": SPEC.encode(),
    "TEAM_MARK": b"# Rendered by gangplan from specs/nlp/team.yaml\n",
    "TEAM": b"apiVersion: gangplan.dev/v1\nkind: Team\nclusters: [lab]\n",
    "LARGE": SPEC.encode() + b"# x\n" * (1 << 18),
    "DEEP": b"[" * 100_000,
    "BYTES": SPEC.encode() + b"description: \xff\xfe\n",
    "RUN": f"{MARK}apiVersion: trainer.kubeflow.org/v1alpha1\nkind: TrainJob\n"
    "metadata: {name: filings-01234567, namespace: nlp}\n".encode(),
}


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Render two teams on one cluster, without findings."""
    root = workspaces.stock(tmp_path_factory.mktemp("attacked"))
    cluster = CLUSTER.replace("  nlp: {queue: training}\n", GIVEN)
    write(root, {"specs/vision/team.yaml": VISION, "overlays/lab/cluster.yaml": cluster})
    render(root)
    outcome = gangplan("validate", "-C", root)
    assert (outcome.code, outcome.errors()) == (Exit.CLEAN, [])
    return root


def text_of(text: str) -> bytes:
    """Return a text with a leading placeholder written out."""
    for name, value in TEXTS.items():
        if text.startswith(name):
            return value + text.removeprefix(name).encode()
    return text.encode()


def commit(root: Path, attack: dict[str, Any]) -> None:
    """Do what the attacker does."""
    write(root, {name: text_of(text) for name, text in attack.get("write", {}).items()})
    if "change" in attack:
        name, old, new = attack["change"]
        name = name.replace("SCRIPTS", scripts_digest()[:8])
        text = (root / name).read_text()
        assert old in text
        (root / name).write_text(text.replace(old, new, 1))
    for file, key in ((SPEC_FILE, "add"), (TEAM_FILE, "team")):
        if attack.get(key):
            (root / file).write_text((root / file).read_text() + attack[key] + "\n")


@pytest.mark.parametrize("name", ATTACKS)
def test_each_attack_is_refused(name: str, sound: Path, tmp_path: Path) -> None:
    attack = ATTACKS[name]
    root = tmp_path / "workspace"
    shutil.copytree(sound, root)
    before = workspaces.rendered(root)
    commit(root, attack)
    changed = workspaces.rendered(root)
    outcome = gangplan("validate", "-C", root)
    assert outcome.code in (Exit.FINDINGS, Exit.INPUT), outcome.out
    assert attack["finds"] in {rule for _, rule in outcome.errors()}, outcome.err
    assert "Traceback" not in outcome.err
    # A render does not let it through either: nothing is written.
    if changed == before:
        assert gangplan("render", "-C", root).code in (Exit.FINDINGS, Exit.INPUT)
        assert workspaces.rendered(root) == before


def test_the_corpus_covers_many_attacks_and_rules() -> None:
    assert len(ATTACKS) >= 90
    assert len({attack["finds"] for attack in ATTACKS.values()}) >= 30


def test_the_workspace_declares_what_the_attacks_use(sound: Path) -> None:
    """The attacks depend on what TEAM declares."""
    assert TEAM in (sound / TEAM_FILE).read_text()
