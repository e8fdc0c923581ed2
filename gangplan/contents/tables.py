"""Tables of what a workspace has, one function per table; each row is a mapping from column to value."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from gangplan.contents.allowed import endpoints, limits, price, secrets
from gangplan.contents.files import (
    RENDERED,
    Block,
    Files,
    block,
    blocks,
    contents,
    entries,
    folders,
    state_of_run,
    yaml_files,
)
from gangplan.contents.outline import outline
from gangplan.contents.templates import templates
from gangplan.spec.listing import is_template
from gangplan.spec.root import SPECS

Row = dict[str, Any]

_FIELDS = ("name", "clusters", "image", "profile", "workers", "gpus", "priority", "state")
# Launch scripts, which the runs of a team mount.
_SCRIPTS = re.compile(r"launch\.[0-9a-f]{8}\.yaml")
_SOURCE = "# Rendered by gangplan from "
_PRIORITIES = ["low", "normal", "high"]


def specs(files: Files) -> Iterator[Row]:
    """Yield every spec: the fields of its file, with the defaults of its team for what it does not name."""
    for team in files.wanted_teams or files.team_names:
        home = files.home_of(team)
        defaults = block(files.all_teams[team], "defaults")
        for file in yaml_files(f"{files.root}/{SPECS}/{team}", f"{SPECS}/{team}"):
            if file == f"{SPECS}/{team}/team.yaml":
                continue
            data = contents(f"{files.root}/{file}")
            if is_template(file, data):
                continue
            spec = outline(data, _FIELDS)
            if spec is None:
                files.unread.append(file)
                spec = {}
            clusters = entries(spec, "clusters") or home
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


def runs(files: Files) -> Iterator[Row]:
    """Yield every run in rendered/, with its spec."""
    for cluster in files.wanted_clusters or folders(files.root / RENDERED):
        base = files.root / RENDERED / cluster / "runs"
        for team in files.wanted_teams or folders(base):
            for file in yaml_files(f"{base}/{team}", f"{RENDERED}/{cluster}/runs/{team}"):
                if _SCRIPTS.fullmatch(file.rpartition("/")[2]):
                    continue
                data = contents(f"{files.root}/{file}")
                first = data[: data.find(b"\n")].decode("utf-8", "replace")
                if not first.startswith(_SOURCE):
                    continue
                yield {
                    "run": file.rpartition("/")[2].removesuffix(".yaml"),
                    "team": team,
                    "cluster": cluster,
                    "state": state_of_run(data),
                    "spec": first.removeprefix(_SOURCE),
                    "file": file,
                }


def images(files: Files) -> Iterator[Row]:
    """Yield the images of the catalog; for requested teams, those that their regimes and registries allow."""
    needed = {
        str(regime)
        for name in files.wanted_teams
        for body in (
            files.all_teams[name],
            *(blocks(one, "teams").get(name, {}) for one in files.clusters.values()),
        )
        for regime in entries(body, "compliance")
    }
    for name, image in blocks(files.load("images/catalog.yaml"), "images").items():
        approved = [str(one) for one in entries(image, "approved")]
        where = [cluster for cluster, body in files.clusters.items() if _may_pull(image, cluster, body)]
        if not needed <= set(approved) or (files.clusters and not where):
            continue
        mpi = block(image, "mpi")
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


def _may_pull(image: Block, cluster: str, body: Block) -> bool:
    """Return whether a cluster may pull the image, mirrors included; `validate` reports why not."""
    own = blocks(image, "clusters").get(cluster, {}).get("repository")
    place = str(own or image.get("repository", ""))
    if not own:
        mirrors = [one for one in entries(body, "mirrors") if isinstance(one, dict)]
        for mirror in sorted(mirrors, key=lambda one: -len(str(one.get("source")))):
            if _is_below(place, str(mirror.get("source"))):
                place = f"{mirror.get('mirror')}{place[len(str(mirror.get('source'))) :]}"
                break
    allowed = [str(one) for one in entries(body, "registries")]
    return not allowed or any(_is_below(place, one) for one in allowed)


def _is_below(place: str, registry: str) -> bool:
    return place == registry or place.startswith(f"{registry}/")


def claims(files: Files) -> Iterator[Row]:
    """Yield what specs can name in data and checkpoint: claims and connections of each team."""
    for team, body in files.teams.items():
        for name, claim in blocks(body, "claims").items():
            yield {
                "name": name,
                "team": team,
                "kind": "claim",
                "access": entries(claim, "accessModes"),
                "readOnly": claim.get("readOnly", False),
                "size": claim.get("size"),
                "encrypted": claim.get("encrypted", False),
                "place": claim.get("claimName", name),
            }
        for name, store in blocks(body, "connections").items():
            yield {
                "name": name,
                "team": team,
                "kind": store.get("type", "s3"),
                "access": _ways(store),
                "readOnly": None,
                "size": None,
                "encrypted": None,
                "place": "/".join(
                    str(store[key]) for key in ("endpoint", "bucket", "prefix") if key in store
                ),
            }


def _ways(store: Block) -> list[str]:
    """Return how a program accesses a bucket."""
    files = ["files"] if "claim" in store or "mount" in store else []
    return [*files, *(["env"] if store.get("type", "s3") == "s3" else [])]


def pools(files: Files) -> Iterator[Row]:
    """Yield the node pools; for requested teams, those that their queues may use, and the quota there."""
    for cluster, body in files.clusters.items():
        for name, pool in blocks(body, "nodePools").items():
            quotas = {
                team: blocks(queue, "quota")
                for team, queue in blocks(body, "teams").items()
                if team in files.wanted_teams
            }
            # A team with a stated quota cannot use pools that it does not list.
            if quotas and not any(not quota or name in quota for quota in quotas.values()):
                continue
            gpu = block(pool, "gpu")
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
                "price": price(pool),
                **({"quota": _quotas(name, quotas)} if quotas else {}),
            }


def _quotas(pool: str, quotas: Mapping[str, dict[str, Block]]) -> str:
    """Format the quota of a pool that each requested team has."""
    words = [
        (_share(quota[pool]) if pool in quota else "none" if quota else "by weight", team)
        for team, quota in quotas.items()
    ]
    return ", ".join(share if len(quotas) == 1 else f"{team}: {share}" for share, team in words)


def queues(files: Files) -> Iterator[Row]:
    """Yield the queue of each team on each cluster."""
    for cluster, body in files.clusters.items():
        highest = entries(block(body, "limits"), "priorities") or _PRIORITIES
        cohorts = list(block(body, "cohorts"))
        for team, queue in blocks(body, "teams").items():
            if files.wanted_teams and team not in files.wanted_teams:
                continue
            row = {
                "queue": queue.get("queue"),
                "team": team,
                "cluster": cluster,
                "clusterQueue": queue.get("clusterQueue", team),
                "cohort": queue.get("cohort", (cohorts or ["training"])[0] if len(cohorts) < 2 else None),
                "weight": queue.get("weight", 1),
                "priorities": entries(queue, "priorities") or [one for one in highest if one != "critical"],
                "quota": _shares(blocks(queue, "quota")) or "by weight",
            }
            for name in dict.fromkeys((queue.get("queue"), *sorted(block(queue, "localQueues")))):
                yield {**row, "queue": name}


def _shares(shares: dict[str, Block]) -> str | None:
    """Format quotas as `a100: 16 gpus, cpu: 120 cpu`; None if there are none."""
    return ", ".join(f"{pool}: {_share(share)}" for pool, share in shares.items()) or None


def _share(share: Block) -> str:
    """Format a quota as `16 gpus`."""
    return " ".join(f"{amount} {what}" for what, amount in share.items()) or "none"


def teams(files: Files) -> Iterator[Row]:
    """Yield the teams: where they may run, and how much they have."""
    for name, body in files.teams.items():
        there = {cluster: blocks(one, "teams").get(name) for cluster, one in files.all_clusters.items()}
        own = str(body.get("namespace", name))
        spaces = [queue.get("namespace") or own for queue in there.values() if queue is not None]
        count = sum(1 for _ in yaml_files(f"{files.root}/{SPECS}/{name}", f"{SPECS}/{name}")) - 1
        yield {
            "team": name,
            "namespaces": list(dict.fromkeys(map(str, spaces))),
            "clusters": [cluster for cluster, queue in there.items() if queue is not None],
            "specs": max(count, 0),
            "claims": len(block(body, "claims")) + len(block(body, "connections")),
            "compliance": entries(body, "compliance"),
            "podSecurity": [
                f"{cluster}: {level}"
                for cluster, queue in there.items()
                if (level := block(queue or {}, "podSecurity").get("level"))
            ],
            "contact": body.get("contact"),
        }


def clusters(files: Files) -> Iterator[Row]:
    """Yield the clusters: where they are, how large, and their versions."""
    for name, body in files.clusters.items():
        sizes = [
            (pool.get("count"), block(pool, "gpu").get("count", 0))
            for pool in blocks(body, "nodePools").values()
        ]
        known = [(nodes, gpus) for nodes, gpus in sizes if isinstance(nodes, int) and isinstance(gpus, int)]
        versions = block(body, "versions")
        yield {
            "cluster": name,
            "environment": body.get("environment", "prod"),
            "region": body.get("region"),
            "nodes": sum(nodes for nodes, _ in known),
            "gpus": sum(nodes * gpus for nodes, gpus in known),
            "teams": len(block(body, "teams")),
            "kubernetes": versions.get("kubernetes"),
            "trainer": versions.get("trainer"),
            "kueue": versions.get("kueue"),
        }


#: By the name in the command. Policies need more than files: commands/listing.py has them.
TABLES: dict[str, Callable[[Files], Iterator[Row]]] = {
    "specs": specs,
    "runs": runs,
    "templates": templates,
    "images": images,
    "claims": claims,
    "secrets": secrets,
    "pools": pools,
    "queues": queues,
    "endpoints": endpoints,
    "limits": limits,
    "teams": teams,
    "clusters": clusters,
}
