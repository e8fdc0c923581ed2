"""`gangplan gitops`: a command for each engine, built from its row, and those for all that gangplan.yaml
lists."""

from __future__ import annotations

import inspect
from typing import Annotated, Any

import typer

from gangplan.commands import complete
from gangplan.commands.flags import ClustersFlag, ContextFlag, KubeconfigFlag, TimeoutFlag, WorkspaceFlag
from gangplan.delivery.engine import EngineOption, GitopsEngine, list_engines
from gangplan.errors import UserError

app = typer.Typer(
    rich_markup_mode=None,
    add_completion=False,
    pretty_exceptions_enable=False,
    no_args_is_help=True,
    help="Write sync manifests for GitOps engines, CI recipes for forges, and CODEOWNERS.",
)
Check = Annotated[
    bool,
    typer.Option("--check", help="Write nothing; exit with 1 if a file in the folder is not up to date."),
]


def _add_gitops_engine_command(engine: GitopsEngine) -> None:
    """Add the command of an engine: a flag for each of its options."""

    def run(
        workspace: WorkspaceFlag = None,
        cluster: ClustersFlag = None,
        output: str | None = None,
        check: bool = False,
        **given: Any,
    ) -> None:
        from gangplan.commands.common import build_request
        from gangplan.commands.gitops_run import Asked
        from gangplan.commands.gitops_run import run_gitops_engine_command as carry_out

        asked = Asked(build_request(workspace, cluster, None, None, "serial", 1), output, check)
        by_name = {one.name: one for one in engine.options}
        bad: list[UserError] = []
        flags = {
            name: _parse_gitops_engine_flag(by_name[name], value, bad)
            for name, value in given.items()
            if value not in (None, [])
        }
        raise typer.Exit(carry_out(engine, asked, flags, bad))

    places: dict[str, tuple[Any, Any]] = {
        one.name: (_build_gitops_engine_flag(one), None) for one in engine.options
    }
    places["workspace"] = WorkspaceFlag, None
    if engine.by_cluster:
        places["cluster"] = ClustersFlag, None
    where = "Folder for one file per cluster" if engine.home else "Top of the repository"
    output = typer.Option("--output", "-o", help=f"{where}, or - for standard output.", metavar="DIR|-")
    places |= {"output": (Annotated[str | None, output], None), "check": (Check, False)}
    run.__doc__ = engine.help
    run.__annotations__ = {name: kind for name, (kind, _) in places.items()} | {"return": None}
    word = inspect.Parameter.KEYWORD_ONLY
    run.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [
            inspect.Parameter(name, word, default=default, annotation=kind)
            for name, (kind, default) in places.items()
        ]
    )
    app.command(engine.name)(run)


def _build_gitops_engine_flag(option: EngineOption) -> Any:
    """Return the type of a parameter, as typer reads it."""
    kind = type(option.default) | None if isinstance(option.default, str | int) else list[str] | None
    says = option.help
    if not isinstance(option.default, str | int):
        says += " May be repeated."
    elif option.default != "":
        says += f" Default: {option.default}."
    return Annotated[kind, typer.Option(option.flag, help=says, metavar=option.metavar, show_default=False)]


def _parse_gitops_engine_flag(option: EngineOption, given: Any, bad: list[UserError]) -> Any:
    """Return the value of an option; for a mapping, parse NAME=VALUE and append errors to `bad`."""
    if not isinstance(option.default, dict):
        return tuple(given) if isinstance(given, list) else given
    found = {}
    for one in given:
        name, equals, value = one.partition("=")
        if not (name and equals and value):
            form = f"{option.flag} {one}: not of the form {option.example}"
            bad.append(UserError(form, f"Write {option.flag} {option.example}."))
        elif name in found:
            bad.append(
                UserError(f"{option.flag} names {name} twice", f"Write {option.flag} {name}=... once.")
            )
        else:
            found[name] = value
    return found


for _one in list_engines():
    _add_gitops_engine_command(_one)


@app.command("write")
def gitops_write(workspace: WorkspaceFlag = None) -> None:
    """Write all files that gangplan.yaml lists, each to its place."""
    from gangplan.commands.common import build_request
    from gangplan.commands.gitops_run import run_gitops_write_command

    raise typer.Exit(run_gitops_write_command(build_request(workspace, None, None, None, "serial", 1)))


@app.command("check")
def gitops_check(workspace: WorkspaceFlag = None) -> None:
    """Check that all files that gangplan.yaml lists, or that name their command, are fresh; exit with 1 if
    one is not."""
    from gangplan.commands.common import build_request
    from gangplan.commands.gitops_check import run_gitops_check_command

    raise typer.Exit(run_gitops_check_command(build_request(workspace, None, None, None, "serial", 1), app))


@app.command("sync")
def gitops_sync(
    name: Annotated[
        str,
        typer.Argument(
            help="The cluster to sync.", metavar="NAME", autocompletion=complete.complete_clusters_on_tab
        ),
    ],
    workspace: WorkspaceFlag = None,
    namespace: Annotated[
        str,
        typer.Option("--namespace", help="Namespace that records what was applied.", metavar="NAMESPACE"),
    ] = "gangplan",
    confirmed: Annotated[
        bool,
        typer.Option("--confirmed", help="Also delete queues and namespaces of teams that have left Git."),
    ] = False,
    in_cluster: Annotated[
        bool, typer.Option("--in-cluster", help="Use the account of this pod instead of a kubeconfig.")
    ] = False,
    context: ContextFlag = None,
    kubeconfig: KubeconfigFlag = None,
    timeout: TimeoutFlag = 30.0,
) -> None:
    """Apply rendered/ to a cluster and prune what left it, as a CI step, where neither Argo CD nor Flux
    does."""
    from gangplan.commands.common import build_request
    from gangplan.commands.connecting import ConnectionFlags
    from gangplan.commands.gitops_sync import run_gitops_sync_command

    asked = ConnectionFlags(context, kubeconfig, timeout, in_cluster)
    wanted = build_request(workspace, [name], None, None, "auto", 0, uses_cache=True)
    raise typer.Exit(run_gitops_sync_command(wanted, asked, namespace, confirmed))
