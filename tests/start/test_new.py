"""`gangplan new`: a flag for every field, and short files that are checked before they are written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gangplan.commands.new_flags import build_flag_parameters
from gangplan.commands.new_questions import ask_for_field_on_terminal
from gangplan.commands.new_sweep import _check_trial_count
from gangplan.errors import Exit, UserError
from gangplan.objects import format_scalar
from gangplan.reference.fields import list_all_format_fields
from gangplan.reference.schemas import list_format_models
from gangplan.rules.core import SPEC_MISSING_FIELD
from gangplan.source import load_document
from gangplan.spec.load import parse_spec_document
from gangplan.starter.fields import NEW_FILE_FORMATS, NewField, fields_of
from gangplan.starter.new import NewFile
from gangplan.starter.text import render_file_text
from gangplan.starter.values import build_new_file_values, format_flow_yaml, has_commas
from tests import plain
from tests.start.terminal import Terminal
from tests.test_start import imported
from tests.workspaces import CATALOG, CLUSTER, SPEC, begin, gangplan, tree, write

# Fields that follow from the place of the file, and those that begin every file of a format.
GIVEN = {"apiVersion", "kind", "name", "team"}
FIELDS = [(kind, field) for kind in NEW_FILE_FORMATS for field in fields_of(kind)]
# Messages about other fields that a file with only one field lacks.
OTHERS_NEEDED = ("every run of every", "nothing would start a run")
JOB = ("new", "job", "tune", "--image", "openmpi", "--command", "python train.py --lr 1e-4")


def texts(field: NewField) -> Any:
    """Return the example of a field as its flag takes it."""
    example = field.example
    if field.path == ("command",):
        return " ".join(example)
    if field.shape == "truth":
        return example
    if field.shape == "list":
        return [str(one) for one in example]
    if field.shape == "blocks":
        return [format_flow_yaml(one) for one in example]
    if field.shape == "map":
        return [f"{name}={one}" for name, one in example.items()]
    if field.shape == "named":
        return [f"{name}={format_flow_yaml(one)}" for name, one in example.items()]
    return str(example)


# One flag per field


@pytest.mark.parametrize("kind", NEW_FILE_FORMATS)
def test_every_field_has_one_flag(kind: str) -> None:
    """Fields of blocks in maps and lists are written in the flag of the map or list."""
    flags = [field.flag for field in fields_of(kind)]
    assert len(set(flags)) == len(flags)
    known = {field.path: field.shape for field in fields_of(kind)}
    shapes = {field.path: field.types for field in fields_of(kind)}  # a value may be a block, too
    blocks = {path[:length] for path in known for length in range(len(path))}
    for one in list_all_format_fields():
        if one.kind != NEW_FILE_FORMATS[kind]:
            continue
        if kind == "image" and one.path[0] != "images":
            continue  # applies to all images of the catalog
        path = one.path[1:] if kind == "image" else one.path
        if not path or (kind != "image" and path[0] in GIVEN and len(path) == 1):
            continue
        inside = [path[:length] for length in range(1, len(path)) if path[:length] in known]
        assert (
            path in known
            or path in blocks
            or [known[one] for one in inside] in (["named"], ["blocks"])
            or "object" in shapes.get(path[:1], ())
        ), path


@pytest.mark.parametrize("kind", NEW_FILE_FORMATS)
def test_the_command_has_a_flag_for_every_field(kind: str) -> None:
    options = {name: one for one in build_flag_parameters(kind) for name in one.opts}
    for field in fields_of(kind):
        option = options[field.flag]
        assert option.help.startswith(field.description)
        assert option.help[-1] in ".)"
        assert "  " not in option.help
    assert {"--workspace", "--dry-run", "--quiet"} <= set(options)


@pytest.mark.parametrize(("kind", "field"), FIELDS, ids=lambda one: one if isinstance(one, str) else one.flag)
def test_a_flag_writes_what_the_format_reads(kind: str, field: NewField) -> None:
    """Give the example of each field as text, and read the same value back from the file."""
    values = build_new_file_values([field], {field.flag: texts(field)})
    whole = {"images": {"new": values}} if kind == "image" else values
    document, findings = load_document(
        render_file_text(kind, whole, Path("/nowhere"), "a.yaml").encode(), "a.yaml"
    )
    assert document is not None, findings
    found: Any = document.value["images"]["new"] if kind == "image" else document.value
    for name in field.path:
        found = found[name]
    if field.path != ("command",):
        assert found == field.example or str(found) == str(field.example)
    _, findings = parse_spec_document(list_format_models()[NEW_FILE_FORMATS[kind]], document)
    wrong = [
        one
        for one in findings
        if one.rule != SPEC_MISSING_FIELD and not any(other in one.message for other in OTHERS_NEEDED)
    ]
    assert wrong == []


# Jobs


def test_a_job_is_short_and_says_what_it_becomes(root: Path) -> None:
    outcome = gangplan(
        *JOB, "--workers", "2", "--gpus", "4", "--memory", "64Gi", "--data", "filings=/data", "-C", root
    )
    assert (outcome.code, outcome.err) == (Exit.CLEAN, "")
    assert (root / "specs/nlp/tune.yaml").read_text() == (
        "apiVersion: gangplan.dev/v1\n"
        "kind: TrainingJob\n"
        "image: openmpi\n"
        'command: [python, train.py, --lr, "1e-4"]\n'
        "workers: 2\n"
        "gpus: 4\n"
        "memory: 64Gi\n"
        "data: {filings: /data}\n"
    )
    assert outcome.out == (
        "wrote specs/nlp/tune.yaml\n"
        "  on lab: 8 ranks on 2 workers, 9 CPU, 130 GiB of memory, 8 GPUs; "
        "admitted at once when idle (node: a100, launcher: cpu)\n"
        "next: gangplan render, then commit specs/nlp/tune.yaml and rendered/\n"
    )
    assert gangplan("render", "-C", root).code == Exit.CLEAN
    assert gangplan("validate", "-C", root).code == Exit.CLEAN


def test_numbers_stay_texts_where_texts_are_meant(root: Path) -> None:
    flags = (
        "--env",
        "SEED=007",
        "--env",
        "ON=yes",
        "--labels",
        "rev=1e3",
        "--network-rdma",
        "off",
        "--cpu",
        "0.5",
    )
    text = gangplan(*JOB, *flags, "-n", "-C", root).out
    spec = plain.load(text)
    assert spec["env"] == {"SEED": "007", "ON": "yes"}
    assert spec["labels"] == {"rev": "1e3"}
    assert spec["network"] == {"rdma": "off"}
    assert spec["cpu"] == 0.5
    assert not (root / "specs/nlp/tune.yaml").exists()


def test_a_new_file_names_its_schema_for_editors(tmp_path: Path) -> None:
    begin(tmp_path)
    outcome = gangplan(*JOB, "-C", tmp_path, "-q")
    assert (outcome.code, outcome.out, outcome.err) == (Exit.CLEAN, "", "")
    first = (tmp_path / "specs/nlp/tune.yaml").read_text().splitlines()[0]
    assert first == "# yaml-language-server: $schema=../../.vscode/schemas/spec.json"


def test_an_error_writes_nothing(root: Path) -> None:
    before = tree(root)
    outcome = gangplan(*JOB, "--gpus", "40", "--memory", "64GB", "-C", root)
    assert outcome.code == Exit.INPUT
    assert outcome.errors() == [
        ("specs/nlp/tune.yaml:5:7", "spec-value"),
        ("specs/nlp/tune.yaml:6:9", "spec-value"),
    ]
    assert outcome.err.endswith("nothing was written: 2 errors\n")
    outcome = gangplan(*JOB, "--gpus", "8", "--workers", "100", "-C", root)
    assert outcome.code == Exit.FINDINGS, outcome.err
    assert outcome.out == ""
    assert tree(root) == before


def test_warnings_are_reported_and_the_file_is_written(root: Path) -> None:
    outcome = gangplan(*JOB, "--gpus", "2", "--slots", "4", "-C", root)
    assert outcome.code == Exit.CLEAN
    assert [one.rule for one in outcome.findings] == ["slots-not-gpus"]
    assert (root / "specs/nlp/tune.yaml").exists()


def test_errors_in_other_files_do_not_matter(root: Path) -> None:
    write(root, {"specs/nlp/broken.yaml": "a: b: c\n"})
    assert gangplan(*JOB, "-C", root).code == Exit.CLEAN


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["new", "job"], "nothing was written: NAME, --command are missing"),
        (["new", "job", "filings", "--command", "a"], "specs/nlp/filings.yaml exists"),
        (["new", "job", "Tune_1", "--command", "a"], "\n  help: Write tune-1."),
        (["new", "job", "../x", "--command", "a"], "cannot be the name of a job"),
        (["new", "job", "tune", "--command", "a", "--team", "npl"], "there is no team 'npl'"),
        (["new", "job", "tune", "--command", "a", "--data", "x"], "--data x: the value is missing"),
        (["new", "cluster", "far", "--node-pools", "a=b"], "missing"),
        (["new", "image", "a", "--repository", "registry.example.com/a"], "--digest is missing"),
        (["new", "jobb"], "No such command 'jobb'. Did you mean 'job'?"),
        (["new", "job", "--worker", "3"], "--workers"),
    ],
)  # fmt: skip
def test_wrong_arguments_are_refused(arguments: list[str], said: str, root: Path) -> None:
    before = tree(root)
    where = ["-C", str(root)] if arguments != ["new", "jobb"] else []
    outcome = gangplan(*arguments, *where)
    assert (outcome.code, outcome.out) == (Exit.INPUT, "")
    assert said in outcome.err
    assert tree(root) == before


def test_a_name_that_another_file_has_is_refused(root: Path) -> None:
    write(root, {"specs/nlp/deep/other.yaml": SPEC + "name: tune\n"})
    outcome = gangplan(*JOB, "-C", root)
    assert outcome.code == Exit.INPUT
    assert "specs/nlp/deep/other.yaml has a job 'tune' already" in outcome.err
    assert not (root / "specs/nlp/tune.yaml").exists()


def test_a_secret_is_refused_and_not_shown(root: Path) -> None:
    outcome = gangplan(
        *JOB, "--env", "AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI/K7MDENG/bPxRfiCYzzzzzzzKEY", "-C", root
    )
    assert outcome.code != Exit.CLEAN
    assert "secret-literal" in outcome.err
    assert "wJalr" not in outcome.out + outcome.err
    assert not (root / "specs/nlp/tune.yaml").exists()


def test_the_team_defaults_to_that_of_the_folder(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(root, {"specs/cv/team.yaml": "apiVersion: gangplan.dev/v1\nkind: Team\n"})
    assert "--team is missing" in gangplan(*JOB, "-C", root).err
    monkeypatch.chdir(root / "specs/nlp")
    assert gangplan(*JOB).code == Exit.CLEAN
    assert (root / "specs/nlp/tune.yaml").exists()


# Other formats


def test_a_team_a_cluster_and_a_waiver_are_written(root: Path) -> None:
    outcome = gangplan("new", "team", "cv", "--contact", "cv@example.com", "--clusters", "lab",
                       "--claims", "images={accessModes: [ReadWriteMany]}", "-C", root)  # fmt: skip
    assert (outcome.code, outcome.err) == (Exit.CLEAN, "")
    assert (root / "specs/cv/team.yaml").read_text() == (
        "apiVersion: gangplan.dev/v1\nkind: Team\ncontact: cv@example.com\nclusters: [lab]\n"
        "claims:\n  images: {accessModes: [ReadWriteMany]}\n"
    )
    assert "teams: {cv: {queue: training}}" in outcome.out
    outcome = gangplan(
        "new", "cluster", "far", "--versions-kubernetes", "1.34", "--versions-trainer", "2.3.0",
        "--versions-kueue", "0.19.2", "--region", "eu", "--location", "cloud",
        "--node-pools", "cpu={count: 4, cpu: 30, memory: 120Gi}",
        "--node-pools", "h100={count: 2, cpu: 92, memory: 1100Gi, gpu: {model: h100-80gb, count: 8}, labels: {pool: h100}}",
        "--teams", "nlp={queue: gpu}", "--versions-gpu-operator", "25.10.0", "-C", root)  # fmt: skip
    assert (outcome.code, outcome.errors()) == (Exit.CLEAN, [])
    text = (root / "overlays/far/cluster.yaml").read_text()
    assert '"1.34"' in text, "a version is not a number"
    assert "nodePools:\n  cpu: {count: 4, cpu: 30, memory: 120Gi}\n  h100:\n    count: 2\n" in text
    outcome = gangplan(
        "new", "waiver", "slots", "--rule", "slots-not-gpus", "--scope-team", "nlp",
        "--reason", "Measured to be faster.", "--approver", "lead@example.com", "--expires", "2027-01-31",
        "-C", root)  # fmt: skip
    assert (outcome.code, outcome.err) == (Exit.CLEAN, "")
    waiver = plain.load((root / "policies/waivers/slots.yaml").read_text())
    assert (waiver["scope"], waiver["expires"]) == ({"team": "nlp"}, "2027-01-31")


def test_a_waiver_of_an_unknown_rule_is_refused(root: Path) -> None:
    outcome = gangplan(
        "new", "waiver", "x", "--rule", "slot-not-gpus", "--scope-team", "nlp", "--reason", "Measured to be faster.",
        "--approver", "lead@example.com", "--expires", "2027-01-31", "-C", root)  # fmt: skip
    assert outcome.code != Exit.CLEAN
    assert "slots-not-gpus" in outcome.err
    assert not (root / "policies").exists()


@pytest.mark.parametrize(
    ("day", "said"),
    [
        ("2026-06-30", "the waiver of slots-not-gpus ended on 2026-06-30, and today is 2026-07-01"),
        ("2027-07-03", "the waiver of slots-not-gpus lasts 367 days; a year is the most"),
        ("2026-07-01", ""),
        ("2027-06-30", ""),
    ],
)
def test_a_waiver_that_would_not_hold_is_not_written(day: str, said: str, root: Path) -> None:
    outcome = gangplan(
        "new", "waiver", "x", "--rule", "slots-not-gpus", "--scope-team", "nlp", "--reason", "Measured to be faster.",
        "--approver", "lead@example.com", "--expires", day, "-C", root)  # fmt: skip
    assert outcome.code == (Exit.FINDINGS if said else Exit.CLEAN)
    assert said in outcome.err
    assert not said or "Give a day from 2026-07-01 to 2027-07-02." in outcome.err
    assert (root / "policies/waivers/x.yaml").exists() is not bool(said)


IMAGE = ("new", "image", "jax", "--repository", "registry.example.com/ml/jax", "--digest", "sha256:" + "0" * 64,
         "--framework", "torch")  # fmt: skip
ENTRY = (
    "  jax:\n    repository: registry.example.com/ml/jax\n    digest: sha256:"
    + "0" * 64
    + "\n    framework: torch\n"
)
KINDS = "apiVersion: gangplan.dev/v1\nkind: ImageCatalog\n"
IMAGES = CATALOG.removeprefix(KINDS)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (CATALOG, CATALOG + ENTRY),
        (CATALOG.removesuffix("\n"), CATALOG + ENTRY),
        (CATALOG.replace("\n", "\r\n"), (CATALOG + ENTRY).replace("\n", "\r\n")),
        (CATALOG + "# the end\n", CATALOG + "# the end\n" + ENTRY),
        (IMAGES + "# Which\n" + KINDS, IMAGES + ENTRY + "# Which\n" + KINDS),
        (IMAGES + "\n" + KINDS, IMAGES + ENTRY + "\n" + KINDS),
    ],
    ids=["usual", "no line end", "crlf", "comment", "fields behind", "blank line"],
)
def test_an_image_is_added_and_nothing_else_changes(before: str, after: str, root: Path) -> None:
    write(root, {"images/catalog.yaml": before})
    outcome = gangplan(*IMAGE, "-C", root)
    assert (outcome.code, outcome.errors()) == (Exit.CLEAN, [])
    text = (root / "images/catalog.yaml").read_bytes().decode()
    assert text.replace(format_scalar("sha256:" + "0" * 64), "sha256:" + "0" * 64) == after
    again = gangplan(*IMAGE, "-C", root)
    assert again.code == Exit.INPUT
    assert "there is an image 'jax' already" in again.err
    assert list((root / "images").iterdir()) == [root / "images/catalog.yaml"]


def test_an_unusable_image_is_refused_or_warned_about(root: Path) -> None:
    """Errors of the entry itself refuse it; what a cluster would have to allow is only a warning."""
    digest = "sha256:" + "a" * 64
    before = tree(root)
    outcome = gangplan(
        "new", "image", "solver", "--repository", "registry.example.com/a", "--digest", digest, "-C", root
    )
    assert outcome.code != Exit.CLEAN
    assert [one.rule for one in outcome.findings] == ["image-without-mpi"]
    assert tree(root) == before
    write(root, {"overlays/lab/cluster.yaml": CLUSTER + "registries: [registry.example.com]\n"})
    far = ("--repository", "docker.io/team/a", "--digest", digest, "--framework", "torch")
    outcome = gangplan("new", "image", "far", *far, "-C", root)
    assert outcome.code == Exit.CLEAN, outcome.err
    (found,) = outcome.findings
    assert (found.rule, found.severity) == ("registry-untrusted", "warning")
    assert outcome.err.startswith("images/catalog.yaml:")
    near = ("--repository", "registry.example.com/b", "--digest", digest, "--framework", "torch")
    assert gangplan("new", "image", "near", *near, "-C", root).findings == []


@pytest.mark.parametrize("kind", ["team", "cluster", "waiver", "job"])
def test_a_workspace_of_init_takes_further_files(kind: str, tmp_path: Path) -> None:
    """Its files begin with the path of their schema, which is not a file that a spec names."""
    begin(tmp_path)
    assert gangplan("new", "image", "jax", *IMAGE[3:], "-C", tmp_path).code == Exit.CLEAN
    given = {
        "team": ("new", "team", "vision", "--contact", "vision@example.com"),
        "cluster": (
            "new", "cluster", "far", "--versions-kubernetes", "1.34", "--versions-trainer", "2.3.0", "--region", "eu",
            "--versions-kueue", "0.19.2", "--location", "on-prem", "--node-pools", "cpu={count: 4, cpu: 30, memory: 120Gi}",
        ),
        "waiver": (
            "new", "waiver", "slots", "--rule", "slots-not-gpus", "--scope-team", "nlp",
            "--reason", "Measured to be faster.", "--approver", "lead@example.com", "--expires", "2027-01-31",
        ),
        "job": JOB,
    }[kind]  # fmt: skip
    outcome = gangplan(*given, "-C", tmp_path)
    assert (outcome.code, outcome.err) == (Exit.CLEAN, "")
    assert "wrote " in outcome.out


@pytest.mark.parametrize(
    "command",
    [
        "[python, train.py, --lr, 1e-4]",
        '["python", train.py, "--lr", "1e-4"]',
        "python train.py --lr 1e-4",
        "python train.py \\\n  --lr 1e-4",
    ],
)
def test_a_command_is_a_list_or_a_line(command: str, root: Path) -> None:
    text = gangplan("new", "job", "tune", "--image", "openmpi", "--command", command, "-n", "-C", root).out
    assert 'command: [python, train.py, --lr, "1e-4"]\n' in text


@pytest.mark.parametrize(
    "script",
    [
        "python prep.py\npython train.py",
        "#!/bin/bash\n# my job\npython train.py",
        "set -e\npython train.py",
    ],
)
def test_a_command_of_several_lines_needs_a_shell_as_in_a_file(script: str, root: Path) -> None:
    new = ("new", "job", "tune", "--image", "openmpi", "-n", "-C", root, "--command")
    outcome = gangplan(*new, script)
    assert outcome.code == Exit.INPUT
    help = f"[bash, -c, {json.dumps(script)}]"
    assert f"Write command: {help}.\n" in outcome.err
    assert plain.load(gangplan(*new, help).out)["command"] == ["bash", "-c", script]


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (("--data", "filings"), "--data filings: the value is missing"),
        (("--data", "=/data"), "--data =/data: the name is missing"),
        (("--env", "SEED"), "Write --env SEED="),
    ],
)
def test_a_pair_without_a_name_or_a_value_is_refused(flags: tuple[str, str], said: str, root: Path) -> None:
    outcome = gangplan(*JOB, *flags, "-C", root)
    assert outcome.code == Exit.INPUT
    assert said in outcome.err


def test_commas_separate_entries_of_a_map(root: Path) -> None:
    spec = plain.load(gangplan(*JOB, "--data", "filings=/data,archive=/old", "-n", "-C", root).out)
    assert spec["data"] == {"filings": "/data", "archive": "/old"}


def test_a_catalog_in_one_line_is_left_alone(root: Path) -> None:
    one = "{repository: registry.example.com/a, digest: 'sha256:" + "1" * 64 + "', framework: torch}"
    text = f"{KINDS}images: {{a: {one}}}\n"
    write(root, {"images/catalog.yaml": text})
    outcome = gangplan(*IMAGE, "-C", root)
    assert outcome.code == Exit.INPUT
    assert "Add it yourself" in outcome.err
    assert (root / "images/catalog.yaml").read_text() == text


# On a terminal


def test_questions_complete_check_and_count(root: Path) -> None:
    with Terminal("new", "job", cwd=root) as terminal:
        terminal.expect("Name: ")
        terminal.type("filings\r")
        terminal.expect("specs/nlp/filings.yaml exists")
        terminal.type("tune\r")
        terminal.expect("  openmpi, openmpi4, ")
        terminal.expect("image (Enter: leave it out): ")
        terminal.type("deep\t\r")
        terminal.expect("command: ")
        terminal.type("python train.py\r")
        terminal.expect("on lab: 4 ranks on 4 workers")
        terminal.expect("workers")
        terminal.type("2\r")
        terminal.expect("on lab: 2 ranks on 2 workers, 9 CPU, 34 GiB of memory; admitted at once when idle")
        terminal.expect("gpus")
        terminal.type("many\r")
        terminal.expect("gpus is 'many'; expected a whole number")
        terminal.type("4\r")
        terminal.expect("8 GPUs; admitted at once when idle (node: a100")
        terminal.expect("  a100-80gb\ngpu.model (Enter: leave it out): ")
        terminal.type("\r")
        terminal.expect("cpu")
        terminal.type("\r")
        terminal.expect("memory")
        terminal.type("64Gi\r")
        terminal.expect("  filings=/data, ")
        terminal.expect("data (")
        terminal.type("fil\t\r")
        terminal.expect("timeout")
        terminal.type("4h\r")
        assert "image: deepspeed\ncommand: [python, train.py]\n" in terminal.expect("Write it? [yes]: ")
        terminal.type("\r")
        terminal.expect("wrote specs/nlp/tune.yaml")
        assert terminal.end() == Exit.CLEAN
    spec = plain.load((root / "specs/nlp/tune.yaml").read_text())
    assert spec["data"] == {"filings": "/data"}
    assert (spec["workers"], spec["gpus"], spec["memory"], spec["timeout"]) == (2, 4, "64Gi", "4h")


def test_an_answer_can_be_corrected_at_the_end(root: Path) -> None:
    """An error that only the whole file shows costs one answer, not all of them."""
    with Terminal("new", "job", "tune", "--image", "pytorch", "--gpus", "8", cwd=root) as terminal:
        terminal.expect("command: ")
        terminal.type("python train.py\r")
        terminal.expect("workers (")
        terminal.type("100\r")
        for question in ("gpu.model (", "cpu (", "memory (", "data (", "timeout ("):
            terminal.expect(question)
            terminal.type("\r")
        assert "error[over-quota]" in terminal.expect("Change which field? [workers]: ")
        terminal.type("worker\r")
        terminal.expect("there is no field 'worker'. Did you mean 'workers'?")
        terminal.type("workers\r")
        terminal.expect("workers (Enter: leave it out): ")
        terminal.type("2\r")
        terminal.expect("Write it? [yes]: ")
        terminal.type("y\r")
        terminal.expect("wrote specs/nlp/tune.yaml")
        assert terminal.end() == Exit.CLEAN
    assert plain.load((root / "specs/nlp/tune.yaml").read_text())["workers"] == 2


def test_the_field_at_fault_is_proposed_for_a_change(root: Path) -> None:
    with Terminal("new", "job", "tune", "--image", "pytorch", "--timeout", "1h", cwd=root) as terminal:
        terminal.expect("command: ")
        terminal.type("python train.py\r")
        for question in ("workers (", "gpus (", "cpu (", "memory (", "data ("):
            terminal.expect(question)
            terminal.type("\r")
        terminal.expect("[yes]: ")
        terminal.type("secrets.env\r")
        terminal.expect("secrets.env (")
        terminal.type("HF_TOKEN=hugingface/token\r")
        terminal.expect("Change which field? [secrets.env]: ")
        terminal.type("no\r")
        terminal.expect("nothing was changed")
        assert terminal.end() == Exit.INTERRUPTED
    assert not (root / "specs/nlp/tune.yaml").exists()


def test_questions_create_a_sweep(root: Path) -> None:
    with Terminal("new", "sweep", cwd=root) as terminal:
        for question, answer in (
            ("Name: ", "lr"),
            ("Job that each trial runs: ", "specs/nlp/fil\t"),
            ("Parameter and its values: ", "lr"),
            ("Parameter and its values: ", "lr=0.1,0.01"),
            ("Another parameter (Enter: leave it out): ", ""),
            ("Trials that run at once [1]: ", "two"),
            ("Trials that run at once [1]: ", "2"),
        ):
            terminal.expect(question)
            terminal.type(f"{answer}\r")
        terminal.expect("wrote specs/nlp/lr.yaml")
        assert terminal.end() == Exit.CLEAN
    spec = plain.load((root / "specs/nlp/lr.yaml").read_text())
    assert spec["maxConcurrent"] == 2


def test_trials_at_once_are_limited_as_in_a_sweep() -> None:
    for answer in ("1", "10000"):
        _check_trial_count(answer)
    for answer in ("", "0", "-1", "two", "10001", "1" * 5000):
        with pytest.raises(UserError) as caught:
            _check_trial_count(answer)
        assert caught.value.help == "Write a whole number from 1 to 10000."


def test_a_job_cannot_be_created_without_a_team(tmp_path: Path) -> None:
    write(tmp_path, {"specs/.keep": "", "overlays/.keep": ""})
    with Terminal("new", "job", cwd=tmp_path) as terminal:
        terminal.expect("there is no team yet")
        terminal.expect("gangplan new team NAME")
        assert terminal.end() == Exit.INPUT


def test_a_block_that_lacks_a_field_is_asked_for_again(root: Path) -> None:
    flags = ("--versions-kubernetes", "1.34.4", "--versions-trainer", "2.3.0", "--versions-kueue", "0.19.2")
    with Terminal("new", "cluster", "far", *flags, "--region", "eu", cwd=root) as terminal:
        terminal.expect("environment [dev]: ")
        terminal.type("\r")
        terminal.expect("location [on-prem]: ")
        terminal.type("\r")
        terminal.expect("nodePools: ")
        terminal.type("cpu={count: 4, cpu: 30}\r")
        terminal.expect("'nodePools.cpu.memory' is missing")
        terminal.type("cpu={count: 4, cpu: 30, memory: 120Gi}\r")
        terminal.expect("another of nodePools (Enter: leave it out): ")
        terminal.type("h100\r")
        for count in ("many", "2"):  # a wrong entry is asked for again
            for part, answer in (("count", count), ("cpu", "92"), ("memory", "1100Gi")):
                terminal.expect(f"nodePools.h100.{part}: ")
                terminal.type(f"{answer}\r")
            terminal.expect("nodePools.h100, more fields (")
            terminal.type("gpu: {model: h100-80gb, count: 8}\r")
            if count == "many":
                terminal.expect("nodePools.h100.count is 'many'")
        terminal.expect("another of nodePools (")
        terminal.type("\r")
        terminal.expect("teams (")
        terminal.type("nlp={queue: training}\r")
        terminal.expect("another of teams (")
        terminal.type("\r")
        terminal.expect("Write it?")
        terminal.type("\r")
        terminal.expect("wrote overlays/far/cluster.yaml")
        assert terminal.end() == Exit.CLEAN
    pools = plain.load((root / "overlays/far/cluster.yaml").read_text())["nodePools"]
    assert [(name, one["count"]) for name, one in pools.items()] == [("cpu", 4), ("h100", 2)]


@pytest.mark.parametrize(("kind", "field"), FIELDS, ids=lambda one: one if isinstance(one, str) else one.flag)
def test_answers_equal_the_flags_of_each_field(
    kind: str, field: NewField, root: Path, monkeypatch: Any
) -> None:
    """Answer with the example of each field, and compare the result with that of its flag."""
    monkeypatch.chdir(root)
    texts_of = texts(field)
    answers = [str(one).lower() if field.shape == "truth" else str(one)
               for one in (texts_of if isinstance(texts_of, list) else [texts_of])]  # fmt: skip
    if field.shape == "map" or (field.shape == "list" and len(answers) > 1 and "," not in "".join(answers)):
        answers = [",".join(answers)] if not has_commas(field) else answers
    said = iter([*answers, ""])
    monkeypatch.setattr("builtins.input", lambda prompt: next(said))
    wanted = ask_for_field_on_terminal(NewFile(kind, root, "new", "nlp", {}), field)
    given = {field.flag: texts_of}
    assert build_new_file_values([field], wanted.given) == build_new_file_values([field], given)


def test_any_field_can_be_added_at_the_end(root: Path) -> None:
    flags = ("--image", "pytorch", "--command", "python train.py", "--team", "nlp")
    with Terminal("new", "job", *flags, cwd=root) as terminal:
        terminal.expect("Name: ")
        terminal.type("tune\r")
        for question in ("workers (", "gpus (", "cpu (", "memory (", "data (", "timeout ("):
            terminal.expect(question)
            terminal.type("\r")
        for name, shown, answer in (
            ("network.rdm\t", "  InfiniBand or RoCE", "off"),
            ("env", "such as", "SEED=7"),
            ("labels", "such as", "project=a,stage=b"),
        ):
            terminal.expect("[yes]: ")
            terminal.type(f"{name}\r")
            terminal.expect(shown)
            terminal.expect(" (Enter: leave it out): ")
            terminal.type(f"{answer}\r")
            if name == "env":
                terminal.expect("another of env (Enter: leave it out): ")
                terminal.type("LR=1e-4\r")
                terminal.expect("another of env (Enter: leave it out): ")
                terminal.type("\r")
        assert "labels: {project: a, stage: b}" in terminal.expect("[yes]: ")
        terminal.type("netwrok.rdma\r")
        terminal.expect("there is no field 'netwrok.rdma'. Did you mean 'network.rdma'?")
        terminal.type("\r")
        terminal.expect("wrote specs/nlp/tune.yaml")
        assert terminal.end() == Exit.CLEAN
    spec = plain.load((root / "specs/nlp/tune.yaml").read_text())
    assert spec["network"] == {"rdma": "off"}
    assert spec["env"] == {"SEED": 7, "LR": "1e-4"}


def test_answering_no_writes_nothing(root: Path) -> None:
    before = tree(root)
    with Terminal(
        "new", "waiver", "x", "--rule", "slots-not-gpus", "--expires", "2027-01-31", cwd=root
    ) as terminal:
        for question, answer in (("scope.team", "nlp"), ("scope.job", ""), ("scope.cluster", ""),
                                 ("reason", "Measured to be faster."), ("approver", "me@example.com")):  # fmt: skip
            terminal.expect(question)
            terminal.type(f"{answer}\r")
        terminal.expect("Write it?")
        terminal.type("n\r")
        terminal.expect("interrupted; nothing was changed")
        assert terminal.end() == Exit.INTERRUPTED
    assert tree(root) == before


def test_help_of_new_imports_no_formats(tmp_path: Path) -> None:
    modules = imported("new", "--help", root=tmp_path)
    assert not modules & {"pydantic", "yaml", "gangplan.spec.job"}


def test_a_broken_cluster_does_not_stop_a_new_image(root: Path) -> None:
    write(root, {"overlays/bad/cluster.yaml": CLUSTER + "nothing: here\n"})
    assert gangplan(*IMAGE, "-C", root).code == Exit.CLEAN
