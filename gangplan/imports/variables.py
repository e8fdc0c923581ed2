"""Map variables and hosts that a source's controller gave its pods to those of a run."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from gangplan.imports.account import SourceNode
from gangplan.imports.draft import SpecDraft
from gangplan.imports.expressions import find_variables_read_by_script
from gangplan.imports.mpijob import MPI_OPERATOR_VARIABLES
from gangplan.imports.workload import PodRole, SourceJob
from gangplan.model.frameworks import MPI_FRAMEWORKS, PADDLE_VARIABLES
from gangplan.plan.launchers import UnreadableError, find_launchers, find_script_index
from gangplan.plan.launchers.shell import read_shell_commands

_KUBELET = re.compile(r"(?<!\$)\$\(([A-Za-z_][A-Za-z0-9_]*)\)")
# What a worker's shell has to set for variables of other controllers, by how the run starts. Trainer v2.3
# sets PET_* and JAX_*, gangplan the variables of plain runs (plan/environment.py).
_TORCH = {
    "RANK": "$PET_NODE_RANK",
    "NODE_RANK": "$PET_NODE_RANK",
    "GROUP_RANK": "$PET_NODE_RANK",
    "NNODES": "$PET_NNODES",
    "NUM_NODES": "$PET_NNODES",
    "WORLD_SIZE": "$PET_NNODES",
    "MASTER_ADDR": "$PET_MASTER_ADDR",
    "MASTER_PORT": "$PET_MASTER_PORT",
    "PET_RDZV_ENDPOINT": "$PET_MASTER_ADDR:$PET_MASTER_PORT",
    "RDZV_ENDPOINT": "$PET_MASTER_ADDR:$PET_MASTER_PORT",
}
_PLAIN = {
    "RANK": "$NODE_RANK",
    "WORLD_SIZE": "$NNODES",
    "PET_NNODES": "$NNODES",
    "PET_NODE_RANK": "$NODE_RANK",
    "PET_MASTER_ADDR": "$MASTER_ADDR",
    "PET_MASTER_PORT": "$MASTER_PORT",
    "PADDLE_MASTER": "$MASTER_ADDR:$MASTER_PORT",
    "PADDLE_NNODES": "$NNODES",
}
_JAX = {
    "COORDINATOR_ADDRESS": "${JAX_COORDINATOR_ADDRESS%:*}",
    "COORDINATOR_PORT": "${JAX_COORDINATOR_ADDRESS##*:}",
    "NUM_PROCESSES": "$JAX_NUM_PROCESSES",
    "PROCESS_ID": "$JAX_PROCESS_ID",
}
_COUNTS = {"torch": "$PET_NNODES", "plain": "$NNODES", "jax": "$JAX_NUM_PROCESSES"}
_INDEX_OF = (
    "$JOB_COMPLETION_INDEX"  # the Job controller gives it to pods of an Indexed Job, as those of a run are
)
# Files that other controllers put into their pods.
_HOST_FILES = re.compile(r"/etc/(?:volcano|mpi)/[\w.-]+")
_MEETING = {"torch": "$PET_MASTER_ADDR", "plain": "$MASTER_ADDR", "jax": "${JAX_COORDINATOR_ADDRESS%:*}"}
SET_BY_TORCHRUN = frozenset(
    {
        *(
            "MASTER_ADDR",
            "MASTER_PORT",
            "WORLD_SIZE",
            "RANK",
            "LOCAL_RANK",
            "NODE_RANK",
            "NNODES",
            "NPROC_PER_NODE",
        ),
        *("LOCAL_WORLD_SIZE", "GROUP_RANK", "PET_RDZV_ENDPOINT", "PET_RDZV_BACKEND", "RDZV_ENDPOINT"),
    }
)


# What the pods of a run have under the names of the source.
_HELD = {
    "torch": SET_BY_TORCHRUN
    | {"PET_NNODES", "PET_NODE_RANK", "PET_NPROC_PER_NODE", "PET_MASTER_ADDR", "PET_MASTER_PORT"},
    "plain": frozenset({"MASTER_ADDR", "MASTER_PORT", "NNODES", "NODE_RANK"}),
    "tensorflow": frozenset({"TF_CONFIG", "NODE_RANK"}),
    "paddle": frozenset(PADDLE_VARIABLES),
    **dict.fromkeys(MPI_FRAMEWORKS, MPI_OPERATOR_VARIABLES),
}


def script_in(words: Sequence[str]) -> int:
    """Return the index of the script that a command passes to a shell; -1 without one."""
    return find_script_index(words, 0)


def convert_kubelet_variables_for_shell(words: Sequence[str], known: Collection[str]) -> tuple[str, ...]:
    """Return the command with `$(NAME)` in its script as a shell reads it, if pods start with NAME set.

    The kubelet fills that in; in a run it would not if the container's own list has no variable of that name.
    """
    at = script_in(words)
    if at < 0:
        return tuple(words)
    text = _KUBELET.sub(lambda found: f"${{{found[1]}}}" if found[1] in known else found[0], words[at])
    return (*words[:at], text, *words[at + 1 :])


def rewrite_imported_command(
    draft: SpecDraft,
    words: tuple[str, ...],
    framework: str,
    node: SourceNode,
    role: PodRole | None = None,
) -> tuple[str, ...]:
    """Return the command of a run: its script first sets the variables of the source's controller.

    The address of the first worker is also replaced. What cannot be expressed like this is asked about.
    `role` is the one whose command it is, other than the workers.
    """
    given = words
    words = _replace_source_host_names(draft, words, framework, node)
    if words != given and role is None:
        draft.command_why = "the pods of a run have names of their own"
    names = _map_controller_variables(draft.work, framework, role)
    left = {
        found[1]
        for word in words
        for found in _KUBELET.finditer(word)
        if found[1] in draft.work.sets | set(names)
    }
    if left:
        shown = ", ".join(f"$({name})" for name in sorted(left))
        draft.wonder(
            node,
            f"the command is given {shown}, which the pods of a run do not have",
            "Write it as a shell's script (bash -c '...'), or let the program read its rank itself.",
        )
    ask_about_host_files(draft, words, node)
    at = script_in(words)
    if at < 0:
        return words
    told = _find_unset_script_variables(draft.work, words, at, framework, role)
    ask_about_absent_variables(draft, words, framework, node, role)
    if not told:
        return words
    exports = " ".join(f'{name}="{value}"' for name, value in told.items())
    if role is None:
        draft.command_why = (
            f"the pods of a run have {', '.join(told)} by other names, which the script says first"
        )
    return (*words[:at], f"export {exports}\n{words[at].lstrip()}", *words[at + 1 :])


def ask_about_host_files(draft: SpecDraft, words: Sequence[str], node: SourceNode) -> None:
    """Ask about files of hosts that other controllers put into their pods, and that a command still names."""
    if files := sorted({found for word in words for found in _HOST_FILES.findall(word)}):
        draft.wonder(
            node,
            f"the command reads {', '.join(files)}, which the pods of a run do not have",
            "Let the program find the workers by the variables of its framework (docs/job-commands.md).",
        )


def ask_about_absent_variables(
    draft: SpecDraft,
    words: Sequence[str],
    framework: str,
    node: SourceNode,
    role: PodRole | None = None,
) -> None:
    """Ask about variables of the source's controller that a script reads and nothing in a run sets."""
    work, at = draft.work, script_in(words)
    if at < 0:
        return
    known = {*_HELD.get(framework, ()), *_map_controller_variables(work, framework, role)}
    known |= {path.removeprefix("env/") for path in work.values}
    names = sorted(_find_names_to_set(work, words[at], framework, role) & (work.sets - known))
    if names:
        draft.wonder(
            node,
            f"the command reads {', '.join(f'${name}' for name in names)}, which the pods of a run do not have",
            "Let the program find the workers by the variables of its framework (docs/job-commands.md).",
        )


