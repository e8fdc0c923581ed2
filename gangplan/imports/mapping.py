"""Map a workload of another system to a draft spec."""

from __future__ import annotations

from typing import get_args

from gangplan.imports.account import SourceNode
from gangplan.imports.caches import rewrite_moved_folders
from gangplan.imports.command import ConvertedCommand, UnreadableError, convert_command
from gangplan.imports.containers import map_containers_to_setup_and_sidecars
from gangplan.imports.draft import ImportTarget, SpecDraft
from gangplan.imports.environment import map_imported_env
from gangplan.imports.hints import map_hints_about_machines, map_import_hints, settle_rank_start_by_image
from gangplan.imports.identity import build_migrated_name, map_identity
from gangplan.imports.images import map_imported_image_to_catalog
from gangplan.imports.interfaces import drop_node_interfaces
from gangplan.imports.placement import account_for_imported_placement, map_imported_placement
from gangplan.imports.platform import map_imported_devices_and_fabric
from gangplan.imports.podfields import map_imported_pod_fields
from gangplan.imports.pods import SourceContainer
from gangplan.imports.resources import map_imported_resources
from gangplan.imports.roles import map_imported_roles
from gangplan.imports.servers import account_for_worker_ssh_servers
from gangplan.imports.steps import map_imported_steps
from gangplan.imports.times import map_imported_exit_codes, map_time_limit_retries_and_priority
from gangplan.imports.variables import (
    ask_about_absent_variables,
    ask_about_host_files,
    convert_kubelet_variables_for_shell,
    rewrite_imported_command,
)
from gangplan.imports.volumes import map_imported_volumes
from gangplan.imports.workload import PodRole, SourceJob
from gangplan.imports.written import ask_about_entrypoint_with_program, set_converted_command_in_spec
from gangplan.model.frameworks import MPI_FRAMEWORKS, ONE_RANK_FRAMEWORKS, Framework
from gangplan.plan.launchers import MpiGeneration, find_launchers
from gangplan.rules.imports import IMPORT_ENTRYPOINT, IMPORT_SCRIPT

_FAMILIES: dict[str, MpiGeneration] = {"OpenMPI": "OpenMPI4", "IntelMPI": "IntelMPI", "MPICH": "MPICH"}

_LONGEST_SWEEP = 26
_NPROC = "PET_NPROC_PER_NODE"


def draft_spec_of_imported_job(work: SourceJob, home: ImportTarget) -> SpecDraft:
    """Return the draft spec of a workload; its account covers all that gangplan knows."""
    settle_rank_start_by_image(work, home)
    draft = SpecDraft(work, home, build_migrated_name(work.name))
    if work.trials is not None:  # a trial's part of the name takes the rest of what a pod may have
        draft.name = draft.name[:_LONGEST_SWEEP].rstrip("-")
    command = _convert_lead_command(draft)
    map_identity(draft)
    for role in reversed(work.roles):
        map_imported_resources(draft, role)
    map_imported_workers_and_ranks(draft, command)
    _ask_about_command_without_launcher(draft, command)
    _map_training_image(draft, command)
    _map_launch_options(draft, command)
    for role in work.roles:  # an MPI launcher passes its variables on
        map_imported_env(draft, role)
        map_imported_volumes(draft, role)
    map_imported_placement(draft, work.workers.pod)
    for role in work.roles:
        map_imported_pod_fields(draft, role)
        if role is not work.workers:
            account_for_imported_placement(draft, role)
    map_hints_about_machines(draft)
    map_imported_devices_and_fabric(draft)
    for role in work.roles:
        map_containers_to_setup_and_sidecars(draft, role)
    drop_node_interfaces(draft, work.lead.pod.main.node["command"] or work.lead.pod.main.node)
    account_for_worker_ssh_servers(draft)
    map_import_hints(draft)
    map_time_limit_retries_and_priority(draft)
    map_imported_exit_codes(draft, work.framework or command.framework or work.start)
    for path, value in work.values.items():
        draft.put(path, value)
    for node, message, help in work.questions:
        draft.wonder(node, message, help)
    for one in work.losses:
        draft.wonder(one.node, one.why, one.help)
        draft.miss(one.area, one.what, one.source, one.run, one.why)
    map_imported_steps(draft)
    map_imported_roles(
        draft, draft.values.get("framework") or work.framework or command.framework or work.start
    )
    rewrite_moved_folders(draft)
    return draft


