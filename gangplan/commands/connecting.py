"""Connections of commands to clusters, from flags and the cluster's file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from gangplan.errors import UserError
from gangplan.records import dataclass

if TYPE_CHECKING:
    from gangplan.live.access import Access
    from gangplan.live.contexts import ContextChoice
    from gangplan.live.rights import Right
    from gangplan.workspace import ClusterFile


@dataclass(frozen=True, slots=True)
class ConnectionFlags:
    """The connection flags of a command; the timeout is in seconds."""

    context: str | None = None
    kubeconfig: Path | None = None
    timeout_s: float = 30.0
    is_in_cluster: bool = False


@dataclass(frozen=True, slots=True)
class Observing:
    """What else `validate` looks at: snapshots, and with `server` the clusters themselves."""

    snapshots: tuple[Path, ...] = ()
    server: ConnectionFlags | None = None


def connect_with_flags(
    cluster: ClusterFile, asked: ConnectionFlags, purpose: str, needs: tuple[Right, ...]
) -> Access:
    """Connect to a cluster. Raises ToolError, and UserError for a context that does not exist."""
    return connect_by_name_with_flags(cluster.name, cluster.spec.context, asked, purpose, needs)


def connect_by_name_with_flags(
    name: str, context: str | None, asked: ConnectionFlags, purpose: str, needs: tuple[Right, ...]
) -> Access:
    """Connect to a cluster that may have no file, with the context that a file would name.

    Raises as `connect_with_flags` does.
    """
    from gangplan.live.access import connect_to_cluster

    return connect_to_cluster(build_context_choice_from_flags(name, context, asked, purpose, needs))


def build_context_choice_from_flags(
    name: str, context: str | None, asked: ConnectionFlags, purpose: str, needs: tuple[Right, ...]
) -> ContextChoice:
    """Build the description of the cluster that the flags of a command select."""
    from gangplan.live.contexts import ContextChoice

    kubeconfig = str(asked.kubeconfig) if asked.kubeconfig is not None else None
    return ContextChoice(
        name, asked.context, context, kubeconfig, asked.timeout_s, purpose, needs, asked.is_in_cluster
    )


def build_observing_from_flags(
    snapshots: Sequence[Path] | None,
    is_server: bool,
    context: str | None,
    kubeconfig: Path | None,
    timeout_s: float,
) -> Observing | None:
    """Build what else `validate` looks at from its flags; None if there is nothing. Raises UserError."""
    if not is_server and (context is not None or kubeconfig is not None):
        raise UserError("--context and --kubeconfig are for --server", "Add --server, or leave them out.")
    if not is_server and not snapshots:
        return None
    server = ConnectionFlags(context, kubeconfig, timeout_s) if is_server else None
    return Observing(tuple(snapshots or ()), server)
