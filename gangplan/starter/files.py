"""The files of a new workspace: path and text of each, from a few answers."""

from __future__ import annotations

import json
import re
import shlex
from typing import Any

from gangplan import __version__
from gangplan.delivery.stated import SETTINGS_FILE
from gangplan.gitops.ci import DEFAULT_BRANCH, is_recipe_folder
from gangplan.reference.schemas import build_editor_schema, list_format_models
from gangplan.starter.answers import WorkspaceAnswers
from gangplan.starter.readme import render_readme_of_new_workspace
from gangplan.starter.text import render_block_text
from gangplan.template import TEMPLATES_FOLDER, render_yaml
from gangplan.workspace import READ_FOLDERS

SCHEMAS = ".vscode/schemas"
# Files that --sample adds to those of every workspace.
_SAMPLE = {
    "specs/{team}/finetune.yaml": "sample/finetune.yaml.j2",
    "specs/vision/team.yaml": "sample/vision-team.yaml.j2",
    "specs/vision/resnet.yaml": "sample/resnet.yaml.j2",
    "specs/vision/camera.yaml": "sample/camera.yaml.j2",
    "overlays/cloud/cluster.yaml": "sample/cloud-cluster.yaml.j2",
}
# Examples of what is installed; the version of the sync engine is stated, too.
_VERSIONS = {"kubernetes": "1.34.4", "trainer": "2.3.0", "kueue": "0.19.2", "gpuOperator": "25.10.0"}
_SYNCED = {"argocd": "3.5.1", "flux": "2.9.0"}
_EXTENSIONS = {"recommendations": ["redhat.vscode-yaml", "editorconfig.editorconfig"]}
_EDITORCONFIG = """\
# https://editorconfig.org
root = true

[*]
charset = utf-8
end_of_line = lf
indent_style = space
indent_size = 2
insert_final_newline = true
trim_trailing_whitespace = true

# Written by gangplan, kept byte by byte.
[rendered/**]
insert_final_newline = unset
trim_trailing_whitespace = unset
"""
_IGNORE = """\
# What gangplan keeps between two commands, and reports of CI.
.gangplan/
gangplan.sarif
gangplan.xml
gl-code-quality.json
plan.md

.venv/
"""
_DELIVERY = """\
# What delivers this workspace: `gangplan gitops write` makes it, `gangplan gitops check` compares it.
apiVersion: gangplan.dev/v1
kind: Workspace
gitops:"""
_REQUIREMENTS = f"""\
# The gangplan of CI and of everybody: another version may render other bytes.
# Lock it with its hashes (uv pip compile --generate-hashes), and pip refuses any other file.
gangplan%s=={__version__}
"""
# Settings of engines that do not sync by default.
_SETTINGS = {"tekton": "{sync: kubeconfig}"}


def build_new_workspace_files(answers: WorkspaceAnswers) -> dict[str, str]:
    """Build all files except those that `gangplan gitops` writes, by path from the root."""
    values = {
        "team": answers.team,
        "teams": answers.teams,
        "cluster": answers.cluster,
        "sync": answers.sync,
        "branch": answers.branch,
        "is_sample": answers.is_sample,
        "accelerator": answers.accelerator,
    }
    files = {
        f"specs/{answers.team}/quickstart.yaml": render_yaml("workspace/job.yaml.j2", values),
        f"specs/{answers.team}/team.yaml": render_yaml("workspace/team.yaml.j2", values),
        f"overlays/{answers.cluster}/cluster.yaml": _render_new_workspace_cluster_file(answers, values),
        "images/catalog.yaml": render_yaml("workspace/catalog.yaml.j2", values),
        # `gangplan run` looks for the programs of images in this folder.
        "images/programs/allreduce.py": _read_starter_program(),
        ".pre-commit-config.yaml": _render_new_workspace_pre_commit_hooks(answers.prefix),
        ".editorconfig": _EDITORCONFIG,
        ".gitignore": _IGNORE,
        ".gitattributes": _format_new_workspace_git_attributes(answers),
        "requirements.txt": _REQUIREMENTS % ("[cluster]" if answers.sync == "tekton" else ""),
        "README.md": render_readme_of_new_workspace(answers),
        **_build_new_workspace_delivery_file(answers),
    }
    if answers.is_sample:
        for path, name in _SAMPLE.items():
            files[path.format(team=answers.team)] = render_yaml(name, values)
    return dict(sorted((files | _build_new_workspace_editor_files()).items()))


def _read_starter_program() -> str:
    """Return the program of the first job, which the image named by it would contain.

    It is not a template; its file ends with .j2 so that no tool takes it for a module of gangplan.
    """
    return (TEMPLATES_FOLDER / "workspace/allreduce.py.j2").read_text(encoding="utf-8")


