"""Tables of what a workspace has, one function per table; each row is a mapping from column to value."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

from gangplan.contents.allowed import (
    TableRow,
    format_listed_pool_price,
    list_workspace_endpoint_rows,
    list_workspace_run_limit_rows,
    list_workspace_secret_rows,
)
from gangplan.contents.files import (
    Block,
    WorkspaceFiles,
    get_block,
    get_list,
    get_named_blocks,
    list_visible_subfolders,
    list_workspace_yaml_files,
    read_contents,
    read_rendered_run_state,
)
from gangplan.contents.outline import read_spec_outline
from gangplan.contents.templates import list_workspace_job_template_rows
from gangplan.spec.listing import is_template
from gangplan.spec.root import RENDERED, SPECS

_FIELDS = ("name", "clusters", "image", "profile", "workers", "gpus", "priority", "state")
# Launch scripts, which the runs of a team mount.
_SCRIPTS = re.compile(r"launch\.[0-9a-f]{8}\.yaml")
_SOURCE = "# Rendered by gangplan from "
_PRIORITIES = ["low", "normal", "high"]


def list_workspace_spec_rows(files: WorkspaceFiles) -> Iterator[TableRow]:
    """Yield every spec: the fields of its file, with the defaults of its team for what it does not name."""
    for team in files.wanted_teams or files.team_names:
        home = files.home_of(team)
        defaults = get_block(files.all_teams[team], "defaults")
        for file in list_workspace_yaml_files(f"{files.root}/{SPECS}/{team}", f"{SPECS}/{team}"):
            if file == f"{SPECS}/{team}/team.yaml":
                continue
            data = read_contents(f"{files.root}/{file}")
            if is_template(file, data):
                continue
            spec = read_spec_outline(data, _FIELDS)
            if spec is None:
                files.unread.append(file)
                spec = {}
            clusters = get_list(spec, "clusters") or home
            if files.wanted_clusters and not set(map(str, clusters)) & set(files.wanted_clusters):
                continue
            yield {
                "job": str(spec.get("name") or file.rpartition("/")[2].removesuffix(".yaml")),
                "team": team,
                "clusters": clusters,
                "image": spec.get("image", defaults.get("image")),
                "workers": spec.get("workers", spec.get("profile", defaults.get("workers"))),
                "gpus": spec.get("gpus", None if "profile" in spec else defaults.get("gpus")),
                "priority": spec.get("priority", defaults.get("priority")),
                "state": spec.get("state", "active"),
                "file": file,
            }


def runs(files: WorkspaceFiles) -> Iterator[TableRow]:
    """Yield every run in rendered/, with its spec."""
    for cluster in files.wanted_clusters or list_visible_subfolders(files.root / RENDERED):
        base = files.root / RENDERED / cluster / "runs"
        for team in files.wanted_teams or list_visible_subfolders(base):
            for file in list_workspace_yaml_files(f"{base}/{team}", f"{RENDERED}/{cluster}/runs/{team}"):
                if _SCRIPTS.fullmatch(file.rpartition("/")[2]):
                    continue
                data = read_contents(f"{files.root}/{file}")
                first = data[: data.find(b"\n")].decode("utf-8", "replace")
                if not first.startswith(_SOURCE):
                    continue
                yield {
                    "run": file.rpartition("/")[2].removesuffix(".yaml"),
                    "team": team,
                    "cluster": cluster,
                    "state": read_rendered_run_state(data),
                    "spec": first.removeprefix(_SOURCE).partition(": ")[0],
                    "file": file,
                }


def list_workspace_image_rows(files: WorkspaceFiles) -> Iterator[TableRow]:
    """Yield the images of the catalog; for requested teams, those that their regimes and registries allow."""
    needed = {
        str(regime)
        for name in files.wanted_teams
        for body in (
            files.all_teams[name],
            *(get_named_blocks(one, "teams").get(name, {}) for one in files.clusters.values()),
        )
        for regime in get_list(body, "compliance")
    }
    for name, image in get_named_blocks(files.load("images/catalog.yaml"), "images").items():
        approved = [str(one) for one in get_list(image, "approved")]
        where = [
            cluster
            for cluster, body in files.clusters.items()
            if _may_cluster_pull_image(image, cluster, body)
        ]
        if not needed <= set(approved) or (files.clusters and not where):
            continue
        mpi = get_block(image, "mpi")
        platform = [
            f"{word} {image[key]}" for key, word in (("cuda", "CUDA"), ("rocm", "ROCm")) if key in image
        ]
        yield {
            "image": name,
            "framework": image.get("framework", "mpi"),
            "mpi": " ".join(str(mpi[key]) for key in ("implementation", "version") if key in mpi) or None,
            "gpus": ", ".join(platform) or None,
            "approved": approved,
            "clusters": where,
            "tag": image.get("tag"),
            "repository": image.get("repository"),
            "description": image.get("description"),
        }


def _may_cluster_pull_image(image: Block, cluster: str, body: Block) -> bool:
    """Return whether a cluster may pull the image, mirrors included; `validate` reports why not."""
    own = get_named_blocks(image, "clusters").get(cluster, {}).get("repository")
    place = str(own or image.get("repository", ""))
    if not own:
        mirrors = [one for one in get_list(body, "mirrors") if isinstance(one, dict)]
        for mirror in sorted(mirrors, key=lambda one: -len(str(one.get("source")))):
            if _is_below(place, str(mirror.get("source"))):
                place = f"{mirror.get('mirror')}{place[len(str(mirror.get('source'))) :]}"
                break
    allowed = [str(one) for one in get_list(body, "registries")]
    return not allowed or any(_is_below(place, one) for one in allowed)


def _is_below(place: str, registry: str) -> bool:
    return place == registry or place.startswith(f"{registry}/")


def list_workspace_claim_rows(files: WorkspaceFiles) -> Iterator[TableRow]:
    """Yield what specs can name in data and checkpoint: claims and connections of each team."""
    for team, body in files.teams.items():
        for name, claim in get_named_blocks(body, "claims").items():
            yield {
                "name": name,
                "team": team,
                "kind": "claim",
                "access": get_list(claim, "accessModes"),
                "readOnly": claim.get("readOnly", False),
                "size": claim.get("size"),
                "encrypted": claim.get("encrypted", False),
                "place": claim.get("claimName", name),
            }
        for name, store in get_named_blocks(body, "connections").items():
            yield {
                "name": name,
                "team": team,
                "kind": store.get("type", "s3"),
                "access": _list_bucket_access_ways(store),
                "readOnly": None,
                "size": None,
                "encrypted": None,
                "place": "/".join(
                    str(store[key]) for key in ("endpoint", "bucket", "prefix") if key in store
                ),
            }


def _list_bucket_access_ways(store: Block) -> list[str]:
    """Return how a program accesses a bucket."""
    files = ["files"] if "claim" in store or "mount" in store else []
    return [*files, *(["env"] if store.get("type", "s3") == "s3" else [])]


def list_workspace_pool_rows(files: WorkspaceFiles) -> Iterator[TableRow]:
    """Yield the node pools; for requested teams, those that their queues may use, and the quota there."""
    for cluster, body in files.clusters.items():
        for name, pool in get_named_blocks(body, "nodePools").items():
            quotas = {
                team: get_named_blocks(queue, "quota")
                for team, queue in get_named_blocks(body, "teams").items()
                if team in files.wanted_teams
            }
            # A team with a stated quota cannot use pools that it does not list.
            if quotas and not any(not quota or name in quota for quota in quotas.values()):
                continue
            gpu = get_block(pool, "gpu")
            yield {
                "pool": name,
                "cluster": cluster,
                "nodes": pool.get("count"),
                "cpu": pool.get("cpu"),
                "memory": pool.get("memory"),
                "gpus": gpu.get("count", 0),
                "model": gpu.get("mig", gpu.get("model")),
                "capacity": pool.get("capacity", "on-demand"),
                "network": pool.get("networkGbps"),
                "rdma": bool(pool.get("rdma")) or "fabric" in pool,
                "fabric": pool.get("fabric"),
                "price": format_listed_pool_price(pool),
                **({"quota": _format_listed_pool_quotas(name, quotas)} if quotas else {}),
            }


def _format_listed_pool_quotas(pool: str, quotas: Mapping[str, dict[str, Block]]) -> str:
    """Format the quota of a pool that each requested team has."""
    words = [
        (_format_quota_amounts(quota[pool]) if pool in quota else "none" if quota else "by weight", team)
        for team, quota in quotas.items()
    ]
    return ", ".join(share if len(quotas) == 1 else f"{team}: {share}" for share, team in words)


def list_workspace_queue_rows(files: WorkspaceFiles) -> Iterator[TableRow]:
    """Yield the queue of each team on each cluster."""
    for cluster, body in files.clusters.items():
        highest = get_list(get_block(body, "limits"), "priorities") or _PRIORITIES
        cohorts = list(get_block(body, "cohorts"))
        for team, queue in get_named_blocks(body, "teams").items():
            if files.wanted_teams and team not in files.wanted_teams:
                continue
            row = {
                "queue": queue.get("queue"),
                "team": team,
                "cluster": cluster,
                "clusterQueue": queue.get("clusterQueue", team),
                "cohort": queue.get("cohort", (cohorts or ["training"])[0] if len(cohorts) < 2 else None),
                "weight": queue.get("weight", 1),
                "priorities": get_list(queue, "priorities") or [one for one in highest if one != "critical"],
                "quota": _format_queue_quotas(get_named_blocks(queue, "quota")) or "by weight",
            }
            for name in dict.fromkeys((queue.get("queue"), *sorted(get_block(queue, "localQueues")))):
                yield {**row, "queue": name}


def _format_queue_quotas(shares: dict[str, Block]) -> str | None:
    """Format quotas as `a100: 16 gpus, cpu: 120 cpu`; None if there are none."""
    return ", ".join(f"{pool}: {_format_quota_amounts(share)}" for pool, share in shares.items()) or None


def _format_quota_amounts(share: Block) -> str:
    """Format a quota as `16 gpus`."""
    return " ".join(f"{amount} {what}" for what, amount in share.items()) or "none"


def teams(files: WorkspaceFiles) -> Iterator[TableRow]:
    """Yield the teams: where they may run, and how much they have."""
    for name, body in files.teams.items():
        there = {
            cluster: get_named_blocks(one, "teams").get(name) for cluster, one in files.all_clusters.items()
        }
        own = str(body.get("namespace", name))
        spaces = [queue.get("namespace") or own for queue in there.values() if queue is not None]
        count = (
            sum(1 for _ in list_workspace_yaml_files(f"{files.root}/{SPECS}/{name}", f"{SPECS}/{name}")) - 1
        )
        yield {
            "team": name,
            "namespaces": list(dict.fromkeys(map(str, spaces))),
            "clusters": [cluster for cluster, queue in there.items() if queue is not None],
            "specs": max(count, 0),
            "claims": len(get_block(body, "claims")) + len(get_block(body, "connections")),
            "compliance": get_list(body, "compliance"),
            "podSecurity": [
                f"{cluster}: {level}"
                for cluster, queue in there.items()
                if (level := get_block(queue or {}, "podSecurity").get("level"))
            ],
            "contact": body.get("contact"),
        }


def clusters(files: WorkspaceFiles) -> Iterator[TableRow]:
    """Yield the clusters: where they are, how large, and their versions."""
    for name, body in files.clusters.items():
        sizes = [
            (pool.get("count"), get_block(pool, "gpu").get("count", 0))
            for pool in get_named_blocks(body, "nodePools").values()
        ]
        known = [(nodes, gpus) for nodes, gpus in sizes if isinstance(nodes, int) and isinstance(gpus, int)]
        versions = get_block(body, "versions")
        yield {
            "cluster": name,
            "environment": body.get("environment", "prod"),
            "region": body.get("region"),
            "nodes": sum(nodes for nodes, _ in known),
            "gpus": sum(nodes * gpus for nodes, gpus in known),
            "teams": len(get_block(body, "teams")),
            "kubernetes": versions.get("kubernetes"),
            "trainer": versions.get("trainer"),
            "kueue": versions.get("kueue"),
        }


#: By the name in the command. Policies need more than files: commands/listing.py has them.
LISTING_TABLES: dict[str, Callable[[WorkspaceFiles], Iterator[TableRow]]] = {
    "specs": list_workspace_spec_rows,
    "runs": runs,
    "templates": list_workspace_job_template_rows,
    "images": list_workspace_image_rows,
    "claims": list_workspace_claim_rows,
    "secrets": list_workspace_secret_rows,
    "pools": list_workspace_pool_rows,
    "queues": list_workspace_queue_rows,
    "endpoints": list_workspace_endpoint_rows,
    "limits": list_workspace_run_limit_rows,
    "teams": teams,
    "clusters": clusters,
}
