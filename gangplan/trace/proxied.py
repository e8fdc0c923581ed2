"""What runs are told of the cluster's proxy: where each part comes from (resolve/proxy.py)."""

from __future__ import annotations

from gangplan.trace.cause import Cause, asides
from gangplan.trace.context import TraceContext


def proxy(context: TraceContext, field: str) -> list[Cause]:
    """The address of the proxy, or what is reached without it: also stores that a run may reach directly."""
    found = [context.cluster("proxy", field)]
    around = [context.spec("network", "egress"), context.cluster("egress")]
    if field == "noProxy":
        found.append(context.cluster("domain"))
        around += [cause for name in _stores(context) for cause in _address(context, name)]
        around += [context.spec("data"), context.spec("checkpoint", "to"), context.spec("steps")]
        around += [context.spec("serviceAccount"), context.cluster("workloadIdentity")]
    return [*found, *asides(around)]


def _stores(context: TraceContext) -> list[str]:
    """The connections whose addresses the pods of the run are told."""
    asked = [name for name, target in (context.value("spec", "data") or {}).items() if target == "env"]
    asked.append(str(context.value("spec", "checkpoint", "to")))
    asked += [str(one.get("fetch")).partition("/")[0] for one in context.value("spec", "steps") or ()]
    return [name for name in asked if context.files.has("team", "connections", name)]


def _address(context: TraceContext, name: str) -> list[Cause]:
    return [context.team("connections", name, field) for field in ("endpoint", "egress")]
