"""`gangplan validate --fix`: which files it touches, what it shows, and how it writes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from gangplan.errors import Exit
from gangplan.fixes import FixedFile, write_fixed
from gangplan.source import MAX_DOCUMENT_BYTES, load_document
from gangplan.spec.job import TrainingJob
from gangplan.spec.load import parse_spec_document
from tests import workspaces
from tests.workspaces import Outcome, gangplan

SPEC = "specs/nlp/filings.yaml"
TEAM = "specs/nlp/team.yaml"
CLUSTER = "overlays/lab/cluster.yaml"
CATALOG = "images/catalog.yaml"
BAD = workspaces.SPEC.replace("workers: 4", 'wokers: "4"  # four').replace("32Gi", "32GiB")
GOOD = workspaces.SPEC.replace("workers: 4", "workers: 4  # four")
TAGGED = workspaces.CATALOG.replace("\n    digest:", '\n    tag: "1.0"\n    digest:')


def fix(root: Path, *flags: str) -> Outcome:
    """Run a validation with --fix."""
    return gangplan("validate", "-C", root, "--engine", "serial", "--fix", *flags)


def spec(root: Path, text: str) -> Path:
    """Write this spec into the workspace."""
    return workspaces.write(root, {SPEC: text})


def fixed(text: str, old: str, new: str) -> str | None:
    """Return the replacement in the finding about a changed spec, or None."""
    assert old in text
    document, found = load_document(text.replace(old, new, 1).encode(), SPEC)
    if document is not None:
        _, found = parse_spec_document(TrainingJob, document)
    assert len(found) == 1, found
    return found[0].fix.replacement if found[0].fix else None


@pytest.mark.parametrize(
    ("old", "new", "replacement"),
    [
        ("workers: 4", "wrokers: 4", "workers"),
        ("workers: 4", "worker: 4", "workers"),
        ("workers: 4", "WORKERS: 4", "workers"),
        ("workers: 4", "replicas: 4", None),  # another tool's word: reported, not assumed
        ("workers: 4", "wrkrs: 4", None),  # two slips
        ("memory: 32Gi", "mem: 32Gi", "memory"),
        ("cpu: 8", "cores: 8", "cpu"),
        ("cpu: 8", "cpus: 8", "cpu"),  # also one slip from gpus, but other tools use this name for cpu
        ("cpu: 8", "gpu: 8", None),  # a field of its own: the value is wrong
        ("gpus: 2", "gpusx: 2", "gpus"),
        ("gpus: 2", "gpuz: 2", None),  # gpu and gpus are both one slip away
        ("image: openmpi", "image: openmpi\nimages: openmpi", None),  # image is there already
        ("memory: 32Gi", "memory: 32GiB", "32Gi"),
        ("memory: 32Gi", "memory: '32 gib'", "'32Gi'"),
        ("memory: 32Gi", "memory: 32GB", None),  # 32Gi or 32G: 7 % apart
        ("memory: 32Gi", "memory: 32", None),  # no unit: either could be meant
        ("memory: 32Gi", "memory: lots", None),
        ("cpu: 8", "cpu: 8cores", "8"),
        ("gpus: 2", "gpus: '2'", "2"),
        ("gpus: 2", "gpus: 'two'", None),
        ("gpus: 2", "gpus: '02'", None),
        ("gpus: 2", "timeout: 4 hours", "4h"),
        ("gpus: 2", "timeout: 4", None),
        ("gpus: 2", "priority: High", "high"),
        ("gpus: 2", "priority: hihg", None),  # a value is not corrected by similarity
        ("gpus: 2", "description: on", '"on"'),
        ("gpus: 2", "description: 08", '"08"'),
        ("gpus: 2", "description: 1e3", '"1e3"'),
        ("gpus: 2", "description: y  # yes", '"y"'),
        ("gpus: 2", "env: {X: ~}", None),  # null may well be meant
        ("gpus: 2", "env: {X: }", None),
        ("gpus: 2", "description: &name 08", None),  # the anchor would be lost
        ("gpus: 2", "env: {on: a}", '"on"'),
        ("gpus: 2", "env: {1e3: a}", '"1e3"'),
        ("gpus: 2", "env: {~: a}", None),
        ("gpus: 2", "extendedTimeout: 'true'", "true"),
        ("gpus: 2", "launcher: {runs_ranks: true}", "runsRanks"),
    ],
)
def test_only_unambiguous_mistakes_have_a_fix(old: str, new: str, replacement: str | None) -> None:
    assert fixed(workspaces.SPEC, old, new) == replacement


def test_fix_writes_and_shows_the_difference(root: Path) -> None:
    spec(root, BAD)
    before = gangplan("validate", "-C", root)
    assert before.code == Exit.INPUT
    assert "2 fixable with --fix" in before.out
    outcome = fix(root)
    assert outcome.code == Exit.CLEAN, outcome.err
    assert (root / SPEC).read_text() == GOOD
    for line in ('-wokers: "4"  # four', "+workers: 4  # four", "-memory: 32GiB", "+memory: 32Gi"):
        assert f"\n{line}\n" in outcome.out
    assert "fixed 3 places in 1 file" in outcome.out
    assert [shown.rule for shown in outcome.findings] == []
    assert "fixed 0 places\n" in fix(root).out


def test_git_apply_accepts_the_difference(root: Path) -> None:
    """git apply makes the same files as --fix, whatever their line ends."""
    spec(root, BAD.replace("\n", "\r\n").rstrip())
    outcome = fix(root, "--dry-run")
    patch = outcome.out.partition("would fix")[0]
    subprocess.run(["git", "apply", "-"], input=patch.encode(), cwd=root, check=True, capture_output=True)
    assert (root / SPEC).read_bytes() == GOOD.replace("\n", "\r\n").rstrip().encode()


@pytest.mark.parametrize(
    "text",
    [
        BAD.replace("  # four", "\t# four"),
        "\ufeff" + BAD,
        "\ufeff" + BAD.replace("workers", "wrokers").partition("\n")[2] + "apiVersion: gangplan.dev/v1\n",
    ],
)
def test_tabs_and_a_byte_order_mark_are_part_of_the_patch(root: Path, text: str) -> None:
    outcome = fix(spec(root, text), "--dry-run")
    patch = outcome.out.partition("would fix")[0]
    subprocess.run(["git", "apply", "-"], input=patch.encode(), cwd=root, check=True, capture_output=True)
    patched = (root / SPEC).read_bytes()
    fix(spec(root, text))
    assert (root / SPEC).read_bytes() == patched != text.encode()


def test_a_difference_with_escapes_says_that_it_is_not_a_patch(root: Path) -> None:
    """What a terminal or a CI runner would obey, or readers would not see, is shown as escapes."""
    hidden = BAD.replace("# four", "# four\u202e")
    outcome = fix(spec(root, hidden), "--dry-run")
    assert "# four\\u202e\n" in outcome.out
    assert (
        f"{SPEC}: the difference escapes a secret or invisible characters: git apply cannot apply it"
        in outcome.err
    )
    assert "git apply" not in fix(spec(root, BAD), "--dry-run").err
    command = BAD.replace("memory:", "description: >-\n  ::error::pwned\nmemory:")
    outcome = fix(spec(root, command), "--dry-run")
    assert not any(line.lstrip().startswith("::") for line in outcome.out.splitlines())
    assert "git apply cannot apply it" in outcome.err


@pytest.mark.parametrize("flag", ["--dry-run", "--diff"])
def test_a_dry_run_writes_nothing(root: Path, flag: str) -> None:
    before = workspaces.tree(spec(root, BAD))
    outcome = fix(root, flag)
    assert workspaces.tree(root) == before
    assert "+workers: 4  # four" in outcome.out
    assert "would fix 3 places in 1 file" in outcome.out
    assert outcome.code == Exit.INPUT, "the workspace is as it was"


def test_a_dry_run_without_fix_is_refused(root: Path) -> None:
    outcome = gangplan("validate", "-C", root, "--dry-run")
    assert outcome.code == Exit.INPUT
    assert "--fix --dry-run" in outcome.err


def test_the_exit_code_is_that_of_the_fixed_workspace(root: Path) -> None:
    spec(root, BAD + "timeout: 30d\n")
    outcome = fix(root)
    assert outcome.code == Exit.INPUT
    assert [rule for _, rule in outcome.errors()] == ["timeout-over-limit"]
    assert "workers: 4  # four" in (root / SPEC).read_text()


def test_json_stays_json(root: Path) -> None:
    spec(root, BAD)
    shown = json.loads(gangplan("validate", "-C", root, "--format", "json").out)
    fixes = [one["fix"] for one in shown["findings"] if one["fix"]]
    assert {one["replacement"] for one in fixes} == {"workers", "32Gi"}
    assert all((one["file"], one["endLine"]) == (SPEC, one["line"]) for one in fixes)
    outcome = fix(root, "--format", "json")
    assert json.loads(outcome.out)["findings"] == []
    assert "+workers: 4  # four" in outcome.err


# Which files


def test_only_the_named_specs_are_fixed(root: Path) -> None:
    other = "specs/nlp/other.yaml"
    workspaces.write(root, {SPEC: BAD, other: BAD, TEAM: workspaces.TEAM.replace("secrets:", "secret:")})
    before = workspaces.tree(root)
    fix(root, other)
    after = workspaces.tree(root)
    assert [file for file in before if before[file] != after[file]] == [other]
    fix(root)
    assert (root / SPEC).read_text() == GOOD
    assert (root / TEAM).read_text() == workspaces.TEAM


def test_files_of_the_platform_need_their_own_flag(root: Path) -> None:
    cluster = workspaces.CLUSTER.replace("memory: 240Gi", "memory: 240GiB").replace("region:", "regoin:")
    catalog = workspaces.CATALOG.replace("framework: horovod", "frameworks: horovod")
    workspaces.write(root, {CLUSTER: cluster, CATALOG: catalog})
    outcome = fix(root)
    assert (root / CLUSTER).read_text() == cluster
    assert outcome.code == Exit.INPUT
    outcome = gangplan("validate", "-C", root, "--fix-platform")
    assert outcome.code == Exit.CLEAN, outcome.err
    assert (root / CLUSTER).read_text() == workspaces.CLUSTER
    assert (root / CATALOG).read_text() == workspaces.CATALOG


@pytest.mark.parametrize("written", ["registry.example.com/training/openmpi:1.0", "openmpi:1.0"])
def test_an_image_by_its_tag_becomes_its_name(root: Path, written: str) -> None:
    workspaces.write(root, {CATALOG: TAGGED})
    spec(root, workspaces.SPEC.replace("image: openmpi", f"image: {written}"))
    assert "1 fixable with --fix" in gangplan("validate", "-C", root).out
    assert fix(root).code == Exit.CLEAN
    assert (root / SPEC).read_text() == workspaces.SPEC


def test_only_what_a_flag_fixes_counts_as_fixable(root: Path) -> None:
    """A fix in policies/ is for editors: no flag applies it."""
    own = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {y: '1'}\n"
    workspaces.write(root, {"policies/x.yaml": own})
    assert gangplan("validate", "-C", root).out.endswith(": 1 error\n")
    workspaces.write(root, {CLUSTER: workspaces.CLUSTER.replace("region: eu-central", "region: on")})
    assert ", 1 fixable with --fix-platform\n" in gangplan("validate", "-C", root).out


@pytest.mark.parametrize(
    "written", ["registry.example.com/training/openmpi", "registry.example.com/training/openmpi:2.0"]
)
def test_an_image_with_an_unknown_tag_is_not_replaced(root: Path, written: str) -> None:
    workspaces.write(root, {CATALOG: TAGGED})
    spec(root, workspaces.SPEC.replace("image: openmpi", f"image: {written}"))
    assert "fixed 0 places" in fix(root).out


def test_tags_in_patches_become_digests(root: Path) -> None:
    """The catalog's tag is replaced by its digest; comments and other images stay."""
    patch = """\
apiVersion: kustomize.config.k8s.io/v1alpha1
kind: Component
# registry.example.com/training/openmpi:1.0
patches:
- target: {kind: TrainingRuntime}
  patch: |-
    - op: replace
      path: /spec/template/spec/replicatedJobs/0/template/spec/template/spec/containers/0/image
      value: IMAGE
"""
    digest = "sha256:1b0f7c64e0a3fe2d1c2d9a4b8a37f1f3f5d3a2b1c0998877665544332211ffee"
    mirrors = "mirrors: [{source: registry.example.com, mirror: mirror.example.com/all}]\n"
    file = "overlays/lab/kustomization.yaml"
    workspaces.write(root, {CATALOG: TAGGED, CLUSTER: workspaces.CLUSTER + mirrors})
    for image, expected in (
        ("registry.example.com/training/openmpi:1.0", f"registry.example.com/training/openmpi@{digest}"),
        ("mirror.example.com/all/training/openmpi:1.0", f"mirror.example.com/all/training/openmpi@{digest}"),
        ("registry.example.com/training/openmpi:1.0-rc", "registry.example.com/training/openmpi:1.0-rc"),
        ("eu.registry.example.com/training/openmpi:1.0", "eu.registry.example.com/training/openmpi:1.0"),
    ):
        workspaces.write(root, {file: patch.replace("IMAGE", image)})
        fix(root)
        assert (root / file).read_text() == patch.replace("IMAGE", image), "a file of the platform"
        fix(root, "--fix-platform")
        assert (root / file).read_text() == patch.replace("IMAGE", expected)