def _map_renamed_variables(work: SourceJob, framework: str, role: PodRole | None) -> dict[str, str]:
    """Return the source's own variables with their values in a run.

    Pods of several roles that became workers are numbered through, so that the index in one of them is lost.
    """
    count = _COUNTS.get(framework, str(sum(one.count for one in work.roles)))
    is_merged = role is None and len(work.roles) > 1
    values = {"count": count, "index": _INDEX_OF}
    found = {
        name: values.get(what, what)
        for name, what in work.renames.items()
        if not (is_merged and what == "index")
    }
    for one in work.numbers:
        found |= one.exports if one.pod is (role or work.workers).pod else {}
    return found


def _map_controller_variables(work: SourceJob, framework: str, role: PodRole | None) -> dict[str, str]:
    of_framework = {"torch": _TORCH, "plain": _PLAIN, "jax": _JAX}.get(framework, {}) if role is None else {}
    of_source = {} if framework in MPI_FRAMEWORKS else _map_renamed_variables(work, framework, role)
    return {**of_framework, **of_source}


def _find_unset_script_variables(
    work: SourceJob, words: Sequence[str], at: int, framework: str, role: PodRole | None
) -> dict[str, str]:
    """Return the variables that the script reads and nothing sets, with their values in a run."""
    names = _map_controller_variables(work, framework, role)
    try:
        if framework == "torch" and not find_launchers(words, None):
            names = _map_renamed_variables(
                work, framework, role
            )  # torchrun starts the whole script, and sets the rest
    except UnreadableError:
        return {}  # a finding reports it
    unset = _find_names_to_set(work, words[at], framework, role)
    return {name: value for name, value in names.items() if name in unset}


def _find_names_to_set(work: SourceJob, script: str, framework: str, role: PodRole | None) -> set[str]:
    """Return the variables that a script reads, and that neither it nor the source's own list sets."""
    used = find_variables_read_by_script(script)
    try:
        set_here = {word.text.partition("=")[0] for one in read_shell_commands(script) for word in one.sets}
    except UnreadableError:
        set_here = set()
    of_spec = {
        one.name
        for other in (*work.roles, *((role,) if role else ()))
        for one in other.pod.main.env
        if not (framework == "torch" and one.name in SET_BY_TORCHRUN) and one.name not in work.sets
    }
    return used - set_here - of_spec


def _replace_source_host_names(
    draft: SpecDraft, words: tuple[str, ...], framework: str, node: SourceNode
) -> tuple[str, ...]:
    """Replace the name of the source's first pod by an address in a run; ask about other names."""
    work = draft.work
    if not work.hosts:
        return words
    first, at = re.compile(work.first_host or r"(?!)"), script_in(words)
    place = _MEETING.get(framework, "")
    if at >= 0 and place:
        words = (*words[:at], first.sub(lambda _: place, words[at]), *words[at + 1 :])
    if any(re.search(work.hosts, word) for word in words):
        draft.wonder(
            node,
            "the command names pods of the source, and those of a run have other names",
            f"Take the address of the first worker from {place or 'the launcher'}, in a shell's script.",
        )
    return words
