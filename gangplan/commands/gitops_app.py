"""`gangplan gitops`: its commands and their flags."""

from __future__ import annotations

from typing import Annotated

import typer

from gangplan.commands.flags import Clusters, Workspace

app = typer.Typer(
    rich_markup_mode=None,
    add_completion=False,
    pretty_exceptions_enable=False,
    no_args_is_help=True,
    help="Write sync manifests for GitOps engines, CI recipes for forges, and CODEOWNERS.",
)


Repository = Annotated[
    str, typer.Option("--repo", help="Git repository that the engine reads.", metavar="URL")
]
Revision = Annotated[str, typer.Option("--revision", help="Branch or tag.", metavar="NAME")]
FluxRevision = Annotated[
    str,
    typer.Option("--revision", help="Branch; with oci://, tag or digest of the artifact.", metavar="NAME"),
]
Namespace = Annotated[
    str, typer.Option("--namespace", help="Namespace that the engine runs in.", metavar="NAME")
]
Prefix = Annotated[
    str | None,
    typer.Option(
        "--prefix",
        help="Folder of the workspace in the repository (default: as Git has it).",
        metavar="DIR",
    ),
]
Branch = Annotated[str, typer.Option("--branch", help="Branch that is synced.", metavar="NAME")]
Image = Annotated[
    str | None,
    typer.Option(
        "--image", help="Image with Python and Git that CI runs in; name it by digest.", metavar="REF"
    ),
]
Forge = Annotated[str, typer.Option("--forge", help="github or gitlab.", metavar="NAME")]
Check = Annotated[
    bool,
    typer.Option("--check", help="Write nothing; exit with 1 if a file in the folder is not what would be."),
]
Output = Annotated[
    str | None,
    typer.Option(
        "--output", "-o", help="Folder for one file per cluster, or - for standard output.", metavar="DIR|-"
    ),
]
Top = Annotated[
    str | None,
    typer.Option("--output", "-o", help="Top of the repository, or - for standard output.", metavar="DIR|-"),
]


@app.command("argocd")
def gitops_argocd(
    repo: Repository,
    revision: Revision = "main",
    namespace: Namespace = "argocd",
    prefix: Prefix = None,
    destination: Annotated[
        list[str] | None,
        typer.Option(
            "--destination",
            help="What Argo CD calls a cluster, or the address of its server (default: its name here); may be repeated.",
            metavar="CLUSTER=NAME",
        ),
    ] = None,
    retries: Annotated[
        int, typer.Option("--retries", min=0, help="Attempts of a failed sync.", metavar="N")
    ] = 5,
    notify: Annotated[
        list[str] | None,
        typer.Option(
            "--notify",
            help="Who hears of failed syncs and failed runs, such as slack=ml-runs; may be repeated.",
            metavar="SERVICE=RECIPIENT",
        ),
    ] = None,
    plugin: Annotated[
        str | None,
        typer.Option(
            "--plugin",
            help="Let a plugin in this image check the tree at every sync, instead of reading it directly.",
            metavar="IMAGE",
        ),
    ] = None,
    workspace: Workspace = None,
    cluster: Clusters = None,
    output: Output = None,
    check: Check = False,
) -> None:
    """Write Argo CD projects and applications of each cluster, and health checks for Argo CD itself."""
    from gangplan.commands.common import request
    from gangplan.commands.gitops_run import Asked, argocd

    asked = Asked(request(workspace, cluster, None, None, "serial", 1), output, check)
    given = (tuple(destination or ()), retries, tuple(notify or ()), plugin)
    raise typer.Exit(argocd(asked, (repo, revision, namespace, prefix), *given))


@app.command("flux")
def gitops_flux(
    repo: Annotated[
        str, typer.Option("--repo", help="Git repository or oci:// artifact that Flux reads.", metavar="URL")
    ],
    revision: FluxRevision = "main",
    namespace: Namespace = "flux-system",
    prefix: Prefix = None,
    workspace: Workspace = None,
    cluster: Clusters = None,
    output: Output = None,
    check: Check = False,
) -> None:
    """Write a Flux source and Kustomizations for the platform, tenants and runs of each cluster."""
    from gangplan.commands.common import request
    from gangplan.commands.gitops_run import Asked, flux

    asked = Asked(request(workspace, cluster, None, None, "serial", 1), output, check)
    raise typer.Exit(flux(asked, (repo, revision, namespace, prefix)))