def test_a_patch_that_would_become_too_large_stays(root: Path) -> None:
    """Here the size limit of a file leaves room for one digest, but not for two."""
    container = "/spec/template/spec/replicatedJobs/0/template/spec/template/spec/containers/0"
    image = "registry.example.com/training/openmpi:1.0"
    patch = "".join(f"- {{op: add, path: {container}/{name}, value: '{image}'}}\n" for name in ("image", "x"))
    component = (
        "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\npatches:\n"
        "- {target: {kind: TrainingRuntime}, path: patch.yaml}\n"
    )
    workspaces.write(root, {CATALOG: TAGGED, "overlays/lab/kustomization.yaml": component})
    for spare, fixed in ((50, 0), (100, 1), (150, 2)):
        padded = patch + "#" * (MAX_DOCUMENT_BYTES - spare - len(patch))
        workspaces.write(root, {"overlays/lab/patch.yaml": padded})
        outcome = gangplan("validate", "-C", root, "--fix-platform", "--dry-run")
        assert outcome.out.count("+- {op: add") == fixed
        assert outcome.err.count("not fixed: it overlaps with another fix, or makes it worse") == 2 - fixed


def test_links_are_not_followed(root: Path, tmp_path: Path) -> None:
    outside = tmp_path / "team.yaml"
    outside.write_text(workspaces.TEAM.replace("secrets:", "secret:"))
    (root / TEAM).unlink()
    (root / TEAM).symlink_to(outside)
    before = outside.read_bytes()
    fix(root)
    assert outside.read_bytes() == before
    assert (root / TEAM).is_symlink()


