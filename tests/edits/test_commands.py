"""`gangplan edit` and `gangplan clone`: what is written, what is refused, and with which exit code."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from gangplan.commands import complete
from gangplan.edits import edit_field
from gangplan.errors import Exit
from gangplan.spec.job import TrainingJob
from gangplan.starter import users
from tests.sweeps.files import SWEEP
from tests.templates.files import SPEC as BY_TEMPLATE
from tests.templates.files import TEMPLATE, WIDE
from tests.workspaces import CLUSTER, SPEC, gangplan, stock, write

FILE = "specs/nlp/filings.yaml"
COMMENTED = (
    f'# Filings of the year.\n{SPEC}env: {{SEED: "1", MODE: fast}}  # for everybody\nrun: 3\n# the end\n'
)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return write(stock(tmp_path), {FILE: COMMENTED, WIDE: TEMPLATE, "specs/nlp/tuned.yaml": BY_TEMPLATE})


def edit(root: Path, *flags: str, file: str = FILE) -> tuple[int, str, str]:
    """Run `gangplan edit` and return the exit code, the messages and the file."""
    outcome = gangplan("edit", file, *flags, "-C", root)
    return outcome.code, outcome.out + outcome.err, (root / file).read_text()


def test_several_fields_change_and_every_other_byte_stays(root: Path) -> None:
    flags = (
        "--set",
        "workers=8",
        "--set",
        "env.SEED=2",
        "--set",
        "env.RATE=1e-4",
        "--set",
        "run-",
        "-s",
        "clusters=lab",
    )
    code, told, text = edit(root, *flags)
    assert code == Exit.CLEAN, told
    assert text == (
        COMMENTED.replace("workers: 4", "workers: 8")
        .replace('SEED: "1", MODE: fast', 'SEED: "2", MODE: fast, RATE: 1e-4')
        .replace("run: 3\n", "")
        .replace("image:", "clusters: [lab]\nimage:")
    )
    assert told.startswith(f"changed {FILE}\n  on lab: 16 ranks on 8 workers")
    assert "next: gangplan render, then commit" in told


@pytest.mark.parametrize(
    ("flags", "code", "words"),
    [
        (
            ("--set", "worker=8"),
            Exit.INPUT,
            "--set worker=8: unknown field 'worker'; did you mean 'workers'?\n  help: Write --set workers=8",
        ),
        (("--set", "checkpoint.at=x"), Exit.INPUT, "unknown field 'at' in checkpoint"),
        (("--set", "workers=many"), Exit.INPUT, "workers is 'many'; expected a whole number"),
        (("--set", "image=opemmpi"), Exit.INPUT, "Did you mean 'openmpi'?"),
        (("--set", "workers=40"), Exit.FINDINGS, "nothing was written"),
        (("--unset", "command"), Exit.INPUT, "'command' is missing"),
        (("--unset", "workes"), Exit.INPUT, "there is no workes to remove"),
        (("--set", "workers"), Exit.INPUT, "--set workers has no value"),
        ((), Exit.INPUT, "nothing to change"),
        (("--set", "env.A=1", "--unset", "env"), Exit.INPUT, "change the same field"),
    ],
)
def test_each_mistake_is_reported_and_nothing_is_written(
    root: Path, flags: tuple[str, ...], code: Exit, words: str
) -> None:
    found, told, text = edit(root, *flags)
    assert (found, text) == (code, COMMENTED), told
    assert words in told


@pytest.mark.parametrize(
    ("flag", "line"),
    [
        ("env.SEED=yes", 'env: {SEED: "yes", MODE: fast}'),
        ("env.MODE=7", 'env: {SEED: "1", MODE: 7}'),
        ("description=8", 'description: "8"'),
        ("description=Note: all", 'description: "Note: all"'),
        ("command=python other.py", 'command: "python other.py"'),
        ("command=[python, other.py]", "command: [python, other.py]"),
        (r"labels.example\.com/team=nlp", "labels: {example.com/team: nlp}"),
        ("data={filings: /data}", "data: {filings: /data}"),
        ("checkpoint.to=filings", "checkpoint: {to: filings}"),
    ],
)
def test_a_value_is_written_with_the_type_of_its_field(root: Path, flag: str, line: str) -> None:
    _, told, text = edit(root, "--set", flag)
    assert line in text, told


def test_parameters_have_the_types_of_the_template(root: Path) -> None:
    flags = ("--set", "parameters.size=8", "--set", "parameters.script=8", "--set", "parameters.rate=0.10")
    code, told, text = edit(root, *flags, file="specs/nlp/tuned.yaml")
    assert code == Exit.CLEAN, told
    assert '  size: 8\n  rate: 0.10\n  script: "8"\n' in text
    code, told, _ = edit(root, "--set", "parameters.sise=8", file="specs/nlp/tuned.yaml")
    assert (code, "Did you mean 'size'?" in told) == (Exit.INPUT, True)


def test_earlier_errors_do_not_stop_a_correction(root: Path) -> None:
    write(root, {FILE: COMMENTED.replace("cpu: 8", "cpu: lots").replace("workers: 4", "workers: 900")})
    code, told, text = edit(root, "--set", "workers=2")
    assert "workers: 2" in text, told
    assert code == Exit.INPUT  # cpu is still wrong
    assert "next: correct the error above, which was there before\n" in told
    assert "gangplan render, then" not in told
    assert edit(root, "--set", "cpu=8")[0] == Exit.CLEAN


def test_a_dry_run_shows_the_difference(root: Path) -> None:
    code, told, text = edit(root, "--set", "workers=8", "--dry-run")
    assert (code, text) == (Exit.CLEAN, COMMENTED)
    assert "-workers: 4\n+workers: 8\n" in told


def test_the_same_value_changes_nothing(root: Path) -> None:
    code, told, text = edit(root, "--set", "workers=4")
    assert (code, told, text) == (Exit.CLEAN, f"{FILE} says so already\n", COMMENTED)


@pytest.mark.parametrize(
    ("file", "flag", "line"),
    [
        ("specs/nlp/team.yaml", "contact=nlp@example.com", "contact: nlp@example.com"),
        ("overlays/lab/cluster.yaml", "nodePools.cpu.count=5", "  cpu: {count: 5, cpu: 60, memory: 240Gi}"),
        (
            "images/catalog.yaml",
            "images.openmpi.mpi.version=5.0.9",
            'mpi: {implementation: OpenMPI, version: "5.0.9"}',
        ),
        (WIDE, "parameters.size.max=64", "max: 64"),
    ],
)
def test_other_files_are_edited_too(root: Path, file: str, flag: str, line: str) -> None:
    code, told, text = edit(root, "--set", flag, file=file)
    assert code == Exit.CLEAN, told
    assert line in text


def test_unknown_missing_and_linked_files_are_refused(root: Path) -> None:
    write(root, {"notes.yaml": "a: 1\n"})
    assert "not a file that gangplan reads" in edit(root, "--set", "a=2", file="notes.yaml")[1]
    write(root, {"README.md": "# Jobs\n\n- `a`: b\n"})
    told = edit(root, "--set", "a=2", file="README.md")[1]
    assert told.startswith("fatal: README.md is not a file that gangplan reads\n")
    outcome = gangplan("edit", "specs/nlp/none.yaml", "--set", "a=2", "-C", root)
    assert (outcome.code, "there is no file" in outcome.err) == (Exit.INPUT, True)
    near = gangplan("edit", FILE.replace(".yaml", "s.yaml"), "--set", "a=2", "-C", root)
    assert f"Did you mean '{FILE}'?" in near.err
    link = root / "specs/nlp/link.yaml"
    link.symlink_to(root / FILE)
    outcome = gangplan("edit", "specs/nlp/link.yaml", "--set", "workers=2", "-C", root)
    assert (outcome.code, "not a plain file" in outcome.err) == (Exit.INPUT, True)


# clone


def test_a_clone_keeps_the_comments_and_drops_the_history(root: Path) -> None:
    outcome = gangplan("clone", FILE, "reports", "--set", "workers=2", "--set", "env.SEED=9", "-C", root)
    assert (outcome.code, outcome.err) == (Exit.CLEAN, "")
    text = (root / "specs/nlp/reports.yaml").read_text()
    assert text == COMMENTED.replace("workers: 4", "workers: 2").replace('"1"', '"9"').replace("run: 3\n", "")
    assert outcome.out.startswith("wrote specs/nlp/reports.yaml\n  on lab: 4 ranks on 2 workers")
    assert (root / FILE).read_text() == COMMENTED


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("filings", "specs/nlp/filings.yaml exists"),
        ("known", "specs/nlp/other.yaml has a job 'known' already"),
        ("Bad Name", "Write bad-name."),
        ("fine", "unknown field 'worker'"),
    ],
)
def test_an_invalid_clone_is_refused(root: Path, name: str, words: str) -> None:
    write(root, {"specs/nlp/other.yaml": f"{SPEC}name: known\n"})
    outcome = gangplan("clone", FILE, name, "--set", "worker=2", "-C", root)
    assert (outcome.code, words in outcome.err) == (Exit.INPUT, True), outcome.err
    assert not (root / "specs/nlp/fine.yaml").exists()


def test_a_clone_of_a_named_spec_gets_the_new_name(root: Path) -> None:
    write(
        root,
        {
            "specs/nlp/other.yaml": f"name: known  # ours\n{SPEC}files: {{./a.py: /a.py}}\n",
            "specs/nlp/a.py": "1\n",
        },
    )
    outcome = gangplan("clone", "specs/nlp/other.yaml", "next", "-C", root, "-n")
    assert outcome.code == Exit.CLEAN, outcome.err
    assert outcome.out.startswith("name: next  # ours\n")


def test_sweeps_and_templates_are_cloned_without_their_history(root: Path) -> None:
    write(root, {"specs/nlp/rates.yaml": f"{SWEEP}state: stopped\nstopped: []\n"})
    outcome = gangplan(
        "clone", "specs/nlp/rates.yaml", "more", "--set", "parameters.grid.lr=[1e-4, 5e-4]", "-C", root
    )
    assert outcome.code == Exit.CLEAN, outcome.err
    assert (root / "specs/nlp/more.yaml").read_text() == SWEEP.replace("3e-4, 1e-3]", "5e-4]").replace(
        "lr: [1e-4, 5e-4", "lr: [1e-4, 5e-4"
    )
    assert "4 trials" in outcome.out
    outcome = gangplan("clone", WIDE, "broad", "--set", "job.gpus=4", "-C", root)
    assert outcome.code == Exit.CLEAN, outcome.err
    assert (root / "jobtemplates/broad.yaml").read_text() == TEMPLATE.replace("gpus: 2", "gpus: 4")


def test_tab_completes_fields_of_the_file(root: Path) -> None:
    given = SimpleNamespace(params={"workspace": str(root), "file": str(root / FILE)})
    assert "checkpoint.to" in complete.complete_settings_on_tab(given, "checkpoint.")
    given.params["file"] = str(root / "overlays/lab/cluster.yaml")
    assert complete.complete_settings_on_tab(given, "versions.k") == ["versions.kubernetes", "versions.kueue"]


def test_a_new_field_is_placed_in_the_order_of_the_format(root: Path) -> None:
    write(root, {FILE: "# Filings.\n" + SPEC + "# What it is called\nlabels: {example.com/a: b}\n"})
    code, told, text = edit(root, "--set", "timeout=2h", "--set", "clusters=lab", "--set", "env.SEED=7")
    assert code == Exit.CLEAN, told
    lines = [line.partition(":")[0] for line in text.splitlines()]
    known = [field.alias or name for name, field in TrainingJob.model_fields.items()]
    fields = [line for line in lines if line in known]
    assert fields == sorted(fields, key=known.index)
    assert lines[lines.index("labels") - 1] == "# What it is called"
    assert {"timeout", "clusters", "env"} <= set(fields)


def test_a_list_needs_no_brackets(root: Path) -> None:
    """This holds for files that are not specs, too; a text with commas stays a text."""
    write(root, {"overlays/east/cluster.yaml": CLUSTER})
    assert edit(root, "--set", "clusters=lab,east")[0] == Exit.CLEAN
    assert "clusters: [lab, east]\n" in (root / FILE).read_text()
    code, told, text = edit(root, "--set", "clusters=lab, east", file="specs/nlp/team.yaml")
    assert code == Exit.CLEAN, told
    assert "clusters: [lab, east]\n" in text
    assert edit(root, "--set", "description=first, second")[0] == Exit.CLEAN
    assert 'description: "first, second"\n' in (root / FILE).read_text()


def test_a_new_field_of_a_block_is_placed_in_the_order_of_the_format(root: Path) -> None:
    write(root, {FILE: SPEC + "placement:\n  nodePool: a100  # ours\n  spread: pack\n"})
    code, told, text = edit(root, "--set", "placement.capacity=on-demand")
    assert code == Exit.CLEAN, told
    assert text.endswith("  nodePool: a100  # ours\n  capacity: on-demand\n  spread: pack\n")


def test_a_new_field_follows_the_nearest_earlier_field_or_comes_last(root: Path) -> None:
    assert edit_field("b: 1\nc: 2\n", "x.yaml", ("a",), "3", ("a", "b", "c")) == "b: 1\nc: 2\na: 3\n"
    assert edit_field("c: 1\na: 2\n", "x.yaml", ("b",), "3", ("a", "b", "c")) == "c: 1\na: 2\nb: 3\n"
    assert (
        edit_field("a:\n  x: 1\nc: 2\n", "x.yaml", ("b",), "3", ("a", "b", "c")) == "a:\n  x: 1\nb: 3\nc: 2\n"
    )
    assert edit_field("{a: 1, c: 2}\n", "x.yaml", ("b",), "3", ("a", "b", "c")) == "{a: 1, b: 3, c: 2}\n"


def test_a_template_is_checked_with_the_specs_that_use_it(root: Path) -> None:
    before = (root / WIDE).read_text()
    code, told, text = edit(root, "--set", "parameters.size.max=3", file=WIDE)
    assert (code, text) == (Exit.INPUT, before), told
    assert "specs/nlp/tuned.yaml:5:9: error[template-parameter-value]" in told
    code, told, text = edit(root, "--set", "parameters.size.max=8", file=WIDE)
    assert code == Exit.CLEAN, told
    assert "checked with 1 spec made from templates" in told


def test_earlier_errors_in_specs_do_not_stop_an_edit_of_a_template(root: Path) -> None:
    write(root, {"specs/nlp/tuned.yaml": BY_TEMPLATE.replace("size: 4", "size: 4000")})
    code, told, _ = edit(root, "--set", "description=Whole nodes", file=WIDE)
    assert code == Exit.CLEAN, told


@pytest.mark.parametrize(
    ("file", "flag", "rule"),
    [
        ("overlays/lab/cluster.yaml", ("--unset", "teams"), "team-not-on-cluster"),
        ("overlays/lab/cluster.yaml", ("--set", "teams.nlp-"), "team-not-on-cluster"),
        ("overlays/lab/cluster.yaml", ("--set", "nodePools.a100.count=0"), "over-quota"),
        ("images/catalog.yaml", ("--unset", "images.openmpi"), "image-unknown"),
        ("images/catalog.yaml", ("--set", "images.openmpi.approved=[hipaa]"), ""),
        ("specs/nlp/team.yaml", ("--set", "clusters=[far]"), "far"),
        ("specs/nlp/team.yaml", ("--unset", "claims.filings"), "filings"),
    ],
)
def test_an_edit_that_breaks_specs_is_refused(
    root: Path, file: str, flag: tuple[str, ...], rule: str
) -> None:
    write(root, {FILE: COMMENTED + "data: {filings: /data}\n"})
    before = (root / file).read_text()
    assert gangplan("validate", "-C", root).code == Exit.CLEAN
    code, told, text = edit(root, *flag, file=file)
    if rule:
        assert (code != Exit.CLEAN, text) == (True, before), told
        assert rule in told
    else:
        assert gangplan("validate", "-C", root).code == code == Exit.CLEAN, told


def test_earlier_errors_in_specs_do_not_stop_an_edit_of_a_cluster(root: Path) -> None:
    """Their amounts may change: more nodes, even if not enough, are a step forward."""
    write(root, {FILE: COMMENTED.replace("workers: 4", "workers: 900")})
    code, told, text = edit(root, "--set", "nodePools.a100.count=6", file="overlays/lab/cluster.yaml")
    assert (code, "count: 6" in text) == (Exit.CLEAN, True), told
    assert "checked with 2 specs\n" in told


def test_a_large_workspace_is_checked_in_part_and_says_so(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(users, "MOST", 3)
    own = {f"specs/nlp/more{index}.yaml": SPEC for index in range(5)}
    write(root, own | {"specs/nlp/last.yaml": SPEC.replace("openmpi", "mpich")})
    code, told, _ = edit(root, "--set", "images.intel.tag=a", file="images/catalog.yaml")
    assert (code, "checked with 1 spec\n" in told) == (Exit.CLEAN, True), told  # the one with a template
    assert "specs/nlp/last.yaml" in edit(root, "--unset", "images.mpich", file="images/catalog.yaml")[1]
    code, told, _ = edit(root, "--set", "nodePools.cpu.count=5", file="overlays/lab/cluster.yaml")
    assert "checked with 3 specs; gangplan validate checks 5 more\n" in told


@pytest.mark.parametrize(
    ("file", "kind"),
    [
        ("images/catalog.yaml", "image"),
        ("specs/nlp/team.yaml", "team"),
        ("overlays/lab/cluster.yaml", "cluster"),
    ],
)
def test_a_clone_of_another_kind_of_file_names_the_command_for_it(root: Path, file: str, kind: str) -> None:
    outcome = gangplan("clone", file, "e", "-C", root)
    assert (outcome.code, f"gangplan new {kind} e." in outcome.err) == (Exit.INPUT, True)
    assert gangplan("new", kind, "--help").code == Exit.CLEAN


@pytest.mark.parametrize("near", [["quickstart"], []])
def test_other_jobs_of_the_team_are_known(near: list[str], root: Path) -> None:
    """The draft that is checked has the specs that `placement` names."""
    spec = (root / FILE).read_text(encoding="utf-8")
    for name in near:
        write(root, {f"specs/nlp/{name}.yaml": spec})
    (root / FILE).write_text(f"{spec}placement: {{apart: [quickstart]}}\n", encoding="utf-8")
    code, told, _ = edit(root, "--set", "timeout=3h")
    assert code == 0, told
    assert ("neighbour-unknown" in told) != bool(near), told