@app.command("tekton")
def gitops_tekton(
    branch: Branch = "main",
    prefix: Prefix = None,
    image: Image = None,
    forge: Forge = "github",
    wait: Annotated[
        str | None,
        typer.Option(
            "--wait",
            help="After a push, wait until this has synced it: argocd or flux.",
            metavar="ENGINE",
        ),
    ] = None,
    namespace: Annotated[
        str, typer.Option("--namespace", help="With --wait: the namespace of the pipelines.", metavar="NAME")
    ] = "ci",
    workspace: Workspace = None,
    cluster: Clusters = None,
    output: Top = None,
    check: Check = False,
) -> None:
    """Write Tekton Tasks, a Pipeline, and PipelineRuns for Pipelines as Code."""
    from gangplan.commands.common import request
    from gangplan.commands.forges import options_of, tekton
    from gangplan.commands.gitops_run import Asked, finish

    asked = Asked(request(workspace, cluster, None, None, "serial", 1), output, check)
    options = options_of(asked.request, branch, prefix, image)
    raise typer.Exit(finish(asked, tekton(asked.request, options, forge, wait, namespace)))


@app.command("github")
def gitops_github(
    branch: Branch = "main",
    prefix: Prefix = None,
    python: Annotated[str, typer.Option("--python", help="Version of Python.", metavar="VERSION")] = "3.13",
    pin: Annotated[
        list[str] | None,
        typer.Option("--pin", help="Another commit of an action; may be repeated.", metavar="ACTION=COMMIT"),
    ] = None,
    workspace: Workspace = None,
    output: Top = None,
    check: Check = False,
) -> None:
    """Write a GitHub workflow and its composite action: findings, alerts, and the plan as a comment."""
    from gangplan.commands.common import request
    from gangplan.commands.forges import options_of
    from gangplan.commands.gitops_run import Asked, finish
    from gangplan.gitops.ci import check_pins, github_files

    asked = Asked(request(workspace, None, None, None, "serial", 1), output, check)
    options = options_of(asked.request, branch, prefix, None, python)
    raise typer.Exit(finish(asked, github_files(options, check_pins(pin or ()))))


@app.command("gitlab")
def gitops_gitlab(
    prefix: Prefix = None,
    image: Image = None,
    workspace: Workspace = None,
    output: Top = None,
    check: Check = False,
) -> None:
    """Write a GitLab CI/CD component and a pipeline that includes it: code quality, JUnit, plan."""
    from gangplan.commands.common import request
    from gangplan.commands.forges import options_of
    from gangplan.commands.gitops_run import Asked, finish
    from gangplan.gitops.ci import gitlab_files

    asked = Asked(request(workspace, None, None, None, "serial", 1), output, check)
    raise typer.Exit(finish(asked, gitlab_files(options_of(asked.request, "main", prefix, image))))


@app.command("jenkins")
def gitops_jenkins(
    prefix: Prefix = None,
    image: Image = None,
    workspace: Workspace = None,
    output: Top = None,
    check: Check = False,
) -> None:
    """Write a declarative Jenkins pipeline."""
    from gangplan.commands.common import request
    from gangplan.commands.forges import options_of
    from gangplan.commands.gitops_run import Asked, finish
    from gangplan.gitops.ci import jenkins_files

    asked = Asked(request(workspace, None, None, None, "serial", 1), output, check)
    raise typer.Exit(finish(asked, jenkins_files(options_of(asked.request, "main", prefix, image))))


@app.command("codeowners")
def gitops_codeowners(
    forge: Forge = "github",
    organisation: Annotated[
        str | None,
        typer.Option(
            "--organisation",
            help="Organisation or group that the teams belong to on the forge (default: as the remote has it).",
            metavar="NAME",
        ),
    ] = None,
    owner: Annotated[
        list[str] | None,
        typer.Option(
            "--owner",
            help="Who owns the files of a team, or of platform; may be repeated.",
            metavar="TEAM=OWNER",
        ),
    ] = None,
    prefix: Prefix = None,
    workspace: Workspace = None,
    output: Top = None,
    check: Check = False,
) -> None:
    """Write CODEOWNERS: each team owns its specs, the platform all that decides for others."""
    from gangplan.commands.common import request
    from gangplan.commands.forges import codeowners
    from gangplan.commands.gitops import pairs
    from gangplan.commands.gitops_run import Asked, finish

    asked = Asked(request(workspace, None, None, None, "serial", 1), output, check)
    owners = dict(pairs("--owner", owner or (), "nlp=@acme/nlp"))
    raise typer.Exit(finish(asked, codeowners(asked.request, forge, organisation, owners, prefix)))


@app.command("check")
def gitops_check(workspace: Workspace = None) -> None:
    """Make every file that says how it was made again, and exit with 1 if one would differ."""
    from gangplan.commands.common import request
    from gangplan.commands.gitops_check import check

    raise typer.Exit(check(request(workspace, None, None, None, "serial", 1), app))
