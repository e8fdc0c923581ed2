"""`gangplan init`."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from gangplan.commands.ask import ask, is_watched
from gangplan.commands.common import plural, print_findings
from gangplan.commands.connecting import Asked, connected_to
from gangplan.commands.init_flags import Wanted, check_flags, check_place
from gangplan.delivery.engine import Given, engine_of
from gangplan.delivery.made import files_of, home_of
from gangplan.delivery.stated import stated
from gangplan.errors import Exit, ToolError, UserError
from gangplan.gitops.ci import check_folder, plain_folder
from gangplan.gitops.source import EXAMPLE, check_url, without_login
from gangplan.pipeline.render import preview
from gangplan.pipeline.request import Request
from gangplan.report.escape import own_line
from gangplan.starter.answers import (
    ACCELERATORS,
    ENGINES,
    FORGES,
    Answers,
    check_choice,
    check_name,
)
from gangplan.starter.draft import drafted
from gangplan.starter.files import workspace_files
from gangplan.starter.kept import kept_lines
from gangplan.starter.write import existing, write_new
from gangplan.tools.git import folder_inside, remote
from gangplan.workspace import load_workspace

_SAMPLE_TEAM, _SAMPLE_CLUSTER = "nlp", "lab"


def init(folder: Path, wanted: Wanted) -> Exit:
    """Write a new workspace, all of its files or none. Raises UserError if something is in the way."""
    root = Path(os.path.abspath(folder))
    check_place(root, folder)
    answers = _answers(root, wanted)
    if wanted.observing is not None:
        answers = _seen(answers, wanted.observing)
    files = workspace_files(answers)
    with drafted(None, files) as draft:
        files = dict(sorted((files | _delivered(draft, answers)).items()))
        findings = [one for one in preview(Request(draft, engine="serial")).findings if one.is_error]
    if findings:
        print_findings(findings)
        raise UserError("nothing was written: these answers make no workspace that is valid")
    there = existing(root, files)
    if there and not wanted.keeps:
        names = ", ".join(there[:8]) + (f" and {len(there) - 8} more" if len(there) > 8 else "")
        help = "Move them away, or write `gangplan init --keep`, which leaves them as they are."
        raise UserError(f"nothing was written: {names} would be overwritten", help)
    write_new(root, {path: text for path, text in files.items() if path not in there})
    if not wanted.is_quiet:
        _report(folder, root, files, there, answers)
    return Exit.CLEAN


def _answers(root: Path, wanted: Wanted) -> Answers:
    """Return the answers from the flags; on a terminal, ask for what they leave out."""
    asks = is_watched() and None in (wanted.forge, wanted.sync, wanted.team, wanted.cluster)
    check_flags(wanted, asks)
    there = wanted.repository or _remote(root)
    forge = wanted.forge or ("gitlab" if "gitlab" in there else "github")
    team, cluster = wanted.team, wanted.cluster
    answers = Answers(forge, wanted.sync or "argocd", team or "", cluster or "", there or EXAMPLE)
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
        answers = _asked(answers, wanted, there)
    if answers.is_sample and (answers.team == "vision" or answers.cluster == "cloud"):
        raise UserError("the sample has a team vision and a cluster cloud", "Choose another name.")
    return replace(answers, branch=wanted.branch, prefix=_prefix(root, answers))


def _asked(answers: Answers, wanted: Wanted, there: str) -> Answers:
    sys.stdout.write(
        "A new workspace. Enter takes the answer in brackets, TAB completes, Ctrl-C writes nothing.\n"
    )
    forge = wanted.forge or ask(
        "Forge (github, gitlab, none)", answers.forge, FORGES, lambda one: check_choice("forge", one, FORGES)
    )
    sync = wanted.sync or ask(
        "Sync engine (argocd, flux, tekton, none)",
        answers.sync,
        ENGINES,
        lambda one: check_choice("sync engine", one, ENGINES),
    )
    repository = wanted.repository or answers.repository
    if sync in ("argocd", "flux") and not there:
        repository = ask("Address of the Git repository", EXAMPLE, check=check_url)
    team = wanted.team or ask("First team", check=lambda one: check_name("team", one))
    cluster = wanted.cluster or ask("First cluster", check=lambda one: check_name("cluster", one))
    accelerator = answers.accelerator
    if wanted.accelerator is None and wanted.observing is None:
        accelerator = ask(
            "GPUs (nvidia, amd, none)",
            accelerator,
            ACCELERATORS,
            lambda one: check_choice("accelerator", one, ACCELERATORS),
        )
    answers = replace(answers, forge=forge, sync=sync, repository=repository, accelerator=accelerator)
    return replace(answers, team=team, cluster=cluster)


def _seen(answers: Answers, asked: Asked) -> Answers:
    """Return the answers with what was seen in the cluster.

    Raises ToolError, and UserError for a context that does not exist.
    """
    from gangplan.live.observe import RIGHTS
    from gangplan.live.proposed import propose

    found = propose(connected_to(answers.cluster, None, asked, "init", RIGHTS), answers.cluster)
    for one in found.unseen:
        sys.stderr.write(f"not seen in cluster {answers.cluster}: {own_line(one)}\n")
    queue = found.queues.get(answers.team)
    pools = found.fields.get("nodePools", {})
    gpus = {str(one["gpu"].get("resource", "nvidia.com/gpu")) for one in pools.values() if "gpu" in one}
    kind = "nvidia" if any(one.startswith("nvidia") for one in gpus) else "amd" if gpus else "none"
    return replace(
        answers,
        seen={**found.fields, **({"queue": queue} if queue else {})},
        accelerator=kind if pools else answers.accelerator,
    )


def _prefix(root: Path, answers: Answers) -> str:
    """Return the path of the new workspace in its repository; empty at the top, and without a repository.

    Raises UserError for a folder that CI recipes and sync engines cannot name, ToolError if Git refuses it.
    """
    place = next(one for one in (root, *root.parents) if one.is_dir())
    try:
        inside = folder_inside(place)
    except ToolError as refused:
        help = f"Name a folder elsewhere, or trust it: git config --global --add safe.directory {shlex.quote(str(place))}."
        raise ToolError(refused.message, help) from None
    if inside is None:
        return ""
    folder = "/".join(part for part in (inside, *root.relative_to(place).parts) if part)
    try:
        return check_folder(folder) if folder else ""
    except UserError as refused:
        help = f"Name it in letters, digits, '.', '_' and '-', such as {plain_folder(folder)}"
        if not folder.isprintable():
            raise UserError(refused.message, f"{help}.") from None
        if (answers.forge, answers.sync) != ("none", "none"):
            message = f"{refused.message}: recipes of CI and sync engines name it"
            raise UserError(message, f"{help}, or write --forge none --sync none.") from None
        return folder


def _remote(root: Path) -> str:
    """Return the push address of the repository around the folder; empty if there is none that we can
    write."""
    place = next((one for one in (root, *root.parents) if one.is_dir()), root)
    try:
        return check_url(without_login(remote(place)))
    except (ToolError, UserError):
        return ""


def _delivered(draft: Path, answers: Answers) -> dict[str, str]:
    """Build what gangplan.yaml lists, as `gangplan gitops write` makes it once everything is rendered.

    Files that forges read are at the top of the repository; they are left out for a workspace in a folder of
    it.
    """
    said, _ = stated(draft)
    workspace = load_workspace(draft)
    given = Given(Request(draft), workspace, tuple(workspace.clusters), is_rendered=False)
    files: dict[str, str] = {}
    for name in said.engines:
        home = home_of(engine_of(name), said)
        if home or not answers.prefix:
            made = files_of(engine_of(name), given, said=said)
            files |= {f"{home}/{path}" if home else path: text for path, text in made.items()}
    return files


def _report(
    folder: Path, root: Path, files: Mapping[str, str], there: Sequence[str], answers: Answers
) -> None:
    """Print what was written, and what to do next."""
    say = sys.stdout.write
    written = [path for path in files if path not in there]
    place = own_line(str(folder))
    say(f"wrote {plural(len(written), 'file')} in {place if place != '.' else 'this folder'}:\n")
    for path in written:
        if not path.startswith(".vscode/"):
            say(f"  {path}\n")
    if any(path.startswith(".vscode/") for path in written):
        say("  .vscode/ (settings, and a schema per file format)\n")
    for line in kept_lines(root, files, there):
        say(f"{own_line(line)}\n")
    go = "" if place == "." else f"cd {shlex.quote(place)} && "
    say(f"\nnext: {go}gangplan render && gangplan validate\n")
    cluster, team = answers.cluster, answers.team
    say(
        f"then: correct overlays/{cluster}/cluster.yaml and images/catalog.yaml, whose values are examples,\n"
    )
    if answers.sync in ("argocd", "flux") and answers.repository == EXAMPLE:
        say("      and the address in gangplan.yaml, then: gangplan gitops write\n")
    if answers.prefix and answers.forge != "none":
        say(
            "      gangplan gitops write: CI and CODEOWNERS go to the top of the repository, where forges read them\n"
        )
    say(f"      change specs/{team}/quickstart.yaml, or add a job: gangplan new job NAME --team {team}\n")
