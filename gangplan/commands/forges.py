"""`gangplan gitops github|gitlab|tekton|jenkins|codeowners`: CI recipes and owners of a workspace."""

from __future__ import annotations

from collections.abc import Mapping

from gangplan.commands.gitops import opened
from gangplan.errors import Exit, UserError
from gangplan.gitops.ci import PYTHON, CiOptions, check_folder, check_image
from gangplan.gitops.codeowners import OTHER_CI, Owners, codeowners_files, organisation_of
from gangplan.gitops.made import Flag, command_of, headed
from gangplan.gitops.tekton import tekton_files
from gangplan.pipeline.request import Request
from gangplan.starter.answers import check_branch
from gangplan.tools.git import folder_inside, remote
from gangplan.workspace import nearest

FORGES = ("github", "gitlab", "none")


def options_of(
    request: Request, branch: str, prefix: str | None, image: str | None, python: str = PYTHON
) -> CiOptions:
    """The options of a recipe, each checked. Raises UserError."""
    folder = check_folder((folder_inside(request.root) if prefix is None else prefix) or ".")
    if not python.replace(".", "").isdigit():
        raise UserError(f"'{python}' is not a version of Python", "Write --python 3.13.")
    return CiOptions(check_branch(branch), folder, check_image(image) if image else "", python)


def tekton(
    request: Request, options: CiOptions, forge: str, wait: str | None, namespace: str
) -> dict[str, str] | Exit:
    """Tasks, Pipeline and PipelineRuns of Tekton. Raises UserError."""
    _choose("forge", forge, FORGES)
    names: list[str] = []
    if wait:
        _choose("sync engine", wait, ("argocd", "flux"))
        found = opened(request)
        if isinstance(found, Exit):
            return found
        workspace, clusters = found
        for cluster in clusters:
            teams = sorted(workspace.clusters[cluster].spec.teams) if wait == "argocd" else []
            names += [f"{cluster}-{part}" for part in ("platform", "tenants")]
            names += [f"{cluster}-runs-{team}" for team in teams] or [f"{cluster}-runs"]
    flags: list[Flag] = [
        *options.flags,
        ("--forge", "" if forge == "github" else forge),
        ("--wait", wait or ""),
        ("--namespace", "" if namespace == "ci" or not wait else namespace),
        ("--cluster", request.clusters if wait else ()),
    ]
    files = tekton_files(options, forge, wait or "", names, namespace)
    return headed(command_of("tekton", flags), files)


def codeowners(
    request: Request, forge: str, organisation: str | None, given: Mapping[str, str], prefix: str | None
) -> dict[str, str]:
    """CODEOWNERS of all teams. `given` are owners by team; the platform is called so, too. Raises UserError."""
    _choose("forge", forge, FORGES)
    teams = sorted(path.parent.name for path in request.root.glob("specs/*/team.yaml"))
    for name in given:
        if name not in (*teams, "platform"):
            raise UserError(f"there is no team '{name}'", nearest(name, [*teams, "platform"]))
    folder = check_folder((folder_inside(request.root) if prefix is None else prefix) or ".")
    home = organisation or organisation_of(remote(request.root))
    engines = [name for name in ("argocd", "flux", "tekton") if (request.root / name).is_dir()]
    owners = Owners(forge, home, given, "" if folder == "." else folder)
    top = request.root.resolve()
    for _ in owners.prefix.split("/") if owners.prefix else ():
        top = top.parent
    recipes = [path for path in OTHER_CI if (top / path.strip("/")).exists()]
    return codeowners_files(owners, teams, engines, recipes)


def _choose(what: str, value: str, known: tuple[str, ...]) -> None:
    if value not in known:
        raise UserError(f"there is no {what} '{value}'", nearest(value, known))
