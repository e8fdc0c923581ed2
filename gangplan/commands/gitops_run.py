"""From the flags of `gangplan gitops argocd` and `flux` to files, and from files to what becomes of them."""

from __future__ import annotations

from collections.abc import Mapping

from gangplan.commands.gitops import Argo, argocd_files, flux_files, opened, pairs, source_of
from gangplan.commands.gitops_files import put_out
from gangplan.errors import Exit, UserError
from gangplan.gitops.argocd import RETRIES, ArgoOptions
from gangplan.gitops.ci import check_image
from gangplan.gitops.made import Flag, command_of
from gangplan.gitops.source import RepositorySource
from gangplan.pipeline.request import Request
from gangplan.records import dataclass

# Address, revision, namespace and prefix, as flags give them.
Place = tuple[str, str, str, str | None]


@dataclass(frozen=True, slots=True)
class Asked:
    """What is asked for, where it goes, and whether it is only compared."""

    request: Request
    output: str | None
    is_check: bool


def finish(asked: Asked, files: Mapping[str, str] | Exit) -> Exit:
    """Print, write or compare the files; an exit code instead of them goes on as it is."""
    if isinstance(files, Exit):
        return files
    return put_out(files, asked.output, asked.is_check, bool(asked.request.clusters))


def argocd(
    asked: Asked,
    place: Place,
    destinations: tuple[str, ...],
    retries: int,
    notify: tuple[str, ...],
    plugin: str | None,
) -> Exit:
    """`gangplan gitops argocd`. Raises UserError."""
    if plugin and "@sha256:" not in check_image(plugin):
        help = "Name it by digest, for it decides what is synced: --plugin registry.example.com/gangplan@sha256:DIGEST."
        raise UserError(f"--plugin {plugin}: a tag can be moved to another image", help)
    there = dict(pairs("--destination", destinations, "us-cloud=prod-us"))
    recipients = tuple(pairs("--notify", notify, "slack=ml-runs"))
    found = opened(asked.request)
    if isinstance(found, Exit):
        return found
    source = source_of(asked.request, *place)
    argo = Argo(source, ArgoOptions(retries, recipients, bool(plugin)), there, plugin or "")
    flags: list[Flag] = [
        ("--destination", destinations),
        ("--retries", "" if retries == RETRIES else str(retries)),
        ("--notify", notify),
        ("--plugin", plugin or ""),
    ]
    command = engine_command("argocd", source, "argocd", asked.request, flags)
    return finish(asked, argocd_files(*found, argo, command))


def flux(asked: Asked, place: Place) -> Exit:
    """`gangplan gitops flux`. Raises UserError."""
    found = opened(asked.request)
    if isinstance(found, Exit):
        return found
    source = source_of(asked.request, *place)
    command = engine_command("flux", source, "flux-system", asked.request, [])
    return finish(asked, flux_files(*found, source, command))


def engine_command(
    name: str, source: RepositorySource, namespace: str, request: Request | None, more: list[Flag]
) -> list[str]:
    """The words of the command that makes the same files again."""
    flags: list[Flag] = [
        ("--repo", source.repository),
        ("--revision", "" if source.revision == "main" else source.revision),
        ("--namespace", "" if source.namespace == namespace else source.namespace),
        ("--prefix", source.prefix),
        *more,
        ("--cluster", request.clusters if request else ()),
    ]
    return command_of(name, flags)