def test_a_secret_is_not_shown(root: Path) -> None:
    secret = "hf_" + "QyZkLmNoPqRsTuVwXyZaBcDeFgHiJkLmNo"
    spec(root, BAD.replace("32GiB", f"32GiB\nenv: {{HF_TOKEN: {secret}}}"))
    outcome = fix(root)
    assert "+memory: 32Gi" in outcome.out
    assert secret not in outcome.out + outcome.err


# How it writes


def fixed_file(file: str = SPEC, before: str = workspaces.SPEC) -> FixedFile:
    """Return a file to be written."""
    return FixedFile(file, before.encode(), b"kind: new\n")


def test_a_write_keeps_the_mode_and_leaves_no_other_files(root: Path) -> None:
    (root / SPEC).chmod(0o640)
    names = sorted(os.listdir((root / SPEC).parent))
    assert write_fixed(root, fixed_file()) == ""
    assert (root / SPEC).read_bytes() == b"kind: new\n"
    assert (root / SPEC).stat().st_mode & 0o777 == 0o640
    assert sorted(os.listdir((root / SPEC).parent)) == names


def test_a_killed_fix_leaves_nothing_that_git_would_add(root: Path) -> None:
    """New bytes wait in .gangplan/, which ignores itself; the next command removes what a killed one left."""
    subprocess.run(["git", "init", "-q"], cwd=root, check=True)
    kill = "import os; os.replace = lambda *_: os.kill(os.getpid(), 9)"
    command = f"{kill}; from gangplan.entry import main; main()"
    spec(root, BAD)
    done = subprocess.run(
        [sys.executable, "-c", command, "validate", "--fix", "--engine", "serial"],
        cwd=root,
        capture_output=True,
        check=False,
    )
    assert done.returncode == -9
    assert (root / SPEC).read_text() == BAD
    assert [path.name[:4] for path in (root / ".gangplan").glob("fix.*")] == ["fix."]
    told = subprocess.run(
        ["git", "status", "--porcelain", "-uall"], cwd=root, check=True, capture_output=True, text=True
    )
    assert sorted(line[3:] for line in told.stdout.splitlines()) == sorted(workspaces.STOCK)
    fix(root)
    assert (root / SPEC).read_text() == GOOD
    assert list((root / ".gangplan").glob("fix.*")) == []


