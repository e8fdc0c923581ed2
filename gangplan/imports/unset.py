"""Ask about variables that a command reads and that nothing sets: the source, a run, or probably the image."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

from gangplan.imports.draft import SpecDraft
from gangplan.plan.launchers import UnreadableError, find_script_index
from gangplan.plan.launchers.shell import SimpleCommand, read_shell_commands

# What a shell, an image, a launcher, a cloud or a controller sets.
_OF_OTHERS = re.compile(
    r"HOME|USER|LOGNAME|E?UID|PWD|OLDPWD|SHELL|SHLVL|TERM|LANG|LC_\w+|TZ|TMP|TEMP|TMPDIR|HOSTNAME|RANDOM|SECONDS|PPID|IFS|REPLY"
    r"|FUNCNAME|LINENO|PIPESTATUS|BASH\w*|OPTARG|OPTIND|EPOCH\w+|PS[0-9]|_|DEBIAN_FRONTEND|VIRTUAL_ENV|\w+_HOME|\w*VERSION"
    r"|(?:\w+_)?(?:LIBRARY|INCLUDE|CONFIG|MODULE)_PATH|PATH|CPATH|MANPATH|PYTHON\w*|LD_\w+"
    r"|(?:CUDA|CUDNN|NV|NVIDIA|ROCM|HIP|ROCR|HSA|NCCL|RCCL|UCX|FI|EFA|OMPI|OPAL|PMI|PMIX|PRTE|MPI|MPICH|I_MPI|HYDRA|MPIEXEC"
    r"|HOROVOD|CONDA|MAMBA|PIP|UV|OMP|MKL|KMP|GOMP|TORCH\w*|PET|JAX|XLA|TPU|MEGASCALE|TF|PADDLE|DMLC|KUBERNETES|JOB|JOBSET|VC|VK"
    r"|SM|SAGEMAKER|AZUREML|AZ|MLFLOW|AWS|AMZN|SLURM|PBS|GANGPLAN)_\w+"
    r"|\w+_SERVICE_(?:HOST|PORT)\w*|(?:\w+_)?(?:RANK|WORLD_SIZE)|MASTER_(?:ADDR|PORT)|NNODES|NUM_NODES|NPROC_PER_NODE"
    r"|TF_CONFIG|MPIRUN|MPIEXEC|SCRATCH_DIR"
)
_SETS = re.compile(
    r"\b(?:for|select)\s+([A-Za-z_]\w*)|\bprintf\s+-v\s+([A-Za-z_]\w*)|\bgetopts\s+\S+\s+([A-Za-z_]\w*)"
)
_SETTING = frozenset(
    {"read", "mapfile", "readarray", "export", "declare", "local", "typeset", "readonly", "unset"}
)
# Commands behind which a script may have any variable.
_LOADING = frozenset({"source", ".", "eval"})
_MOST = 8


def ask_about_unset_variables(draft: SpecDraft) -> None:
    """Ask at its line about each variable that the script of the pods reads and that nothing sets."""
    work, lead = draft.work, draft.work.lead.pod.main
    at = find_script_index(lead.command, 0) if not draft.given_command else -1
    has_others = any(role.pod.main.node["envFrom"] for role in work.roles)
    if at < 0 or has_others:
        return
    known = {*work.sets, *work.renames, *(one.name for role in work.roles for one in role.pod.main.env)}
    known |= draft.values.get("env", {}).keys()
    script = lead.command[at]
    for name, offset, piece in list(find_unset_shell_variables(script, known))[:_MOST]:
        where = lead.node.account.locate(lead.node.path, piece, script.count(piece, 0, offset))
        help = f"Give its value: --set {name}=VALUE; or set it under env:, unless the image does."
        draft.wonder_at(where, f"the command reads ${name}, which nothing sets", help)


def find_unset_shell_variables(script: str, known: Collection[str]) -> Iterator[tuple[str, int, str]]:
    """Yield variables that a script needs and does not set: name, place of the first use, and how it is written.

    One that has a default, or is only looked at, is not needed. A script that loads another may have any variable.
    """
    try:
        commands = read_shell_commands(script)
    except UnreadableError:
        return
    if any(_LOADING & set(one.texts[:1]) for one in commands):
        return
    set_here = set(_list_set_names(commands)) | {
        name for found in _SETS.findall(script) for name in found if name
    }
    seen = {*known, *set_here}
    for command in commands:
        for word in (*command.sets, *command.words):
            for name in word.names:
                if name in seen or not name[0].isidentifier() or _OF_OTHERS.fullmatch(name):
                    continue
                if re.search(rf"\$\{{{name}:?[-=+]|-[nzv]\s+\"?(?:\$\{{?)?{name}\b", script):
                    continue
                found = re.compile(rf"\$\{{?{name}\b").search(script, word.begin, word.end)
                if found is not None:
                    seen.add(name)
                    yield name, found.start(), found[0]


def _list_set_names(commands: Collection[SimpleCommand]) -> Iterator[str]:
    for one in commands:
        for word in one.sets:
            yield re.split(r"\+?=|\[", word.text)[0]
        if one.texts and one.texts[0] in _SETTING:
            for word in one.words[1:]:
                yield word.text.partition("=")[0]
