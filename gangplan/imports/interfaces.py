"""Drop settings that name network interfaces of a node: pods of a run have their own."""

from __future__ import annotations

import re

from gangplan.imports.account import SourceNode
from gangplan.imports.command import remove_empty_continuations
from gangplan.imports.draft import SpecDraft
from gangplan.plan.launchers import ParsedOption, UnreadableError, find_launchers
from gangplan.plan.problems import WordEdit, correct_launcher_words_in_command
from gangplan.spec.cluster import Cluster

# Variables that name interfaces, and values that say what pods have, too (gangplan/plan/setting_problems.py).
_INTERFACES = re.compile(
    r"(?:NCCL|RCCL|GLOO|TP)_SOCKET_IFNAME|HOROVOD_GLOO_IFACE|(?:I_MPI_)?HYDRA_IFACE|FI_(?:TCP|SOCKETS|UDP)_IFACE"
    r"|(?:OMPI|PRTE|PMIX)_MCA_(?:btl_tcp|oob_tcp|prte|ptl_tcp)_if_include"
)
_CARDS = re.compile(r"(?:eth[1-9]|en[opsx]|em|ib|bond|team|br|hsn|p\d+p)[\w.]*(?:,.*)?")
# `^` excludes what begins so, `^=` what is called so (NCCL 2.28): without eth0, a pod has none left.
_POD_INTERFACES = re.compile(
    r"\^=(?!(?:.*,)?eth0(?:,|$)).*|\^(?!=)(?!(?:.*,)?(?:e|et|eth|eth0)(?:,|$)).*"
    r"|=?(?:lo|e|et|eth|eth0)(?:,(?:lo|eth|eth0))*|[\d.]+/\d+(?:,[\d.]+/\d+)*|"
)
_MCA = "OMPI_MCA_"
_WHY = "the pods of a run have other interfaces than their nodes"


def is_node_interface_setting(name: str, value: str) -> bool:
    """Return whether a variable names interfaces that no pod has, such as NCCL_SOCKET_IFNAME=ens9np0."""
    return bool(
        (_INTERFACES.fullmatch(name) and not _POD_INTERFACES.fullmatch(value))
        or (name == "UCX_NET_DEVICES" and _CARDS.fullmatch(value))
    )


def drop_node_interfaces(draft: SpecDraft, node: SourceNode) -> None:
    """Drop such settings from the variables, flags and command of a draft, unless a pool may give the interfaces.

    `node` is the source's command, where a person is asked about them.
    """
    if any(map(_may_give_interfaces, draft.home.clusters.values())):
        return
    found = _drop_from_env(draft)
    mpi = draft.values.get("mpi", {})
    if "flags" in mpi:
        mpi["flags"] = _drop_from_flags(mpi["flags"], found)
        if not mpi["flags"]:
            del mpi["flags"]
    if isinstance(draft.values.get("command"), list):
        draft.values["command"] = _drop_from_command(draft.values["command"], found)
    if found:
        draft.wonder(
            node,
            f"pods of a run have eth0, and not the node's interfaces; dropped: {', '.join(dict.fromkeys(found))}",
            "Where a fabric gives its interfaces, the platform states it in the cluster's file (docs/fabrics.md).",
        )


def _may_give_interfaces(cluster: Cluster) -> bool:
    networks = (rail.networks for pool in cluster.node_pools.values() for rail in pool.rails)
    return bool(cluster.fabrics) or any(networks)


def _drop_from_env(draft: SpecDraft) -> list[str]:
    env = draft.values.get("env", {})
    lost = {
        name: value
        for name, value in env.items()
        if isinstance(value, str) and is_node_interface_setting(name, value)
    }
    for role in draft.work.roles:
        for one in role.pod.main.env:
            if one.name in lost:
                one.node.account.remark(one.node.path, "dropped", "", _WHY)
    for name in lost:
        del env[name]
    if "env" in draft.values and not env:
        del draft.values["env"]
    return [f"{name}={value}" for name, value in lost.items()]


def _drop_from_flags(flags: list[str], found: list[str]) -> list[str]:
    """Return flags of mpirun without pairs such as `-mca btl_tcp_if_include ens5`."""
    kept, at = list[str](), 0
    while at < len(flags):
        if flags[at].lstrip("-") in ("mca", "prtemca", "pmixmca") and len(flags) > at + 2:
            step = 3
            is_lost = is_node_interface_setting(_MCA + flags[at + 1], flags[at + 2])
        else:
            step, is_lost = 1, False
        (found if is_lost else kept).extend(
            [" ".join(flags[at : at + step])] if is_lost else flags[at : at + step]
        )
        at += step
    return kept


def _drop_from_command(command: list[str], found: list[str]) -> list[str]:
    """Return a command whose launchers no longer set them."""
    words = tuple(command)
    while True:
        try:
            launchers = find_launchers(words, None)
        except UnreadableError:
            return list(words)
        for one in launchers:
            uses = [use for use in one.reading.uses if _is_lost(use)]
            edits = [WordEdit(use.at, use.end) for use in uses]
            changed = correct_launcher_words_in_command(words, one, edits) if edits else None
            if changed:
                found += [" ".join(one.reading.words[use.at : use.end]) for use in uses]
                words = remove_empty_continuations(changed)
                break
        else:
            return list(words)


def _is_lost(use: ParsedOption) -> bool:
    if use.option.role == "env":
        name, _, value = use.value.partition("=")
        return is_node_interface_setting(name, use.values[1] if len(use.values) > 1 else value)
    if use.option.role == "parameter":
        name, _, value = use.value.partition("=")
        return is_node_interface_setting(_MCA + name, use.values[1] if len(use.values) > 1 else value)
    return False