def test_a_state_folder_that_is_a_link_is_not_used(root: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (root / ".gangplan").symlink_to(outside)
    assert write_fixed(root, fixed_file()) == ""
    assert list(outside.iterdir()) == []


def test_a_file_that_changed_meanwhile_is_not_overwritten(root: Path) -> None:
    assert write_fixed(root, fixed_file(before="kind: old\n")) == "the file was changed meanwhile"
    assert (root / SPEC).read_text() == workspaces.SPEC


def test_a_write_that_fails_leaves_the_old_file(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = sorted(os.listdir((root / SPEC).parent))

    def refuse(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", refuse)
    assert write_fixed(root, fixed_file()) == "the file cannot be written: No space left on device"
    assert (root / SPEC).read_text() == workspaces.SPEC
    assert sorted(os.listdir((root / SPEC).parent)) == names


@pytest.mark.parametrize(
    ("file", "reason"),
    [
        ("../outside.yaml", "outside"),
        ("specs//nlp/filings.yaml", "outside"),
        ("specs/nlp/none.yaml", "cannot be read"),
        ("specs/nlp", "not a file"),
        ("linked/filings.yaml", "linked/ is a link"),
        ("specs/nlp/link.yaml", "it is a link"),
    ],
)
def test_links_and_files_outside_are_not_written(root: Path, file: str, reason: str) -> None:
    (root / "linked").symlink_to("specs/nlp")
    (root / "specs/nlp/link.yaml").symlink_to("filings.yaml")
    (root.parent / "outside.yaml").write_text(workspaces.SPEC)
    assert reason in write_fixed(root, fixed_file(file))
    assert (root / SPEC).read_text() == workspaces.SPEC
    assert (root.parent / "outside.yaml").read_text() == workspaces.SPEC


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everything")
def test_a_read_only_file_is_not_changed(root: Path) -> None:
    spec(root, BAD)
    (root / SPEC).chmod(0o444)
    outcome = fix(root)
    assert "not fixed: it may not be changed" in outcome.err
    assert (root / SPEC).read_text() == BAD