def _convert_lead_command(draft: SpecDraft) -> ConvertedCommand:
    """Return the command of the pod that starts the ranks, without what the run knows."""
    work = draft.work
    lead = work.lead.pod.main
    node = lead.node["command"] or lead.node["args"] or lead.node
    words = convert_kubelet_variables_for_shell(
        _map_source_pod_start_command(draft, lead, node),
        {*work.sets, *(one.name for one in lead.env if one.source)},
    )
    env = {one.name: one.value or "" for one in lead.env if one.source == ""}
    try:
        found = convert_command(
            words, _FAMILIES.get(work.mpi or ("OpenMPI" if work.start == "mpi" else "")), env
        )
    except UnreadableError as error:
        draft.refuse(IMPORT_SCRIPT, node, f"the script cannot be read: {error} is not closed", "Close it.")
        found = ConvertedCommand(())
    draft.command_why = found.why
    for loss, why in found.losses:
        work.notes.append(f"{loss}: {why}")
    if found.is_elastic:
        draft.wonder(
            node, "the number of ranks may change while it runs; that of a run stays", "Choose workers."
        )
    for question in found.questions:
        draft.wonder(node, question, "Read the command of the spec, and correct it.")
    for role in work.roles:
        if role.pod.main is not lead and role is not work.launcher and not work.launcher:
            _map_other_role_command(draft, role, lead)
    framework = work.framework or found.framework or work.start
    if found.command and framework not in MPI_FRAMEWORKS:
        found.command = rewrite_imported_command(draft, found.command, framework, node)
    elif found.command:
        ask_about_absent_variables(draft, found.command, framework, node)
        ask_about_host_files(draft, found.command, node)
    set_converted_command_in_spec(draft, found, node)
    return found


def _ask_about_command_without_launcher(draft: SpecDraft, found: ConvertedCommand) -> None:
    """Ask about a command of MPI that starts no ranks; a job of one rank needs nothing that does."""
    work, main = draft.work, draft.work.lead.pod.main.node
    if found.is_once and found.command and work.start == "mpi" and not work.starts_ranks and work.ranks > 1:
        draft.wonder(
            main["command"] or main["args"] or main,
            f"nothing in the command starts ranks, so that it ran once, on the launcher; in a run every rank starts {found.command[0]}",
            "Write the mpirun of the script into the command, or the program alone.",
        )


def _map_source_pod_start_command(
    draft: SpecDraft, lead: SourceContainer, node: SourceNode
) -> tuple[str, ...]:
    """Return what the pod starts: the user's command, else its own; empty if only the image knows it."""
    words = lead.command
    if draft.home.answers.command:
        words = draft.given_command = ("bash", "-c", draft.home.answers.command)
    elif lead.has_entrypoint and words and not words[0].startswith("-"):
        ask_about_entrypoint_with_program(draft, node, words[0])
    elif lead.has_entrypoint:
        draft.refuse(
            IMPORT_ENTRYPOINT,
            node,
            "there is no command: the image's own entrypoint starts the program, and a spec has to name it",
            "Look it up (skopeo inspect --config docker://IMAGE), and give it: --command 'PROGRAM ...'.",
        )
        words = ()
    return words


