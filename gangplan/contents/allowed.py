"""Tables of what specs may name besides images, claims and pools: secrets, endpoints, and limits."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from gangplan.contents.files import WorkspaceFiles, get_block, get_list, get_named_blocks

TableRow = dict[str, Any]
#: Defaults of a cluster's `limits`, as its format has them; importing the format would load its models for
#: each list.
LIMITS = {"workers": 100, "timeoutHours": 168, "trials": 500, "teamShare": 100}


def list_workspace_secret_rows(files: WorkspaceFiles) -> Iterator[TableRow]:
    """Yield the Secrets and ConfigMaps of each team's namespace, by the names that specs use."""
    for team, body in files.teams.items():
        for kind, field in (("Secret", "secrets"), ("ConfigMap", "configMaps")):
            for name in get_list(body, field):
                yield {"name": str(name), "team": team, "kind": kind}


def list_workspace_endpoint_rows(files: WorkspaceFiles) -> Iterator[TableRow]:
    """Yield what network.egress can name, with its addresses and TCP ports."""
    for cluster, body in files.clusters.items():
        for name, targets in get_block(body, "egress").items():
            known = [one for one in targets if isinstance(one, dict)] if isinstance(targets, list) else []
            ports = dict.fromkeys(str(port) for one in known for port in get_list(one, "ports"))
            yield {
                "endpoint": name,
                "cluster": cluster,
                "ports": list(ports),
                "addresses": [str(one.get("cidr")) for one in known],
            }


def list_workspace_run_limit_rows(files: WorkspaceFiles) -> Iterator[TableRow]:
    """Yield the most that one run may have on each cluster, with defaults for what the file leaves out."""
    for cluster, body in files.clusters.items():
        stated = LIMITS | get_block(body, "limits")
        own = {
            team: queue["timeoutHours"]
            for team, queue in get_named_blocks(body, "teams").items()
            if "timeoutHours" in queue and (not files.wanted_teams or team in files.wanted_teams)
        }
        yield {
            "cluster": cluster,
            "workers": stated["workers"],
            "timeout": f"{stated['timeoutHours']}h",
            "teamTimeouts": [f"{team}: {hours}h" for team, hours in own.items()],
            "trials": stated["trials"],
            "teamShare": f"{stated['teamShare']}%",
        }


def format_listed_pool_price(pool: dict[str, Any]) -> str | None:
    """Format a price as `2.5 per GPU-hour less 20%`, in the currency of the platform; None if there is
    none."""
    stated = get_block(pool, "price")
    words = {"perGpuHour": "GPU-hour", "perCpuHour": "CPU-hour"}
    less = f" less {stated['discount']}%" if stated.get("discount") else ""
    return (
        ", ".join(f"{stated[key]} per {what}{less}" for key, what in words.items() if key in stated) or None
    )