def _render_new_workspace_cluster_file(answers: WorkspaceAnswers, values: dict[str, Any]) -> str:
    """Render the cluster's file: an example, or what was seen of a cluster."""
    seen = answers.seen
    versions = {**_VERSIONS, **seen.get("versions", {})}
    if seen or answers.accelerator != "nvidia":
        versions = {
            name: one
            for name, one in versions.items()
            if name != "gpuOperator" or name in seen.get("versions", {})
        }
    if answers.sync in _SYNCED:
        versions.setdefault(answers.sync, _SYNCED[answers.sync])
    more = {"seen": list(seen), "versions": versions, "queue": seen.get("queue", "training")}
    more |= {"region": seen.get("region", "eu-central"), "location": seen.get("location", "on-prem")}
    text = render_yaml("workspace/cluster.yaml.j2", {**values, **more})
    for name in ("nodePools", "storageClasses"):
        if name in seen:
            text = text.replace(f"  # {name}\n", render_block_text(seen[name], "  "))
    return text


def _build_new_workspace_editor_files() -> dict[str, str]:
    """Build the schemas of all file formats, and the settings that bind them to files."""
    files = {
        f"{SCHEMAS}/{kind}.json": _format_json_file(build_editor_schema(kind))
        for kind in list_format_models()
    }
    bound = {
        "spec": ["specs/*/**/*.yaml", "!specs/*/team.yaml", "!specs/**/files/**", "!specs/*/templates/**"],
        "template": ["jobtemplates/*.yaml", "specs/*/templates/*.yaml"],
        "team": ["specs/*/team.yaml"],
        "cluster": ["overlays/*/cluster.yaml"],
        "catalog": ["images/catalog.yaml"],
        "waiver": ["policies/waivers/*.yaml"],
        "workspace": [SETTINGS_FILE],
    }
    settings = {
        "yaml.schemas": {f"./{SCHEMAS}/{kind}.json": patterns for kind, patterns in bound.items()},
        "files.eol": "\n",
        "search.exclude": {"rendered": True, SCHEMAS: True},
        "files.readonlyInclude": {"rendered/**": True},
    }
    return files | {
        ".vscode/settings.json": _format_json_file(settings),
        ".vscode/extensions.json": _format_json_file(_EXTENSIONS),
    }


def _format_json_file(document: object) -> str:
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def _format_new_workspace_git_attributes(answers: WorkspaceAnswers) -> str:
    """Write .gitattributes: line ends, how Git merges rendered/, and what reviewers see collapsed.

    rendered/ keeps its diffs, because they show what will be applied. Schemas change only with gangplan, and
    are not reviewed line by line.
    """
    generated = "gitlab-generated" if answers.forge == "gitlab" else "linguist-generated=true"
    return (
        "# The same bytes on every machine: gangplan compares rendered/ byte by byte.\n"
        "* text=auto eol=lf\n"
        "# Git joins no lines of two renders: it stops, and gangplan render settles it. Forges may still join some,\n"
        "# which CI finds (rendered-stale).\n"
        f"rendered/** -merge {generated}\n"
        f"{SCHEMAS}/*.json {generated} -diff\n"
    )


def _render_new_workspace_pre_commit_hooks(folder: str) -> str:
    """Render the hooks of pre-commit, which runs at the top of the repository and names files from there."""
    at = f" -C {shlex.quote(folder)}" if folder else ""
    top = f"^{re.escape(folder)}/" if folder else "^"
    inputs = "|".join(READ_FOLDERS)
    values = {
        "folder": folder,
        "file": shlex.quote(f"{folder}/.pre-commit-config.yaml"),
        "validate": f"gangplan validate{at}",
        "check": f"gangplan render --check{at}",
        "inputs": f"{top}({inputs})/",
        "all": f"{top}({inputs}|rendered)/",
    }
    return render_yaml("workspace/pre-commit.yaml.j2", values)


def _build_new_workspace_delivery_file(answers: WorkspaceAnswers) -> dict[str, str]:
    """Write gangplan.yaml, from which `gangplan gitops write` works; nothing if no engine is chosen."""
    needs = {
        "repo": answers.repository,
        "branch": "" if answers.branch == DEFAULT_BRANCH else answers.branch,
        "prefix": answers.prefix,
        "forge": "" if answers.forge == "github" else answers.forge,
    }
    engines = [one for one in (answers.sync, answers.forge) if one != "none"]
    if not answers.prefix or is_recipe_folder(answers.prefix):
        engines.append("codeowners")  # its patterns cannot be quoted
    lines = [f"  {name}: {value}" for name, value in needs.items() if value]
    text = "\n".join(
        [_DELIVERY, *lines, "  engines:", *(f"    {one}: {_SETTINGS.get(one, '{}')}" for one in engines), ""]
    )
    return {SETTINGS_FILE: text} if engines else {}
