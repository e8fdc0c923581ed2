"""`gangplan init`: a new workspace passes all checks in a real Git repository, and nothing is overwritten."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import time
from pathlib import Path

import pytest

from gangplan.errors import Exit
from gangplan.reference.schemas import build_editor_schema, list_format_models
from gangplan.starter import write as writing
from gangplan.starter.answers import STARTER_ENGINES, STARTER_FORGES
from tests import plain
from tests.start.terminal import Terminal
from tests.workspaces import REPOSITORY, Outcome, gangplan, tree

ONE = ("--team", "nlp", "--cluster", "lab")
CI = {"github": ".github/workflows/gangplan.yaml", "gitlab": ".gitlab-ci.yml"}
ENVIRONMENT = {
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_AUTHOR_NAME": "a",
    "GIT_AUTHOR_EMAIL": "a@example.com",
    "GIT_COMMITTER_NAME": "a",
    "GIT_COMMITTER_EMAIL": "a@example.com",
}


def git(root: Path, *arguments: str) -> str:
    """Return what Git prints in a repository, without any user's settings."""
    done = subprocess.run(
        ["git", *arguments],
        cwd=root,
        env={**os.environ, **ENVIRONMENT},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


def begin(root: Path, *arguments: str) -> Outcome:
    """Create a workspace with `init` and require success."""
    outcome = gangplan("init", root, *arguments)
    assert outcome.code == Exit.CLEAN, outcome.err
    return outcome


# Every combination of forge and engine, the large sample once with each of them, and other accelerators.
NEW = [(forge, sync, ONE) for forge in STARTER_FORGES for sync in STARTER_ENGINES]
NEW += [
    (forge, sync, ("--sample",))
    for forge, sync in zip((*STARTER_FORGES, "none"), STARTER_ENGINES, strict=True)
]
NEW += [("none", "none", (*ONE, "--accelerator", kind)) for kind in ("amd", "none")]


@pytest.mark.parametrize(("forge", "sync", "what"), NEW)
def test_a_new_workspace_passes_all_checks_in_git(
    forge: str, sync: str, what: tuple[str, ...], tmp_path: Path
) -> None:
    root = tmp_path / "jobs"
    begin(root, "--forge", forge, "--sync", sync, *what)
    git(tmp_path, "init", "-q", "-b", "main", "jobs")
    git(root, "add", ".")
    git(root, "commit", "-qm", "Begin")
    first = git(root, "rev-parse", "HEAD").strip()
    rendered = gangplan("render", "-C", root)
    assert (rendered.code, rendered.err) == (Exit.CLEAN, "")
    checked = gangplan("validate", "-C", root)
    assert (checked.code, checked.err) == (Exit.CLEAN, "")
    assert gangplan("validate", "-C", root, "--base", first).code == Exit.CLEAN
    assert not git(root, "status", "--porcelain", "--ignored", ".gangplan").startswith("??")
    git(root, "add", ".")
    git(root, "commit", "-qm", "Render")
    clone = tmp_path / "clone"
    git(tmp_path, "clone", "-q", "jobs", "clone")
    assert gangplan("render", "-C", clone, "--check").code == Exit.CLEAN
    assert git(clone, "status", "--porcelain") == ""
    assert [name for name in CI.values() if (root / name).exists()] == ([CI[forge]] if forge in CI else [])
    steps = re.findall(r"(?m)^(\d)\. ", (root / "README.md").read_text())
    assert steps == ["1", "2", "3", "4", "5"]
    _check_names((root / "README.md").read_text(), root)
    fresh = gangplan("gitops", "check", "-C", root)
    assert (fresh.code, fresh.err) == (Exit.CLEAN, "")
    if sync != "none":
        url = "https://git.example.com/ml/jobs.git"
        more = ("--forge", forge, "--sync", "kubeconfig") if sync == "tekton" else ("--repo", url)
        made = gangplan("gitops", sync, "-C", root, *more, "-o", tmp_path / "made")
        assert made.code == Exit.CLEAN, made.err
        parts = (
            (tmp_path / "made/.tekton", root / ".tekton")
            if sync == "tekton"
            else (tmp_path / "made", root / sync)
        )
        assert tree(parts[0]) == tree(parts[1])


def _check_names(text: str, root: Path) -> None:
    """Check that every file and every command that a README names exists."""
    names = re.findall(r"`([a-z.]+/[a-z./-]+)`|-f (\S+?)`", text)
    assert len(names) >= 3
    for name in names:
        path = next(one for one in name if one)
        assert (root / path).exists() or (root / "rendered/lab" / path).exists(), path
    for command in re.findall(r"`gangplan ([a-z]+)", text):
        assert gangplan(command, "--help").code == Exit.CLEAN, command


def test_the_next_step_is_printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    out = begin(Path("my jobs"), *ONE).out
    assert "\nnext: cd 'my jobs' && gangplan render && gangplan validate\n" in out
    assert out.startswith("wrote 27 files in my jobs:\n")
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    assert "\nnext: gangplan render && gangplan validate\n" in begin(Path("."), *ONE).out
    assert begin(tmp_path / "quiet", *ONE, "-q").out == ""


def test_the_first_job_is_short_and_explains_itself(tmp_path: Path) -> None:
    begin(tmp_path, *ONE)
    lines = (tmp_path / "specs/nlp/quickstart.yaml").read_text().splitlines()
    fields = [line for line in lines if not line.startswith("#")]
    assert len(fields) <= 10
    assert sum("#" in line for line in lines) >= 5


def test_the_first_run_is_short(tmp_path: Path) -> None:
    begin(tmp_path, *ONE)
    assert gangplan("render", "-C", tmp_path).code == Exit.CLEAN
    (run,) = tmp_path.glob("rendered/lab/runs/nlp/quickstart-*.yaml")
    assert len(run.read_text().splitlines()) <= 200


def test_the_first_program_is_that_of_the_reference_images(tmp_path: Path) -> None:
    """The image of the first job contains it, so that a laptop and a cluster run the same lines."""
    program = "images/programs/allreduce.py"
    begin(tmp_path, *ONE)
    assert (tmp_path / program).read_bytes() == (REPOSITORY / program).read_bytes()


def test_editors_get_the_schema_of_every_format(tmp_path: Path) -> None:
    begin(tmp_path, "--sample")
    for kind in list_format_models():
        assert json.loads((tmp_path / f".vscode/schemas/{kind}.json").read_text()) == build_editor_schema(
            kind
        )
    for file in [*tmp_path.glob("specs/*/*.yaml"), *tmp_path.glob("overlays/*/*.yaml")]:
        named = re.match(r"# yaml-language-server: \$schema=(\S+)\n", file.read_text())
        assert named, file
        assert (file.parent / named[1]).resolve().parent == (tmp_path / ".vscode/schemas").resolve()
        assert (file.parent / named[1]).is_file()
    settings = json.loads((tmp_path / ".vscode/settings.json").read_text())
    for schema, patterns in settings["yaml.schemas"].items():
        assert (tmp_path / schema).is_file()
        assert all(not pattern.startswith("/") for pattern in patterns)
    settings = {pattern: schema for schema, names in settings["yaml.schemas"].items() for pattern in names}
    assert settings["specs/*/team.yaml"] == "./.vscode/schemas/team.json"


def test_git_attributes_mark_generated_files(tmp_path: Path) -> None:
    for forge, generated in (("github", "linguist-generated"), ("gitlab", "gitlab-generated")):
        root = tmp_path / forge
        begin(root, *ONE, "--forge", forge)
        git(root, "init", "-q")
        said = git(root, "check-attr", generated, "diff", "eol", "--", "rendered/a.yaml")
        assert re.search(rf"{generated}: (set|true)\n", said), said
        assert "diff: unspecified" in said  # reviewers should see what will be applied
        assert "eol: lf" in said
        said = git(root, "check-attr", generated, "diff", "--", ".vscode/schemas/spec.json")
        assert "diff: unset" in said


def test_this_repository_has_the_git_attributes_of_a_new_workspace(tmp_path: Path) -> None:
    begin(tmp_path, *ONE, "--forge", "github")
    lines = (REPOSITORY / ".gitattributes").read_text().splitlines()
    wanted = [
        line for line in (tmp_path / ".gitattributes").read_text().splitlines() if ".vscode" not in line
    ]
    assert any(line.startswith("rendered/**") for line in wanted)
    assert lines[: len(wanted)] == wanted


def test_ci_has_minimal_permissions_and_the_given_branch(tmp_path: Path) -> None:
    begin(tmp_path / "a", *ONE, "--forge", "github", "--branch", "trunk")
    workflow = plain.load((tmp_path / "a" / CI["github"]).read_text())
    assert workflow["permissions"] == {}
    assert workflow[True]["push"]["branches"] == ["trunk"]
    for job in ("check", "plan"):
        assert workflow["jobs"][job]["permissions"] == {"contents": "read"}
    begin(tmp_path / "b", *ONE, "--forge", "gitlab")
    pipeline = plain.load((tmp_path / "b" / CI["gitlab"]).read_text())
    assert pipeline["include"][0]["local"] == "/.gitlab/gangplan.yml"
    assert (tmp_path / "b/.gitlab/gangplan.yml").is_file()


def test_every_folder_has_an_owner(tmp_path: Path) -> None:
    begin(tmp_path, "--sample", "--repo", "git@git.example.com:acme/jobs.git")
    rows = [line.split() for line in (tmp_path / "CODEOWNERS").read_text().splitlines() if line[:1] == "/"]
    owners = dict(map(tuple, rows))
    assert owners["/specs/nlp/"] == "@acme/nlp"
    assert owners["/specs/vision/"] == "@acme/vision"
    for path in ("/overlays/", "/images/", "/policies/", "/schemas/", "/.github/", "/argocd/", "/CODEOWNERS"):
        assert owners[path] == "@acme/platform"


def test_the_engine_reads_the_remote_without_its_credentials(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    git(tmp_path, "remote", "add", "origin", "https://me:secret@gitlab.example.com/ml/jobs.git")
    begin(tmp_path, *ONE)
    text = (tmp_path / "argocd/lab.yaml").read_text()
    assert "repoURL: https://gitlab.example.com/ml/jobs.git\n" in text
    written = [data for path, data in tree(tmp_path).items() if not path.startswith(".git/")]
    assert not any(b"me:secret" in data or b"secret@" in data for data in written)
    assert (tmp_path / CI["gitlab"]).is_file()


def test_a_workspace_inside_a_repository_knows_its_folder(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    root = tmp_path / "ml/jobs"
    said = begin(root, *ONE).out
    assert "gangplan gitops write: CI and CODEOWNERS go to the top of the repository" in said
    assert "path: ml/jobs/rendered/lab/platform" in (root / "argocd/lab.yaml").read_text()
    assert "  prefix: ml/jobs\n" in (root / "gangplan.yaml").read_text()
    assert not (root / CI["github"]).exists()


def test_ci_and_sync_engines_refuse_a_folder_with_a_blank(tmp_path: Path) -> None:
    """CI and sync engines cannot name it; without both, the workspace has hooks that find the folder."""
    git(tmp_path, "init", "-q")
    root = tmp_path / "ml ops/größe"
    outcome = gangplan("init", root, *ONE)
    assert outcome.code == Exit.INPUT
    assert "'ml ops/größe' cannot be the folder of a workspace" in outcome.err
    assert "such as ml-ops/grosse, or write --forge none --sync none." in outcome.err
    assert "--prefix" not in outcome.err
    assert not root.exists()
    for engines in (("--forge", "none"), ("--sync", "none")):
        assert gangplan("init", root, *ONE, *engines).code == Exit.INPUT
    begin(root, *ONE, "--forge", "none", "--sync", "none")
    hooks = plain.load((root / ".pre-commit-config.yaml").read_text())["repos"][0]["hooks"]
    assert shlex.split(hooks[0]["entry"]) == ["gangplan", "validate", "-C", "ml ops/größe"]
    assert re.match(hooks[0]["files"], "ml ops/größe/specs/nlp/team.yaml")
    assert not (root / "CODEOWNERS").exists()
    assert gangplan("render", "-C", root).code == Exit.CLEAN
    for command in (("validate",), ("gitops", "check")):
        assert (gangplan(*command, "-C", root).code, command) == (Exit.CLEAN, command)
    outcome = gangplan("init", tmp_path / "a\nb", *ONE, "--forge", "none", "--sync", "none")
    assert (outcome.code, "such as a-b.\n" in outcome.err) == (Exit.INPUT, True), outcome.err


@pytest.mark.parametrize("forge", ["github", "gitlab"])
def test_ci_of_a_workspace_inside_a_repository_goes_to_its_top(forge: str, tmp_path: Path) -> None:
    """Forges read CI files and owners only there."""
    top = tmp_path / "repository"
    top.mkdir()
    git(top, "init", "-q")
    root = top / "ml/jobs"
    begin(root, *ONE, "--forge", forge)
    assert gangplan("render", "-C", root).code == Exit.CLEAN
    outcome = gangplan("gitops", "write", "-C", root)
    assert outcome.code == Exit.CLEAN, outcome.err
    assert "/ml/jobs/specs/nlp/" in (top / "CODEOWNERS").read_text()
    recipe = (top / CI[forge]).read_text()
    assert recipe.startswith(f"# Made by `gangplan gitops {forge} --prefix ml/jobs`;")
    assert "workspace: ml/jobs\n" in recipe
    assert not any((root / path).exists() for path in (CI[forge], "CODEOWNERS"))
    assert gangplan("gitops", "check", "-C", root).out.endswith("all fresh\n")


def test_flux_gets_an_address_that_it_can_read(tmp_path: Path) -> None:
    begin(tmp_path, *ONE, "--sync", "flux", "--repo", "git@git.example.com:acme/jobs.git")
    text = (tmp_path / "flux/lab.yaml").read_text()
    assert "url: ssh://git@git.example.com/acme/jobs.git\n" in text.replace('"', "")


# Nothing is overwritten, and either all files are written or none


def test_existing_files_are_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("mine\n")
    (tmp_path / ".gitignore").symlink_to("nowhere")
    outcome = gangplan("init", tmp_path, *ONE)
    assert outcome.code == Exit.INPUT
    assert outcome.err.startswith(
        "fatal: nothing was written: .gitignore, README.md would be overwritten\n  help: "
    )
    assert sorted(os.listdir(tmp_path)) == [".gitignore", "README.md"]
    kept = begin(tmp_path, *ONE, "--keep")
    assert "kept README.md as it is" in kept.out
    assert (tmp_path / "README.md").read_text() == "mine\n"
    assert (tmp_path / ".gitignore").is_symlink()
    assert gangplan("render", "-C", tmp_path).code == Exit.CLEAN


def test_lines_that_kept_files_lack_are_printed(tmp_path: Path) -> None:
    (tmp_path / ".gitignore").write_text("# mine\n.venv\n*.sarif\n/gangplan.xml\nplan.md\n")
    (tmp_path / ".gitattributes").write_text("* text=auto eol=lf\n")
    (tmp_path / "requirements.txt").write_text("numpy\n")
    said = begin(tmp_path, *ONE, "--keep").out
    lines = "    .gangplan/\n    gangplan.sarif\n    gl-code-quality.json\n"
    assert f"kept .gitignore as it is; add these lines:\n{lines}kept requirements.txt as it is\n" in said
    assert "    rendered/** -merge linguist-generated=true\n" in said
    assert "to compare: the same command with another DIR" in said
    git(tmp_path, "init", "-q")
    with (tmp_path / ".gitignore").open("a") as file:
        file.write(lines.replace("    ", ""))
    gangplan("render", "-C", tmp_path)
    assert ".gangplan" not in git(tmp_path, "status", "--short")
    again = tmp_path.with_name(f"{tmp_path.name}-again")
    again.mkdir()
    (again / ".gitignore").write_text((tmp_path / ".gitignore").read_text())
    assert "kept .gitignore as it is\n" in begin(again, *ONE, "--keep").out


@pytest.mark.parametrize("name", ["specs", "overlays", "rendered"])
def test_init_refuses_an_existing_workspace(name: str, tmp_path: Path) -> None:
    (tmp_path / name).mkdir()
    outcome = gangplan("init", tmp_path, *ONE, "--keep")
    assert (outcome.code, sorted(os.listdir(tmp_path))) == (Exit.INPUT, [name])
    assert f"has {name}/ already" in outcome.err
    assert "It alone is not a workspace: move it away" in outcome.err
    for other in ("specs", "overlays"):
        (tmp_path / other).mkdir(exist_ok=True)
    assert "gangplan new job" in gangplan("init", tmp_path, *ONE).err


def test_init_refuses_a_folder_inside_a_workspace(tmp_path: Path) -> None:
    begin(tmp_path / "jobs", *ONE)
    for folder in ("sub", "sub/deeper", "specs/nlp/sub"):
        outcome = gangplan("init", tmp_path / "jobs" / folder, *ONE)
        assert (outcome.code, folder) == (Exit.INPUT, folder)
        assert (
            f"is inside the workspace {tmp_path / 'jobs'}\n  help: To add to that: gangplan new"
            in outcome.err
        )
        assert not (tmp_path / "jobs" / folder).exists()
    begin(tmp_path / "beside", *ONE)


def test_init_does_not_write_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    root = tmp_path / "jobs"
    root.mkdir()
    (root / "images").symlink_to(tmp_path / "elsewhere")
    outcome = gangplan("init", root, *ONE)
    assert outcome.code == Exit.INPUT
    assert "is a link; nothing was written" in outcome.err
    assert sorted(os.listdir(root)) == ["images"]
    assert not any((tmp_path / "elsewhere").iterdir())


@pytest.mark.parametrize("failing", [1, 4, 12])
def test_a_full_disk_leaves_no_new_files(
    failing: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "old.txt").write_text("old")
    real, calls = Path.open, []

    def opened(self: Path, mode: str = "r", *rest: object, **named: object) -> object:
        if mode == "xb" and self.is_relative_to(tmp_path / "jobs"):
            calls.append(self)
            if len(calls) == failing:
                raise OSError(28, "No space left on device", str(self))
        return real(self, mode, *rest, **named)  # type: ignore[call-overload]

    monkeypatch.setattr(writing.Path, "open", opened)
    outcome = gangplan("init", tmp_path / "jobs", *ONE)
    assert outcome.code == Exit.ENVIRONMENT
    assert outcome.err.startswith("fatal: nothing was written: ")
    assert "No space left on device\n  help: Free some space.\n" in outcome.err
    assert tree(tmp_path) == {"old.txt": b"old"}
    assert not (tmp_path / "jobs").exists()


# Answers


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--team", "nlp"], "--cluster is missing"),
        ([], "--team and --cluster are missing"),
        (["--team", "NLP Lab", "--cluster", "lab"], "\n  help: Write nlp-lab."),
        (["--team", "Ünï", "--cluster", "lab"], "\n  help: Write uni."),
        (["--team", "straße_2", "--cluster", "lab"], "\n  help: Write strasse-2."),
        (["--team", "日本n", "--cluster", "lab"], "\n  help: Use lower-case letters, digits"),
        (["--team", "nlp", "--forge", "gith", "--branch", "-x"], "--cluster is missing; there is no forge 'gith'; '-x' is not"),
        ([*ONE, "--forge", "gith", "--sync", "x", "--accelerator", "tpu"], "no forge 'gith'; there is no sync engine 'x'; there is no"),
        ([*ONE, "--forge", "gith", "--sync", "argo"], "--forge: Did you mean 'github'? --sync: Did you mean 'argocd'?\n"),
        (["--team", "kube-system", "--cluster", "lab"], "its namespace belongs to the platform"),
        (["--team", "../x", "--cluster", "lab"], "'../x' cannot be the name of a team"),
        (["--team", "123", "--cluster", "lab"], "and begin with a letter"),
        (["--team", "nlp", "--cluster", "a" * 64], "cannot be the name of a cluster"),
        ([*ONE, "--forge", "githup"], "there is no forge 'githup'\n  help: Did you mean 'github'?"),
        ([*ONE, "--sync", "jenkins"], "there is no sync engine 'jenkins'"),
        ([*ONE, "--accelerator", "nvida"], "there is no accelerator 'nvida'\n  help: Did you mean 'nvidia'?"),
        ([*ONE, "--context", "lab"], "--context and --kubeconfig are for --from-cluster"),
        (["--sample", "--accelerator", "amd"], "--sample is an example of its own"),
        (["--sample", "--from-cluster"], "--sample is an example of its own"),
        ([*ONE, "--repo", "here"], "'here' is not the address of a Git repository"),
        ([*ONE, "--branch", "-x"], "'-x' is not the name of a branch"),
        (["--sample", "--team", "vision"], "the sample has a team vision"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)  # fmt: skip
def test_invalid_flags_are_refused(flags: list[str], said: str, tmp_path: Path) -> None:
    outcome = gangplan("init", tmp_path / "jobs", *flags)
    assert outcome.code == Exit.INPUT
    assert said in outcome.err
    assert not (tmp_path / "jobs").exists()


@pytest.mark.parametrize("kind", ["job", "team", "image"])
def test_a_name_with_accents_is_refused_with_a_plain_suggestion(kind: str, tmp_path: Path) -> None:
    begin(tmp_path, *ONE)
    needed = {
        "job": ("--team", "nlp", "--image", "openmpi", "--command", "a"),
        "image": ("--repository", "a.example.com/b", "--digest", f"sha256:{'1' * 64}"),
    }
    outcome = gangplan("new", kind, "ünï", *needed.get(kind, ()), "-C", tmp_path)
    assert outcome.code == Exit.INPUT
    assert "'ünï' cannot be the name of a" in outcome.err
    assert "Write uni." in outcome.err


@pytest.mark.parametrize("name", ["on", "null", "y", "e3", "true"])
def test_names_that_yaml_reads_as_other_types_work(name: str, tmp_path: Path) -> None:
    begin(tmp_path, "--team", name, "--cluster", name)
    rendered = gangplan("render", "-C", tmp_path)
    assert (rendered.code, rendered.err) == (Exit.CLEAN, "")
    assert gangplan("validate", "-C", tmp_path).err == ""


# On a terminal


def test_questions_have_defaults_completion_and_checks(tmp_path: Path) -> None:
    with Terminal("init", "jobs", cwd=tmp_path) as terminal:
        terminal.expect("Forge (github, gitlab, none) [github]: ")
        terminal.type("gitl\t\r")
        terminal.expect("Sync engine (argocd, flux, tekton, none) [argocd]: ")
        terminal.type("\r")
        terminal.expect("Address of the Git repository")
        terminal.type("nowhere\r")
        terminal.expect("'nowhere' is not the address of a Git repository")
        terminal.expect("Address of the Git repository")
        terminal.type("https://git.example.com/acme/jobs.git\r")
        terminal.expect("First team: ")
        terminal.type("NLP\r")
        terminal.expect("'NLP' cannot be the name of a team. Write nlp.")
        terminal.type("nlp\r")
        terminal.expect("First cluster: ")
        terminal.type("lab\r")
        terminal.expect("GPUs (nvidia, amd, none) [nvidia]: ")
        terminal.type("a\t\r")
        terminal.expect("next: cd jobs && gangplan render && gangplan validate")
        assert terminal.end() == Exit.CLEAN
    assert (tmp_path / "jobs/.gitlab-ci.yml").is_file()
    assert "@acme/nlp" in (tmp_path / "jobs/CODEOWNERS").read_text()
    assert "amd.com/gpu" in (tmp_path / "jobs/overlays/lab/cluster.yaml").read_text()


def test_ctrl_c_and_ctrl_d_write_nothing(tmp_path: Path) -> None:
    for key in ("\x03", "\x04"):
        with Terminal("init", "jobs", cwd=tmp_path) as terminal:
            terminal.expect("[github]: ")
            time.sleep(0.3)  # Python's readline loses a signal that comes as it begins to wait
            terminal.type(key)
            terminal.expect("interrupted; nothing was changed")
            assert terminal.end() == Exit.INTERRUPTED
    assert not (tmp_path / "jobs").exists()
