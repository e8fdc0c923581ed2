"""Launch scripts of an earlier gangplan: they stay in rendered/ as long as a run there mounts them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path

import pytest

from gangplan.emit.tree import StagingFolder
from gangplan.errors import Exit
from gangplan.generators import scripts
from tests import workspaces
from tests.workspaces import gangplan, render, write

SPEC = "specs/nlp/filings.yaml"
TEXTS = dict(scripts.read_launch_scripts())


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Render a run, then update gangplan to other launch scripts; the run is kept."""
    caches = (scripts.scripts_digest, scripts.start_text)
    write(tmp_path, {**workspaces.STOCK, SPEC: workspaces.SPEC + "keep: true\n"})
    render(tmp_path, "--no-cache")
    today = {**TEXTS, "common.sh": TEXTS["common.sh"] + "# one line more\n"}
    monkeypatch.setattr(scripts, "read_launch_scripts", lambda: today)
    for one in caches:
        one.cache_clear()
    yield tmp_path
    monkeypatch.undo()
    for one in caches:
        one.cache_clear()


def launch_files(root: Path) -> list[Path]:
    return sorted((root / "rendered/lab/runs/nlp").glob("launch.*.yaml"))


def found(root: Path) -> list[tuple[str, str]]:
    """Return rule and message of each error of `validate`."""
    outcome = gangplan("validate", "-C", root, "--no-cache")
    return [(one.rule, one.message) for one in outcome.findings if one.severity == "error"]


def test_a_kept_run_keeps_its_launch_scripts(kept: Path) -> None:
    before = [path.read_bytes() for path in launch_files(kept)]
    assert found(kept) == []
    assert render(kept, "--no-cache").code == Exit.CLEAN
    assert [path.read_bytes() for path in launch_files(kept)] == before


def test_a_new_run_mounts_new_scripts_next_to_those_of_the_kept_one(kept: Path) -> None:
    (old,) = launch_files(kept)
    write(kept, {"specs/nlp/second.yaml": workspaces.SPEC})
    assert render(kept, "--no-cache").code == Exit.CLEAN
    assert len(launch_files(kept)) == 2
    write(kept, {SPEC: workspaces.SPEC + "run: 2\n"})
    assert render(kept, "--no-cache").code == Exit.CLEAN
    assert old not in launch_files(kept)
    assert len(launch_files(kept)) == 1


def test_lost_launch_scripts_are_reported(kept: Path) -> None:
    (file,) = launch_files(kept)
    name = f"gangplan-launch-{file.name[7:15]}"
    file.unlink()
    says = f"a kept run mounts {name}, but rendered/ does not have it"
    assert found(kept) == [("launch-scripts-lost", says)]
    outcome = gangplan("render", "-C", kept, "--no-cache")
    assert (outcome.code, launch_files(kept)) == (Exit.FINDINGS, [])


# What somebody made of the file of a kept run.
CHANGED: dict[str, Callable[[str], str]] = {
    "another text": lambda text: text.replace("gp_grace=120", "gp_grace=9"),
    "another kind": lambda text: text.replace("kind: ConfigMap", "kind: Secret"),
    "another name": lambda text: text.replace("common.sh: ", "common: "),
    "texts moved between files": lambda text: text.replace("  launcher.sh: |\n", "").replace(
        "  program.sh: |\n", "  launcher.sh: ''\n  program.sh: |\n"
    ),
    "an empty file more": lambda text: text.replace("data:\n", "data:\n  also.sh: ''\n"),
    "no metadata": lambda text: text.partition("metadata:")[0] + "metadata: null\n",
    "no data": lambda text: text.partition("data:")[0] + "data: [1]\n",
    "odd keys": lambda text: text.partition("data:")[0] + "data: {1: 2, a.sh: null}\n",
    "two objects": lambda text: text + "---\n" + text,
    "no YAML": lambda text: "<<<<<<< HEAD\n" + text,
    "nothing": lambda text: "",
}


@pytest.mark.parametrize("change", CHANGED.values(), ids=CHANGED)
def test_changed_launch_scripts_are_reported(change: Callable[[str], str], kept: Path) -> None:
    (file,) = launch_files(kept)
    text = file.read_text()
    assert change(text) != text
    file.write_text(change(text))
    assert "launch-scripts-lost" in {rule for rule, _ in found(kept)}


@pytest.mark.parametrize(
    ("changed", "is_accepted"),
    [({}, True), ({"launcher.sh": "", "common.sh": "BOTH"}, False), ({"also.sh": ""}, False)],
    ids=["whole", "moved", "one more"],
)
def test_launch_scripts_under_a_digest_of_their_texts_alone_are_known(
    changed: dict[str, str], is_accepted: bool
) -> None:
    """So a run that is kept from before names counted may mount them."""
    texts = {name: text.replace("gp_grace=120", "gp_grace=60") for name, text in TEXTS.items()}
    digits = sha256("".join(texts.values()).encode()).hexdigest()[:8]
    texts |= {
        name: text.replace("BOTH", texts["common.sh"] + texts["launcher.sh"])
        for name, text in changed.items()
    }
    assert sha256("".join(texts[name] for name in sorted(texts)).encode()).hexdigest()[:8] == digits
    metadata = {"name": f"gangplan-launch-{digits}", "namespace": "nlp"}
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "immutable": True, "data": texts}
    assert scripts.is_launch_script_config_map([body], "nlp", digits) is is_accepted


def test_changed_launch_scripts_of_today_are_written_again(tmp_path: Path) -> None:
    """There is no need to bring them back: gangplan knows them."""
    write(tmp_path, workspaces.STOCK | {SPEC: workspaces.SPEC})
    render(tmp_path)
    (file,) = launch_files(tmp_path)
    before = file.read_bytes()
    file.unlink()
    assert gangplan("render", "-C", tmp_path, "--check").code == Exit.FINDINGS
    render(tmp_path)
    assert file.read_bytes() == before


@pytest.mark.parametrize("jobs", [1, 9])
def test_launch_scripts_are_written_once_however_many_runs_mount_them(
    jobs: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put: list[str] = []
    real = StagingFolder.put
    monkeypatch.setattr(
        StagingFolder, "put", lambda self, path, text: put.append(path) or real(self, path, text)
    )
    write(
        tmp_path,
        {**workspaces.STOCK, **{f"specs/nlp/job-{one}.yaml": workspaces.SPEC for one in range(jobs)}},
    )
    assert render(tmp_path, "--no-cache", "--engine", "serial").code == Exit.CLEAN
    assert len([path for path in put if "/launch." in path]) == 1