def _map_other_role_command(draft: SpecDraft, role: PodRole, lead: SourceContainer) -> None:
    """Map the command of a role other than the one whose command the run has."""
    main = role.pod.main
    is_same = main.command == lead.command or _extract_container_program(main) == _extract_container_program(
        lead
    )
    for node in (main.node["command"], main.node["args"]):
        if is_same:
            node.mapped("command")
        elif node:
            draft.ask(
                node,
                f"the {role.name} starts another command; all workers of a run start one",
                "Let the program tell its rank.",
            )
    if main.has_entrypoint and not main.command and not lead.has_entrypoint:
        draft.wonder(
            main.node,
            f"the {role.name} has no command, so that its image's own entrypoint starts it; in a run it starts that of the others",
            "Check that all of them are meant to start the same program.",
        )


def _extract_container_program(container: SourceContainer) -> tuple[str, ...]:
    """Return the command without what only the run knows, such as the number of the pod."""
    try:
        return convert_command(container.command, None, {}).command
    except UnreadableError:
        return container.command


def map_imported_workers_and_ranks(draft: SpecDraft, command: ConvertedCommand) -> None:
    """Set workers and ranks per worker."""
    work = draft.work
    roles = [role for role in work.roles if role is not work.launcher or work.runs_on_launcher]
    workers = sum(role.count for role in roles)
    if workers < 1:
        draft.wonder(work.account.root(), "the source has no worker; one is assumed", "Correct workers.")
        workers = 1
    draft.put("workers", workers)
    draft.origins["workers"] = (
        work.settings["workers"].node if "workers" in work.settings else work.account.root()
    )
    _map_elastic_workers(draft, command, workers)
    gpus = draft.values.get("gpus", 0)
    usual = gpus or 1
    is_one = (work.framework or command.framework or work.start) in ONE_RANK_FRAMEWORKS
    slots = 1 if is_one else _compute_imported_ranks_per_worker(draft, command, workers, usual)
    if slots != usual and not is_one:
        draft.put("slots", slots)
    work.ranks = work.ranks or workers * slots
    _ask_about_launches_with_other_counts(draft, command, workers, workers * slots)


def _ask_about_launches_with_other_counts(
    draft: SpecDraft, command: ConvertedCommand, workers: int, ranks: int
) -> None:
    """Ask at each launch of a script that starts another number of ranks than all launches of the run do."""
    counts = [one.ranks or (one.per_worker or 0) * workers for one in command.launches]
    stated = sorted({count for count in counts if count})
    if len(stated) < 2:
        return
    main = draft.work.lead.pod.main.node
    node = main["command"] or main["args"] or main
    for one, count in zip(command.launches, counts, strict=True):
        if count in (0, ranks):
            continue
        others = " and ".join(str(number) for number in stated if number != count)
        where = main.account.locate(main.path, one.text, one.number)
        message = f"this launch starts {count} rank{'s' * (count > 1)}, others of the command {others}; in the run it starts all {ranks}, as each of them does"
        help = "Make a job of each number of ranks; what one rank does needs no mpirun."
        draft.wonder_at(where, message, help, node)


def _has_launcher_in_script(words: tuple[str, ...]) -> bool:
    """Return whether a script starts the ranks itself."""
    try:
        return bool(find_launchers(words, None))
    except UnreadableError:
        return True


def _map_elastic_workers(draft: SpecDraft, command: ConvertedCommand, workers: int) -> None:
    """Set the range of workers, if the source has one.

    A run of torch starts with all of its workers, and may lose some.
    """
    stated = draft.work.elastic
    span = stated.span if stated else command.elastic
    if span is None:
        return
    framework = draft.work.framework or command.framework or draft.work.start
    if framework == "torch" and span[0] < workers and not _has_launcher_in_script(command.command):
        restarts = min(stated.restarts, 100) if stated and stated.restarts is not None else None
        draft.values.pop("workers", None)
        value = {"min": span[0], "max": workers, **({"restarts": restarts} if restarts is not None else {})}
        draft.put("elastic", value, stated.node if stated else None)
    elif stated and span != (workers, workers):
        draft.ask(
            stated.node,
            f"from {span[0]} to {span[1]} workers may train; the number of a run stays",
            "Choose workers.",
        )
    elif stated:
        stated.node.same("a run has all of its workers")


