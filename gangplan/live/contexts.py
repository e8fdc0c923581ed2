"""Choose the context of a kubeconfig that belongs to a cluster."""

from __future__ import annotations

from collections.abc import Sequence

from gangplan.errors import ToolError, UserError
from gangplan.live.rights import Right
from gangplan.records import dataclass
from gangplan.spec.near import suggest_nearest


@dataclass(frozen=True, slots=True)
class ContextChoice:
    """The cluster that a command connects to: the user's choice of file, context and timeout (seconds).

    `needs` are the rights that it needs, `purpose` is what for. `is_in_cluster`: use this pod's account
    instead of a kubeconfig.
    """

    cluster: str
    context: str | None = None  # --context
    stated: str | None = None  # context: of cluster.yaml
    kubeconfig: str | None = None
    timeout_s: float = 30.0
    purpose: str = "read"
    needs: tuple[Right, ...] = ()
    is_in_cluster: bool = False  # --in-cluster


def choose_kubeconfig_context(wanted: ContextChoice, names: Sequence[str]) -> str:
    """Return the context: the flag's, the cluster file's, the one with the cluster's name, or the only one.

    Never the current one: that may be another cluster. Raises UserError and ToolError.
    """
    if wanted.context is not None:
        if wanted.context not in names:
            raise UserError(
                f"the kubeconfig has no context '{wanted.context}'",
                suggest_nearest(wanted.context, names) or "It has none.",
            )
        return wanted.context
    if wanted.stated is not None:
        if wanted.stated not in names:
            raise ToolError(
                f"the kubeconfig has no context '{wanted.stated}', which"
                f" overlays/{wanted.cluster}/cluster.yaml names",
                f"Add it, or use --context with one of {', '.join(names) or 'no contexts'}.",
            )
        return wanted.stated
    if wanted.cluster in names:
        return wanted.cluster
    if len(names) == 1:
        return names[0]
    raise ToolError(
        f"which context of the kubeconfig is cluster {wanted.cluster}? None has its name",
        f"Write context: into its cluster.yaml, or use --context with one of {', '.join(names) or 'none'}.",
    )
