"""Ask about variables that a command reads and that nothing sets: the source, a run, or probably the image."""

from __future__ import annotations

import re

from gangplan.imports.draft import SpecDraft
from gangplan.plan.launchers import find_script_index
from gangplan.plan.unset import find_unset_shell_variables

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
    script, node = lead.command[at], lead.node["command"] or lead.node["args"] or lead.node
    for name, offset, piece in list(find_unset_shell_variables(script, known, _OF_OTHERS.fullmatch))[:_MOST]:
        where = lead.node.account.locate(lead.node.path, piece, script.count(piece, 0, offset))
        is_filled = piece.startswith("$")  # a bare name is one of arithmetic, where --set fills in nothing
        help = f"Give its value: --set {name}=VALUE; or set it" if is_filled else "Set it"
        help = f"{help} under env:, unless the image does."
        draft.wonder_at(where, f"the command reads ${name}, which nothing sets", help, node)
