"""`gangplan init`."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from gangplan.commands.ask import ask_user_on_terminal, is_watched
from gangplan.commands.common import format_plural, print_findings_to_stderr
from gangplan.commands.connecting import ConnectionFlags, connect_by_name_with_flags
from gangplan.commands.init_flags import InitFlags, check_init_flags, check_init_folder_argument
from gangplan.delivery.engine import EngineInput, find_delivery_engine
from gangplan.delivery.made import build_delivery_engine_files, resolve_delivery_engine_home
from gangplan.delivery.stated import read_delivery_settings
from gangplan.errors import Exit, ToolError, UserError
from gangplan.gitops.ci import check_workspace_folder_in_repository, simplify_folder
from gangplan.gitops.source import EXAMPLE_REPOSITORY, check_gitops_repository_url, strip_login
from gangplan.pipeline.render import preview_render
from gangplan.pipeline.request import Request
from gangplan.report.escape import escape_own_line
from gangplan.starter.answers import (
    ACCELERATORS,
    STARTER_ENGINES,
    STARTER_FORGES,
    WorkspaceAnswers,
    check_choice,
    check_name,
)
from gangplan.starter.draft import create_draft_copy_of_workspace
from gangplan.starter.files import build_new_workspace_files
from gangplan.starter.kept import describe_files_kept_by_init
from gangplan.starter.write import list_existing_files, write_new_files
from gangplan.tools.git import find_folder_in_git_repository, find_git_origin_url
from gangplan.workspace import load_workspace

_SAMPLE_TEAM, _SAMPLE_CLUSTER = "nlp", "lab"


def run_init_command(folder: Path, wanted: InitFlags) -> Exit:
    """Write a new workspace, all of its files or none. Raises UserError if something is in the way."""
    root = Path(os.path.abspath(folder))
    check_init_folder_argument(root, folder)
    answers = _collect_init_answers_from_flags(root, wanted)
    if wanted.observing is not None:
        answers = _add_observed_fields_to_init_answers(answers, wanted.observing)
    files = build_new_workspace_files(answers)
    with create_draft_copy_of_workspace(None, files) as draft:
        files = dict(sorted((files | _build_delivery_files_for_init_command(draft, answers)).items()))
        findings = [one for one in preview_render(Request(draft, engine="serial")).findings if one.is_error]
    if findings:
        print_findings_to_stderr(findings)
        raise UserError("nothing was written: these answers make no workspace that is valid")
    there = list_existing_files(root, files)
    if there and not wanted.keeps:
        names = ", ".join(there[:8]) + (f" and {len(there) - 8} more" if len(there) > 8 else "")
        help = "Move them away, or write `gangplan init --keep`, which leaves them as they are."
        raise UserError(f"nothing was written: {names} would be overwritten", help)
    write_new_files(root, {path: text for path, text in files.items() if path not in there})
    if not wanted.is_quiet:
        _print_init_report(folder, root, files, there, answers)
    return Exit.CLEAN


def _collect_init_answers_from_flags(root: Path, wanted: InitFlags) -> WorkspaceAnswers:
    """Return the answers from the flags; on a terminal, ask for what they leave out."""
    asks = is_watched() and None in (wanted.forge, wanted.sync, wanted.team, wanted.cluster)
    check_init_flags(wanted, asks)
    there = wanted.repository or _find_default_of_repository_flag(root)
    forge = wanted.forge or ("gitlab" if "gitlab" in there else "github")
    team, cluster = wanted.team, wanted.cluster
    answers = WorkspaceAnswers(
        forge, wanted.sync or "argocd", team or "", cluster or "", there or EXAMPLE_REPOSITORY
    )
    answers = replace(answers, accelerator=wanted.accelerator or "nvidia")
    if wanted.is_sample:
        if answers.accelerator != "nvidia" or wanted.observing is not None:
            raise UserError(
                "--sample is an example of its own", "Leave --accelerator and --from-cluster out."
            )
        answers = replace(
            answers, team=team or _SAMPLE_TEAM, cluster=cluster or _SAMPLE_CLUSTER, is_sample=True
        )
    elif asks:
        answers = _ask_init_questions_on_terminal(answers, wanted, there)
    if answers.is_sample and (answers.team == "vision" or answers.cluster == "cloud"):
        raise UserError("the sample has a team vision and a cluster cloud", "Choose another name.")
    return replace(answers, branch=wanted.branch, prefix=_find_repository_prefix(root, answers))


def _ask_init_questions_on_terminal(
    answers: WorkspaceAnswers, wanted: InitFlags, there: str
) -> WorkspaceAnswers:
    sys.stdout.write(
        "A new workspace. Enter takes the answer in brackets, TAB completes, Ctrl-C writes nothing.\n"
    )
    forge = wanted.forge or ask_user_on_terminal(
        "Forge (github, gitlab, none)",
        answers.forge,
        STARTER_FORGES,
        lambda one: check_choice("forge", one, STARTER_FORGES),
    )
    sync = wanted.sync or ask_user_on_terminal(
        "Sync engine (argocd, flux, tekton, none)",
        answers.sync,
        STARTER_ENGINES,
        lambda one: check_choice("sync engine", one, STARTER_ENGINES),
    )
    repository = wanted.repository or answers.repository
    if sync in ("argocd", "flux") and not there:
        repository = ask_user_on_terminal(
            "Address of the Git repository", EXAMPLE_REPOSITORY, check=check_gitops_repository_url
        )
    team = wanted.team or ask_user_on_terminal("First team", check=lambda one: check_name("team", one))
    cluster = wanted.cluster or ask_user_on_terminal(
        "First cluster", check=lambda one: check_name("cluster", one)
    )
    accelerator = answers.accelerator
    if wanted.accelerator is None and wanted.observing is None:
        accelerator = ask_user_on_terminal(
            "GPUs (nvidia, amd, none)",
            accelerator,
            ACCELERATORS,
            lambda one: check_choice("accelerator", one, ACCELERATORS),
        )
    answers = replace(answers, forge=forge, sync=sync, repository=repository, accelerator=accelerator)
    return replace(answers, team=team, cluster=cluster)


def _add_observed_fields_to_init_answers(
    answers: WorkspaceAnswers, asked: ConnectionFlags
) -> WorkspaceAnswers:
    """Return the answers with what was seen in the cluster.

    Raises ToolError, and UserError for a context that does not exist.
    """
    from gangplan.live.observe import OBSERVE_RIGHTS
    from gangplan.live.proposed import propose_cluster_file_fields

    found = propose_cluster_file_fields(
        connect_by_name_with_flags(answers.cluster, None, asked, "init", OBSERVE_RIGHTS), answers.cluster
    )
    for one in found.unseen:
        sys.stderr.write(f"not seen in cluster {answers.cluster}: {escape_own_line(one)}\n")
    queue = found.queues.get(answers.team)
    pools = found.fields.get("nodePools", {})
    gpus = {str(one["gpu"].get("resource", "nvidia.com/gpu")) for one in pools.values() if "gpu" in one}
    kind = "nvidia" if any(one.startswith("nvidia") for one in gpus) else "amd" if gpus else "none"
    return replace(
        answers,
        seen={**found.fields, **({"queue": queue} if queue else {})},
        accelerator=kind if pools else answers.accelerator,
    )


def _find_repository_prefix(root: Path, answers: WorkspaceAnswers) -> str:
    """Return the path of the new workspace in its repository; empty at the top, and without a repository.

    Raises UserError for a folder that CI recipes and sync engines cannot name, ToolError if Git refuses it.
    """
    place = next(one for one in (root, *root.parents) if one.is_dir())
    try:
        inside = find_folder_in_git_repository(place)
    except ToolError as refused:
        help = f"Name a folder elsewhere, or trust it: git config --global --add safe.directory {shlex.quote(str(place))}."
        raise ToolError(refused.message, help) from None
    if inside is None:
        return ""
    folder = "/".join(part for part in (inside, *root.relative_to(place).parts) if part)
    try:
        return check_workspace_folder_in_repository(folder) if folder else ""
    except UserError as refused:
        help = f"Name it in letters, digits, '.', '_' and '-', such as {simplify_folder(folder)}"
        if not folder.isprintable():
            raise UserError(refused.message, f"{help}.") from None
        if (answers.forge, answers.sync) != ("none", "none"):
            message = f"{refused.message}: recipes of CI and sync engines name it"
            raise UserError(message, f"{help}, or write --forge none --sync none.") from None
        return folder


def _find_default_of_repository_flag(root: Path) -> str:
    """Return the push address of the repository around the folder; empty if there is none that we can
    write."""
    place = next((one for one in (root, *root.parents) if one.is_dir()), root)
    try:
        return check_gitops_repository_url(strip_login(find_git_origin_url(place)))
    except (ToolError, UserError):
        return ""


def _build_delivery_files_for_init_command(draft: Path, answers: WorkspaceAnswers) -> dict[str, str]:
    """Build what gangplan.yaml lists, as `gangplan gitops write` makes it once everything is rendered.

    Files that forges read are at the top of the repository; they are left out for a workspace in a folder of
    it.
    """
    said, _ = read_delivery_settings(draft)
    workspace = load_workspace(draft)
    given = EngineInput(Request(draft), workspace, tuple(workspace.clusters), is_rendered=False)
    files: dict[str, str] = {}
    for name in said.engines:
        home = resolve_delivery_engine_home(find_delivery_engine(name), said)
        if home or not answers.prefix:
            made = build_delivery_engine_files(find_delivery_engine(name), given, said=said)
            files |= {f"{home}/{path}" if home else path: text for path, text in made.items()}
    return files


def _print_init_report(
    folder: Path, root: Path, files: Mapping[str, str], there: Sequence[str], answers: WorkspaceAnswers
) -> None:
    """Print what was written, and what to do next."""
    say = sys.stdout.write
    written = [path for path in files if path not in there]
    place = escape_own_line(str(folder))
    say(f"wrote {format_plural(len(written), 'file')} in {place if place != '.' else 'this folder'}:\n")
    for path in written:
        if not path.startswith(".vscode/"):
            say(f"  {path}\n")
    if any(path.startswith(".vscode/") for path in written):
        say("  .vscode/ (settings, and a schema per file format)\n")
    for line in describe_files_kept_by_init(root, files, there):
        say(f"{escape_own_line(line)}\n")
    go = "" if place == "." else f"cd {shlex.quote(place)} && "
    say(f"\nnext: {go}gangplan render && gangplan validate\n")
    cluster, team = answers.cluster, answers.team
    say(
        f"then: correct overlays/{cluster}/cluster.yaml and images/catalog.yaml, whose values are examples,\n"
    )
    if answers.sync in ("argocd", "flux") and answers.repository == EXAMPLE_REPOSITORY:
        say("      and the address in gangplan.yaml, then: gangplan gitops write\n")
    if answers.prefix and answers.forge != "none":
        say(
            "      gangplan gitops write: CI and CODEOWNERS go to the top of the repository, where forges read them\n"
        )
    say(f"      change specs/{team}/quickstart.yaml, or add a job: gangplan new job NAME --team {team}\n")
