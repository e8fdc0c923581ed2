"""Files that record how they were made: written, compared, made again; files of people are left alone."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from gangplan.errors import Exit
from gangplan.gitops.argocd import ArgoOptions
from gangplan.gitops.made import parse_gitops_command_header
from gangplan.gitops.settings import build_argocd_settings
from gangplan.source import load_objects
from tests import plain, workspaces
from tests.gitops.scripts import git
from tests.lab import build, programs
from tests.workspaces import gangplan, tree, write

URL = "https://git.example.com/ml/jobs.git"
IMAGE = "registry.example.com/gangplan@sha256:" + "1" * 64


@pytest.fixture
def rendered(root: Path) -> Path:
    """Render the small workspace."""
    workspaces.render(root)
    return root


COMMANDS = {
    "argocd": ("--repo", URL),
    "argocd in full": (
        *("--repo", URL, "--revision", "trunk", "--namespace", "gitops", "--prefix", "ml", "--retries", "0"),
        *("--destination", "lab=prod eu", "--notify", "slack=ml-runs", "--notify", "email=a@example.com"),
        *("--plugin", IMAGE, "--cluster", "lab"),
    ),
    "flux": ("--repo", "oci://registry.example.com/ml/jobs", "--revision", "v1"),
    "tekton": ("--wait", "flux", "--branch", "trunk", "--image", IMAGE, "--namespace", "tools"),
    "tekton by triggers": ("--start", "triggers", "--forge", "gitlab", "--namespace", "tools"),
    "github": ("--branch", "trunk", "--python", "3.12", "--pin", f"actions/cache={'1' * 40}"),
    "gitlab": ("--image", IMAGE),
    "jenkins": ("--image", IMAGE, "--prefix", "ml/jobs"),
    "codeowners": ("--organisation", "acme", "--owner", "nlp=@acme/language team@acme"),
}


@pytest.mark.parametrize("name", COMMANDS)
def test_files_record_the_command_that_makes_them_again(name: str, rendered: Path, tmp_path: Path) -> None:
    word, flags = name.split()[0], COMMANDS[name]
    for folder in ("a", "b"):
        outcome = gangplan("gitops", word, "-C", rendered, "-o", tmp_path / folder, *flags)
        assert outcome.code == Exit.CLEAN, outcome.err
    assert tree(tmp_path / "a") == tree(tmp_path / "b")
    words = {
        tuple(parse_gitops_command_header(data.decode()) or ()) for data in tree(tmp_path / "a").values()
    }
    (found,) = words
    assert set(zip(flags[::2], flags[1::2], strict=True)) <= set(zip(found[1::2], found[2::2], strict=True))
    again = gangplan("gitops", *found, "-C", rendered, "-o", tmp_path / "a", "--check")
    assert (again.code, again.out) == (Exit.CLEAN, ""), again.err
    assert str(tmp_path) not in "".join(data.decode() for data in tree(tmp_path / "a").values())


def test_differing_files_are_named(rendered: Path, tmp_path: Path) -> None:
    out = tmp_path / "argocd"
    command = ("gitops", "argocd", "-C", rendered, "--repo", URL, "-o", out)
    assert gangplan(*command).code == Exit.CLEAN
    (out / "gone.yaml").write_text((out / "lab.yaml").read_text())
    (out / "people.yaml").write_text("kind: AppProject\n")
    (out / "lab.yaml").write_text((out / "lab.yaml").read_text().replace("limit: 5", "limit: 6"))
    (out / "settings/argocd-cm.yaml").unlink()
    outcome = gangplan(*command, "--check")
    assert outcome.code == Exit.FINDINGS
    assert outcome.out == (
        f"{out}/lab.yaml is stale\n{out}/settings/argocd-cm.yaml is missing\n"
        f"{out}/gone.yaml is left over: remove it\n"
        f"2 files to write again: gangplan gitops argocd --repo {URL} -o {out}\n"
        f"1 file to remove: git rm {out}/gone.yaml\n"
    )
    assert gangplan(*command).out.endswith(f"{out}/gone.yaml is left over: remove it\n")
    assert (out / "gone.yaml").is_file()
    assert (out / "people.yaml").read_text() == "kind: AppProject\n"


@pytest.mark.parametrize("is_link", [False, True])
def test_files_of_people_are_not_overwritten(is_link: bool, rendered: Path, tmp_path: Path) -> None:
    file = tmp_path / "CODEOWNERS"
    if is_link:
        (tmp_path / "other").write_text("# Made by `gangplan gitops codeowners`; see docs/gitops.md.\n")
        file.symlink_to("other")
    else:
        file.write_text("* @acme/all\n")
    before = file.read_text()
    outcome = gangplan("gitops", "codeowners", "-C", rendered, "-o", tmp_path)
    assert (outcome.code, file.read_text()) == (Exit.INPUT, before)
    assert outcome.err.startswith("fatal: nothing was written: ")


def test_check_compares_everything_that_was_made(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    root = tmp_path / "ml/jobs"
    workspaces.render(workspaces.stock(root))
    check = ("gitops", "check", "-C", root)
    assert gangplan(*check).out == "nothing was made by `gangplan gitops`\n"
    (tmp_path / "Jenkinsfile").write_text("pipeline {}\n")  # written by a person; it gets an owner
    made = [("argocd", root / "argocd", "--repo", URL), ("github", tmp_path), ("codeowners", tmp_path)]
    for name, folder, *flags in made:
        assert gangplan("gitops", name, "-C", root, "-o", folder, *flags).code == Exit.CLEAN
    outcome = gangplan(*check)
    assert (outcome.code, outcome.out) == (Exit.CLEAN, "3 made by `gangplan gitops`, all fresh\n"), (
        outcome.err
    )
    write(root, {"specs/vision/team.yaml": workspaces.TEAM})
    write(root, {"overlays/lab/cluster.yaml": workspaces.CLUSTER + "  vision: {queue: training}\n"})
    outcome = gangplan(*check)
    assert outcome.code == Exit.FINDINGS
    assert "argocd/lab.yaml is stale\n" in outcome.out
    assert "CODEOWNERS is stale\n" in outcome.out


def test_an_unknown_command_in_a_file_is_refused(rendered: Path) -> None:
    write(rendered, {"argocd/a.yaml": "# Made by `gangplan gitops ../cache clear`; see docs/gitops.md.\n"})
    outcome = gangplan("gitops", "check", "-C", rendered)
    assert outcome.code == Exit.INPUT
    assert "says that `gangplan gitops ../cache clear` made it" in outcome.err


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("nothing", "argocd/a.yaml says that `gangplan gitops nothing` made it"),
        ("argocd --nothing", "argocd/a.yaml is refused: No such option: --nothing"),
        ("argocd --retries x", "argocd/a.yaml is refused: Invalid value for '--retries'"),
    ],
)
def test_a_file_with_an_unknown_command_does_not_stop_the_comparison(
    rendered: Path, line: str, said: str
) -> None:
    assert (
        gangplan("gitops", "flux", "-C", rendered, "-o", rendered / "flux", "--repo", URL).code == Exit.CLEAN
    )
    (stale,) = (one for one in (rendered / "flux").iterdir() if one.name.startswith("lab"))
    stale.write_text(stale.read_text() + "# changed\n")
    write(rendered, {"argocd/a.yaml": f"# Made by `gangplan gitops {line}`; see docs/gitops.md.\n"})
    outcome = gangplan("gitops", "check", "-C", rendered)
    assert outcome.code == Exit.INPUT
    assert said in outcome.err
    assert f"flux/{stale.name} is stale" in outcome.out


def test_codeowners_name_every_team_and_the_platform(rendered: Path) -> None:
    flags = ("--organisation", "acme", "--owner", "platform=@acme/ops", "--prefix", "ml")
    text = gangplan("gitops", "codeowners", "-C", rendered, *flags).out
    owners = dict(line.split() for line in text.splitlines() if line[:1] == "/")
    assert owners["/ml/specs/nlp/"] == "@acme/nlp"
    assert {owners[path] for path in ("/ml/overlays/", "/ml/policies/", "/.github/", "/CODEOWNERS")} == {
        "@acme/ops"
    }
    outcome = gangplan("gitops", "codeowners", "-C", rendered, "--owner", "nip=@a")
    assert (outcome.code, "there is no team 'nip'" in outcome.err) == (Exit.INPUT, True)


@pytest.mark.parametrize("prefix", ["", "ml/jobs"])
def test_the_platform_owns_every_file_of_ci(prefix: str, tmp_path: Path) -> None:
    """A file that CI reads decides what runs, on every forge, and also where there was none."""
    git(tmp_path, "init", "-q")
    root = workspaces.stock(tmp_path / prefix)
    out = tmp_path / "out"
    for name, flags in {"github": (), "gitlab": (), "jenkins": (), "tekton": ("--wait", "argocd")}.items():
        assert gangplan("gitops", name, "-C", root, "-o", out, *flags).code == Exit.CLEAN
    text = gangplan("gitops", "codeowners", "-C", root, "--organisation", "acme").out
    owners = dict(line.split() for line in text.splitlines() if line[:1] == "/")
    written = [f"/{path.relative_to(out).as_posix()}" for path in out.rglob("*") if path.is_file()]
    assert len(written) >= 10
    for path in written:
        decides = [row for row in owners if path == row or (row[-1] == "/" and path.startswith(row))]
        assert [owners[row] for row in decides] == ["@acme/platform"], path


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (("--destination", "lab"), "--destination lab: not of the form us-cloud=prod-us"),
        (("--destination", "leb=a"), "there is no cluster 'leb'"),
        (("--notify", "slack"), "Write --notify slack=ml-runs."),
        (("--plugin", "registry.example.com/gangplan:1"), "a tag can be moved to another image"),
        (("--cluster", "leb"), "there is no cluster 'leb'"),
    ],
)
def test_invalid_flags_are_refused(flags: tuple[str, ...], said: str, rendered: Path) -> None:
    outcome = gangplan("gitops", "argocd", "-C", rendered, "--repo", URL, *flags)
    assert (outcome.code, outcome.out) == (Exit.INPUT, "")
    assert said in outcome.err


# Argo CD's own settings


def test_settings_contain_only_our_keys() -> None:
    files = build_argocd_settings("argocd", ArgoOptions(recipients=(("slack", "a"),)), IMAGE)
    assert sorted(files) == ["argocd-cm.yaml", "argocd-notifications-cm.yaml", "plugin.yaml"]
    keys = [key for bodies in files.values() for body in bodies for key in body.get("data", ())]
    assert all(
        "gangplan" in key or key.startswith("resource.customizations.health.") or key == "plugin.yaml"
        for key in keys
    )
    kinds = {key.rsplit(".", 1)[1].split("_")[1] for key in keys if key.startswith("resource.")}
    assert kinds == {"Application", "ClusterQueue", "JobSet", "LocalQueue", "MPIJob", "TrainJob", "Workload"}
    (sidecar,) = files["plugin.yaml"][1]["spec"]["template"]["spec"]["containers"]
    assert sidecar["image"] == IMAGE
    assert sidecar["securityContext"]["runAsUser"] == 999
    for name in ("trigger", "template"):
        for key, text in files["argocd-notifications-cm.yaml"][0]["data"].items():
            if key.startswith(f"{name}."):
                assert plain.load(text)


@pytest.mark.parametrize("case", ["fresh", "stale", "no runs"])
def test_the_plugin_prints_only_a_fresh_tree(case: str, rendered: Path, tmp_path: Path) -> None:
    from tests.gitops import scripts

    bodies = build_argocd_settings("argocd", ArgoOptions(has_plugin=True), IMAGE)["plugin.yaml"]
    generate = plain.load(bodies[0]["data"]["plugin.yaml"])["spec"]["generate"]
    assert generate["command"] == ["sh", "-euc"]
    folder = "runs/nlp" if case != "no runs" else "runs/vision"
    if case == "stale":
        write(rendered, {"specs/nlp/filings.yaml": workspaces.SPEC.replace("workers: 4", "workers: 3")})
    variables = {"PARAM_CLUSTER": "lab", "PARAM_FOLDER": folder}
    tools = scripts.program(tmp_path / "tools")
    done = scripts.run(generate["args"][0], rendered, variables, "sh", tools)
    assert done.returncode == (Exit.FINDINGS if case == "stale" else Exit.CLEAN), done.stderr
    kinds = [body["kind"] for body in load_objects(done.stdout)]
    wanted = sorted((rendered / "rendered/lab" / folder).glob("*.yaml")) if case == "fresh" else []
    assert kinds == [body["kind"] for file in wanted for body in load_objects(file.read_text())]
    assert shlex.split(variables["PARAM_FOLDER"]) == [folder]


def closed(schema: Any) -> Any:
    """Close a schema of a CRD to fields that it does not name; the API server prunes them."""
    if isinstance(schema, list):
        return [closed(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    found = {key: closed(value) for key, value in schema.items()}
    if isinstance(schema.get("properties"), dict) and not schema.get("x-kubernetes-preserve-unknown-fields"):
        found.setdefault("additionalProperties", False)
    return found


@pytest.mark.e2e
@pytest.mark.parametrize("name", [name for name in COMMANDS if name.startswith("argocd")])
def test_argo_cd_s_own_schemas_accept_what_is_written(name: str, rendered: Path, tmp_path: Path) -> None:
    if build.missing([programs.ARGOCD]):
        pytest.skip("the lab's Argo CD, which has the schemas, is not built (make lab)")
    manifests = json.loads((build.home(programs.ARGOCD) / "manifests.json").read_text())
    schemas = {
        one["spec"]["names"]["kind"]: closed(one["spec"]["versions"][0]["schema"]["openAPIV3Schema"])
        for one in manifests
        if one["kind"] == "CustomResourceDefinition"
    }
    gangplan("gitops", "argocd", "-C", rendered, "-o", tmp_path, *COMMANDS[name])
    bodies = load_objects((tmp_path / "lab.yaml").read_text())
    assert {body["kind"] for body in bodies} == {"AppProject", "Application"}
    for body in bodies:
        spec = schemas[body["kind"]]["properties"]["spec"]
        assert [one.message for one in jsonschema.Draft202012Validator(spec).iter_errors(body["spec"])] == []


def test_files_of_another_workspace_are_not_overwritten(rendered: Path, tmp_path: Path) -> None:
    """Two workspaces of one repository share one CODEOWNERS: the second leaves the owners of the first."""
    top = tmp_path / "top"
    owners = ("gitops", "codeowners", "--organisation", "ml", "-C", rendered, "-o", top)
    assert gangplan(*owners, "--prefix", "ml/jobs").code == Exit.CLEAN
    before = tree(top)
    second = gangplan(*owners, "--prefix", "ml/jobs2")
    assert second.code == Exit.INPUT
    assert "CODEOWNERS is that of the workspace in ml/jobs\n" in second.err
    third = gangplan(*owners)
    assert (third.code, tree(top)) == (Exit.INPUT, before)
    assert gangplan(*owners, "--prefix", "ml/jobs").code == Exit.CLEAN