def _compute_imported_ranks_per_worker(
    draft: SpecDraft, command: ConvertedCommand, workers: int, usual: int
) -> int:
    """Return the ranks per worker: what the launcher states, else what its controller does."""
    work = draft.work
    stated = work.settings.get("slots")
    told, main = int(stated.value) if stated else None, work.lead.pod.main
    node = stated.node if stated else main.node
    if command.framework == "deepspeed" and (told is None or work.start == "torch"):
        return command.per_worker or usual  # a rank for each GPU of a host (deepspeed/launcher/runner.py)
    if command.starts_one and _NPROC not in work.sets and not any(one.name == _NPROC for one in main.env):
        return told or 1
    if work.start == "torch" or command.framework == "paddle":
        if command.framework not in ("torch", "paddle"):
            return told or 1
        if command.ranks and command.ranks % workers == 0:
            return command.ranks // workers
        return command.per_worker or told or usual
    slots = command.per_worker or told or 1
    if command.ranks is None or command.ranks == workers * slots:
        return slots
    if command.ranks % workers == 0:
        return command.ranks // workers
    work.ranks = command.ranks
    draft.wonder(
        node,
        f"the launcher starts {command.ranks} ranks on {workers} workers with {slots} slots each; a run starts {workers * slots}, the same number on each",
        "Correct workers and slots.",
    )
    return slots


def _map_training_image(draft: SpecDraft, command: ConvertedCommand) -> None:
    """Set the image of the pods that train, and how it starts ranks."""
    work, pod = draft.work, draft.work.workers.pod
    framework = work.framework or command.framework or work.start
    if framework not in get_args(Framework):
        draft.wonder(
            pod.main.node["command"] or pod.main.node,
            "each pod starts its program once and none knows of the others; the ranks of a run are started by torchrun or MPI",
            "Choose framework: torch or mpi, and an image that has it.",
        )
        framework = "torch"
    node = pod.main.node["image"]
    map_imported_image_to_catalog(draft, pod.main.image, node if node else None, pod, framework)
    name = draft.values.get("image")
    catalog = draft.home.workspace.catalog
    entry = catalog.images.get(name) if catalog and name else None
    if (
        entry is not None
        and entry.framework != framework
        and not {entry.framework, framework} <= set(MPI_FRAMEWORKS)
    ):
        draft.put("framework", framework)
    for role in work.roles:
        other = role.pod.main.node["image"]
        if other.text() == pod.main.image:
            other.mapped("image")
        elif other:
            draft.ask(
                other,
                f"the {role.name} has another image; a run has one for all pods",
                "Use an image that has both.",
            )
            draft.miss(
                "image", f"image of a {role.name}", other.text(), pod.main.image, "a run has one image"
            )
    has_intel = entry is not None and entry.mpi is not None and entry.mpi.implementation == "IntelMPI"
    if has_intel or work.mpi == "IntelMPI":
        draft.put("mpi.licenseAcknowledged", True) if draft.home.answers.has_licence else draft.wonder(
            node, "Intel MPI has its own licence terms", "Once you may use it: --license-acknowledged."
        )


def _map_launch_options(draft: SpecDraft, command: ConvertedCommand) -> None:
    """Set what the launcher specified besides the program, and whether it runs ranks."""
    work = draft.work
    if work.runs_on_launcher:
        draft.put("launcher.runsRanks", True)
    for name, value in command.env.items():
        draft.put(f"env/{name}", value)
    # mpirun(1) of Open MPI 5: PE=n binds each rank to n cores
    binds = any(":pe=" in str(one).lower() for one in (command.map_by, *(command.flags or ())))
    if command.bind_to not in ("", "none") and not (binds and command.bind_to in ("core", "hwthread")):
        draft.put("mpi.bindTo", command.bind_to)
    if command.map_by not in ("", "slot"):
        draft.put("mpi.mapBy", command.map_by)
    if command.flags:
        draft.put("mpi.flags", command.flags)
    if command.framework in ("horovod", "deepspeed") and not work.framework:
        work.framework = command.framework
