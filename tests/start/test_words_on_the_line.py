"""The command line as people expect it: help in every form, -q, clusters without a flag, completion by
TAB."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import typer
import typer.core
import typer.main

from gangplan.cli import program
from gangplan.commands import schema_app, tree
from gangplan.commands.listing import NAMES
from gangplan.commands.start_app import LISTS
from gangplan.errors import Exit
from gangplan.reference.schemas import FINDINGS_SCHEMA, IMPORT_SCHEMA, PLAN_SCHEMA, list_format_models
from gangplan.rulebook import load_shipped_rules
from tests.start.terminal import Terminal
from tests.workspaces import CLUSTER, REPOSITORY, SPEC, gangplan, write

# Help


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        (["help"], ["--help"]),
        (["-h"], ["--help"]),
        (["help", "plan"], ["plan", "--help"]),
        (["help", "cluster", "check"], ["cluster", "check", "--help"]),
        (["cluster", "help"], ["cluster", "--help"]),
        (["new", "help"], ["new", "--help"]),
        (["help", "workers"], ["explain", "workers"]),
        (["help", "rdma-fallback"], ["explain", "rdma-fallback"]),
    ],
    ids=" ".join,
)  # fmt: skip
def test_help_works_in_every_form(said: list[str], meant: list[str]) -> None:
    outcome = gangplan(*said)
    assert (outcome.code, outcome.err) == (Exit.CLEAN, "")
    assert outcome == gangplan(*meant)


@pytest.mark.parametrize(
    "folder", [("-C", "{}"), ("-C{}",), ("--workspace", "{}"), ("--workspace={}",)], ids=str
)
@pytest.mark.parametrize(
    "command", [("list", "queues"), ("validate", SPEC), ("cluster", "check"), ("cluster", "-h")]
)
def test_the_workspace_may_come_before_the_command(
    root: Path, folder: tuple[str, ...], command: tuple[str, ...]
) -> None:
    words = [word.format(root) for word in folder]
    group = command[: 2 if command == ("cluster", "check") else 1]
    assert gangplan(*words, *command) == gangplan(*group, *words, *command[len(group) :])


def test_a_workspace_without_a_command_says_what_no_arguments_say(root: Path) -> None:
    for words in (["-C"], ["-C", str(root)], [f"--workspace={root}"]):
        assert gangplan(*words) == gangplan()
    assert gangplan("-C", str(root), "help") == gangplan("help")


def test_gangplan_without_arguments_says_where_to_begin(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path / "empty")
    outcome = gangplan()
    assert outcome.code == Exit.INPUT
    assert "  gangplan init DIR " in outcome.err
    monkeypatch.chdir(root)
    inside = gangplan().err
    for said in (outcome.err, inside):
        assert said.count("\n") <= 8
        assert said.splitlines()[-1].startswith("gangplan --help lists all commands")
        for line in said.splitlines()[2:-2]:  # each is an existing command
            words = line.split("  ")[1].split()
            assert gangplan(*words[1:2], "--help").code == Exit.CLEAN
    assert [line.split()[1] for line in inside.splitlines()[2:-2]] == ["new", "render", "validate"]


def test_commands_are_listed_in_the_order_of_work() -> None:
    lines = gangplan("--help").out.partition("Commands:\n")[2].splitlines()
    first = ["init", "new", "clone", "edit", "import", "list", "render", "validate"]
    assert [line.split()[0] for line in lines][: len(first)] == first


def test_the_list_of_commands_is_that_of_the_whole_program() -> None:
    whole = typer.main.get_command(tree.add_all_commands(program))
    context = typer.Context(whole, info_name="gangplan", help_option_names=["-h", "--help"])
    assert gangplan("-h").out == gangplan("--help").out == whole.get_help(context) + "\n"


def test_a_misspelt_command_gets_a_suggestion() -> None:
    assert "Did you mean 'validate'" in gangplan("valdate").err


# Quiet


def test_quiet_prints_nothing_without_findings(root: Path) -> None:
    for command in (["render"], ["render", "--check"], ["validate"], ["validate", "--shard", "1/1"]):
        outcome = gangplan(*command, "-q", "-C", root)
        said = "" if "--shard" not in command else outcome.out
        assert (outcome.code, said, outcome.err) == (Exit.CLEAN, "", ""), command


def test_quiet_still_reports_errors(root: Path) -> None:
    write(root, {"specs/nlp/filings.yaml": SPEC.replace("32Gi", "32GB")})
    for command in ("validate", "render"):
        outcome = gangplan(command, "--quiet", "-C", root)
        assert (outcome.code, outcome.out) == (Exit.INPUT, "")
        assert [one.rule for one in outcome.findings] == ["spec-value"]


def test_quiet_reports_a_stale_tree_once(root: Path) -> None:
    outcome = gangplan("render", "--check", "-q", "-C", root)
    assert (outcome.code, outcome.out) == (Exit.FINDINGS, "")
    assert [one.rule for one in outcome.findings] == ["rendered-stale"]
    assert outcome.err.count("rendered/ is stale: ") == 1
    assert [line.partition(":")[0] for line in outcome.err.splitlines()[1:]] == ["  help"]


def test_quiet_does_not_change_reports(root: Path) -> None:
    loud = gangplan("validate", "--format", "sarif", "-C", root)
    assert gangplan("validate", "--format", "sarif", "-q", "-C", root).out == loud.out != ""


# Clusters named without a flag


@pytest.mark.parametrize("command", ["check", "quota", "kueue-config"])
def test_a_cluster_is_named_without_a_flag(command: str, root: Path) -> None:
    write(root, {"overlays/far/cluster.yaml": CLUSTER})
    plain = gangplan("cluster", command, "lab", "-C", root)
    assert plain.code == Exit.CLEAN, plain.err
    assert plain == gangplan("cluster", command, "--cluster", "lab", "-C", root)
    assert plain == gangplan("cluster", command, "lab", "--cluster", "lab", "-C", root)
    assert plain != gangplan("cluster", command, "-C", root)
    wrong = gangplan("cluster", command, "lib", "-C", root)
    assert wrong.code == Exit.INPUT
    assert "there is no cluster 'lib'\n  help: Did you mean 'lab'?" in wrong.err


# Completion


def completed(root: Path, line: str) -> list[str]:
    """Return what bash offers for the last word of a line."""
    words = line.split(" ")
    done = subprocess.run(
        [sys.executable, "-m", "gangplan"],
        cwd=root,
        env={
            **os.environ,
            "_GANGPLAN_COMPLETE": "complete_bash",
            "COMP_WORDS": line,
            "COMP_CWORD": str(len(words) - 1),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr == "", done.stderr
    return done.stdout.split()


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("gangplan va", ["validate"]),
        ("gangplan new ", ["job", "sweep", "template", "team", "cluster", "image", "waiver"]),
        ("gangplan list po", ["pools", "policies"]),
        ("gangplan render --cluster l", ["lab"]),
        ("gangplan cluster check ", ["lab"]),
        ("gangplan validate --team ", ["nlp"]),
        ("gangplan validate specs/nlp/f", ["specs/nlp/filings.yaml"]),
        ("gangplan why over", ["overlays/lab/cluster.yaml"]),
        ("gangplan explain rdma-fall", ["rdma-fallback"]),
        ("gangplan explain TrainingJ", ["TrainingJob"]),
        ("gangplan explain network.p", ["network.posture"]),
        ("gangplan schema print c", ["cluster", "catalog"]),
        ("gangplan validate --format sa", ["sarif"]),
        ("gangplan init --sync a", ["argocd"]),
        ("gangplan new job --image deep", ["deepspeed"]),
        ("gangplan new job --checkpoint-e", ["--checkpoint-every-steps"]),
        ("gangplan new job --priority h", ["high"]),
        ("gangplan new waiver --rule slots-not", ["slots-not-gpus"]),
        ("gangplan clone ", ["specs/nlp/filings.yaml"]),
        ("gangplan new sweep --from ", ["specs/nlp/filings.yaml"]),
        ("gangplan new job --team nlp --data f", ["filings="]),
        ("gangplan new team --clusters other,l", ["other,lab"]),
        ("gangplan new team --clusters lab,", []),
        ("gangplan new waiver --scope-team other,n", []),
        ("gangplan new job --team nlp --after other,f", ["other,filings"]),
        ("gangplan plan --cluster other,l", []),  # one name a flag
        ("gangplan validate --team other,n", []),
        ("gangplan new job --team cv --data ", ["images="]),
        ("gangplan new job --team nlp --queue ", ["training"]),
        ("gangplan edit specs/nlp/filings.yaml --set network.post", ["network.posture"]),
        ("gangplan edit overlays/lab/cluster.yaml --unset podsR", ["podsReadyTimeout"]),
        ("gangplan render --color a", ["auto", "always"]),
        ("gangplan validate --fail-on w", ["warning"]),
        ("gangplan help new ", ["job", "sweep", "template", "team", "cluster", "image", "waiver"]),
        ("gangplan help va", ["validate"]),
        ("gangplan schema print s", ["spec", "sweep"]),
        ("gangplan edit --set network.post", ["network.posture"]),
        ("gangplan edit --unset workers -C . specs/nlp/filings.yaml --set network.post", ["network.posture"]),
        ("gangplan clone specs/nlp/filings.yaml other --set network.post", ["network.posture"]),
        (
            "gangplan edit --set a=specs/nlp/filings.yaml overlays/lab/cluster.yaml -s podsR",
            ["podsReadyTimeout"],
        ),
        ("gangplan simulate --format ", ["text", "json"]),
        ("gangplan plan --format ", ["text", "json", "markdown"]),
        ("gangplan tools install kube", ["kubeconform"]),
        ("gangplan policy export --cluster ", ["lab"]),
        ("gangplan schema import --cluster ", ["lab"]),
        ("gangplan policy test fed", ["fedramp"]),
        ("gangplan new cluster --policies-packs fed", ["fedramp"]),
        ("gangplan new team --defaults-image deep", ["deepspeed"]),
        ("gangplan new waiver --scope-job ", ["filings"]),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_tab_completes_names(line: str, wanted: list[str], root: Path) -> None:
    team = "apiVersion: gangplan.dev/v1\nkind: Team\nclaims: {images: {accessModes: [ReadOnlyMany]}}\n"
    write(root, {"specs/cv/team.yaml": team} if "--team cv" in line else {})
    assert completed(root, line) == wanted


def test_tab_offers_what_the_command_takes(root: Path) -> None:
    """Of specs, those that can be copied or run; of names, those of the team, by default that of the
    folder."""
    head = "apiVersion: gangplan.dev/v1\nkind: "
    files = {
        "specs/nlp/rates.yaml": f"{head}Sweep\n",
        "jobtemplates/large.yaml": f"{head}JobTemplate\n",
        "specs/nlp/files/settings.yaml": "a: 1\n",
        "specs/cv/team.yaml": f"{head}Team\nclaims: {{images: {{accessModes: [ReadOnlyMany]}}}}\nsecrets: [hub]\n",
        "specs/cv/see.yaml": SPEC,
    }
    write(root, files)
    cluster = root / "overlays/lab/cluster.yaml"
    cluster.write_text(cluster.read_text().replace("teams:\n", "teams:\n  cv: {queue: seeing}\n"))
    jobs = ["specs/cv/see.yaml", "specs/nlp/filings.yaml"]
    assert completed(root, "gangplan new sweep x --from ") == jobs
    assert completed(root, "gangplan run ") == jobs
    assert completed(root, "gangplan clone ") == [*jobs, "specs/nlp/rates.yaml", "jobtemplates/large.yaml"]
    assert "images=" not in completed(root, "gangplan new job --team nlp --data ")
    assert completed(root / "specs/cv", "gangplan new job --data ") == ["images="]
    for flag, name in {"queue": "seeing", "after": "see", "secrets-files": "hub="}.items():
        assert completed(root, f"gangplan new job --team cv --{flag} ") == [name]


def _parameters() -> Iterator[tuple[str, Any]]:
    """Yield every flag and argument with its command."""
    rest: list[tuple[str, Any]] = [
        ("", typer.main.get_command(tree.add_all_commands(typer.Typer(add_completion=False))))
    ]
    for path, command in rest:
        if isinstance(command, typer.core.TyperGroup):
            rest += [(f"{path} {name}".strip(), inner) for name, inner in command.commands.items()]
        else:
            yield from ((path, one) for one in command.get_params(typer.Context(command)))


def test_tab_offers_the_words_that_the_help_lists() -> None:
    """Each flag without its own completion function offers them, and never a word of a sentence."""
    found = set()
    for _, one in _parameters():
        if one._custom_shell_complete is None:
            offered = one.shell_complete(typer.Context(typer.core.TyperCommand("x")), "")
            found |= {(one.opts[0], *(word.value for word in offered if word.type == "plain"))}
    assert sorted(each for each in found if each[1:]) == [
        ("--accelerator", "nvidia", "amd", "none"),
        ("--algorithm", "grid", "random", "tpe", "multivariate-tpe"),
        ("--arch", "amd64", "arm64"),
        ("--by", "run", "team", "cluster", "pool", "month"),
        ("--color", "auto", "always", "never"),
        ("--engine", "auto", "serial", "process", "mpi"),
        ("--fail-on", "error", "warning", "note"),
        ("--forge", "github", "gitlab"),
        ("--forge", "github", "gitlab", "none"),
        ("--format", "table", "csv", "json"),
        ("--format", "table", "json"),
        ("--format", "text", "json"),
        ("--format", "text", "json", "markdown"),
        ("--format", "text", "json", "sarif", "junit", "github", "gitlab", "markdown"),
        ("--goal", "minimize", "maximize"),
        ("--provider", "aws", "azure", "gcp", "github"),
        ("--start", "pac", "triggers"),
        ("--sync", "kubeconfig", "in-cluster"),
        ("--wait", "argocd", "flux"),
        ("names", "kustomize", "kubeconform"),
    ]


def test_the_install_page_names_every_command_that_connects() -> None:
    """It names every command that may ask a cluster or a registry or that downloads, and every extra."""
    top, *parts = " ".join((REPOSITORY / "docs/install.md").read_text(encoding="utf-8").split()).split("## ")
    (clusters,) = (part for part in parts if part.startswith("For looking at clusters"))
    flags: dict[str, list[str]] = {}
    for path, one in _parameters():
        flags.setdefault(path, []).append(one.opts[0])
    asking = [path for path, own in flags.items() if "--kubeconfig" in own]
    assert len(asking) == 7
    for path in asking:
        asks = [flag for flag in flags[path] if flag in ("--server", "--from-cluster")]
        assert f"`{' '.join([path, *asks])}`" in clusters
    ours = (REPOSITORY / "gangplan/commands").glob("*.py")
    registries = [one.stem.replace("_", " ") for one in ours if "gangplan.oci" in one.read_text("utf-8")]
    assert registries
    for command in (*registries, "tools install", "report comment"):
        assert f"`{command}`" in top
    extras = tomllib.loads((REPOSITORY / "pyproject.toml").read_text("utf-8"))["project"][
        "optional-dependencies"
    ]
    for extra in set(extras) - {"build", "dev"}:
        assert any(f'pip install "gangplan[{extra}]==' in part for part in parts)


def test_tab_is_silent_outside_a_workspace(tmp_path: Path) -> None:
    assert completed(tmp_path, "gangplan validate --cluster ") == []
    assert completed(tmp_path, "gangplan validate sp") == []


def test_many_files_complete_by_their_folders(tmp_path: Path) -> None:
    write(tmp_path, {f"specs/team-{team}/job-{job}.yaml": SPEC for team in range(3) for job in range(50)})
    write(tmp_path, {"overlays/lab/cluster.yaml": CLUSTER})
    assert completed(tmp_path, "gangplan plan spe") == ["specs/"]
    assert completed(tmp_path, "gangplan plan specs/team-1/job-4")[0] == "specs/team-1/job-4.yaml"
    assert completed(tmp_path, "gangplan plan specs/") == ["specs/team-0/", "specs/team-1/", "specs/team-2/"]


def test_lists_are_known_to_the_command_line() -> None:
    assert LISTS == NAMES
    for name in LISTS:
        assert gangplan("list", name, "-C", REPOSITORY).code == Exit.CLEAN


def test_the_table_of_commands_is_complete() -> None:
    """A command that the table lacks would never be found."""
    found = set()
    for name in set(tree.COMMAND_MODULES.values()):
        part = import_module(f"gangplan.commands.{name}").app
        if name not in {tree.COMMAND_MODULES[group] for group in tree.COMMAND_GROUPS}:
            found |= {tree.name_of(info) for info in part.registered_commands}
    assert found | tree.COMMAND_GROUPS == set(tree.COMMAND_MODULES)
    assert {path.stem for path in (REPOSITORY / "gangplan/commands").glob("*_app.py")} <= set(
        tree.COMMAND_MODULES.values()
    )


def test_verbose_explains_each_rule_once(root: Path) -> None:
    """The reasons follow the findings, also with -q, and never appear in a report for machines."""
    spec = root / "specs/nlp/filings.yaml"
    spec.write_text(spec.read_text() + "env: {CUDA_VISIBLE_DEVICES: '0', ROCR_VISIBLE_DEVICES: '0', A: $B}\n")
    why = load_shipped_rules()["gpus-hidden"].why
    plain = gangplan("validate", "-C", root)
    verbose = gangplan("validate", "-C", root, "-v")
    assert why not in plain.err
    assert verbose.err.startswith(plain.err)
    told = verbose.err.removeprefix(plain.err)
    assert told.count(f"gpus-hidden: {why}\n") == 1
    assert told.count("\nenv-literal: ") == 1
    assert verbose.code == plain.code
    as_json = gangplan("validate", "-C", root, "-v", "--format", "json")
    assert why not in as_json.out + as_json.err
    assert f"gpus-hidden: {why}\n" in gangplan("validate", "-C", root, "-qv").err


def test_verbose_names_each_file(root: Path) -> None:
    first = gangplan("render", "-C", root, "-v").out.splitlines()
    files = sorted(path.relative_to(root).as_posix() for path in (root / "rendered").rglob("*.yaml"))
    assert first[:-1] == [f"  new     {file}" for file in files]
    spec = root / "specs/nlp/filings.yaml"
    spec.write_text(spec.read_text().replace("workers: 4", "workers: 2"))
    said = [line.split()[0] for line in gangplan("render", "-C", root, "-v").out.splitlines()[:-1]]
    assert sorted(set(said)) == ["new", "removed", "same"]
    assert gangplan("render", "-C", root).out.count("\n") == 1
    assert gangplan("render", "-C", root, "-qv").out == ""


def test_a_terminal_shows_the_next_step_once(root: Path) -> None:
    with Terminal("render", cwd=root) as terminal:
        terminal.expect("next: gangplan validate, then commit specs/ and rendered/ together")
        assert terminal.end() == Exit.CLEAN
    assert "next:" not in gangplan("render", "-C", root).out
    with Terminal("render", cwd=root) as terminal:
        assert terminal.end() == Exit.CLEAN
        assert "next:" not in terminal.seen


def test_schemas_are_known_to_the_command_line() -> None:
    assert (*list_format_models(), FINDINGS_SCHEMA, PLAN_SCHEMA, IMPORT_SCHEMA) == schema_app._KINDS
    for kind in schema_app._KINDS:
        assert gangplan("schema", "print", kind).code == Exit.CLEAN


def test_helps_name_lists_that_exist() -> None:
    texts = [path.read_text(encoding="utf-8") for path in (REPOSITORY / "gangplan").rglob("*.py")]
    named = {name for text in texts for name in re.findall(r"gangplan list ([a-z]+)", text)}
    assert {"claims", "specs"} <= named <= {*NAMES}
