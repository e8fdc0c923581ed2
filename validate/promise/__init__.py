"""Checks that the built objects of a run start what was planned, even after patches.

The checks read the built objects as Trainer, JobSet, the MPI operator and the kubelet do and compare them
with the `RunPlan`, never with the generator's output, so that they also find the generator's mistakes. Only
texts that cannot be read as a plan (the launch script, the SSH server's command line) are compared with the
generated ones.

A site may still change volumes, sidecars, additional environment, tolerations, node selectors, affinity,
runtime classes that exist, pull policies and secrets, host aliases, mirrors of the same image, larger
resources, other annotations and labels. Other proofs judge the effects of these (admission, fit, network, pod
security).

Sources: Kubeflow Trainer v2.1 to v2.3 (pkg/runtime/framework/plugins/{mpi,torch,jobset,plainml}), JobSet
v0.10 to v0.12 (pkg/controllers), mpi-operator v0.7 and v0.8 (pkg/controller), the Job controller and kubelet
of Kubernetes v1.34.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from gangplan.model.backend import MPIJOB
from gangplan.validate.problems import Problem
from gangplan.validate.promise import (
    containers,
    counts,
    fabric,
    failures,
    files,
    hosts,
    labels,
    launch,
    life,
    mounts,
    needs,
    opaque,
    order,
    others,
    pods,
    scripts,
    settings,
    starts,
    users,
)
from gangplan.validate.promise.roles import ExpandedRun, expand_built_run_into_roles
from gangplan.validate.world import BuiltRun, World

__all__ = ["check_plan_conformance"]

Check = Callable[[ExpandedRun], Iterator[tuple[int, Problem]]]


def _check_promised_elastic_run(laid: ExpandedRun) -> Iterator[tuple[int, Problem]]:
    """Check elastic runs; imported on demand because few runs are elastic."""
    if laid.unit.job.elastic is None:
        return
    from gangplan.validate.promise.elastic import check_promised_elastic_workers

    yield from check_promised_elastic_workers(laid)


def _check_promised_preflight(laid: ExpandedRun) -> Iterator[tuple[int, Problem]]:
    """Check the preflight; imported on demand because few runs have one."""
    if not laid.unit.job.image.preflight:
        return
    from gangplan.validate.promise.preflight import check_promised_preflight_call

    yield from check_promised_preflight_call(laid)


def _check_promised_label_variables(laid: ExpandedRun) -> Iterator[tuple[int, Problem]]:
    """Check variables that read pod labels; imported on demand because few runs have any."""
    if not any(one.field.startswith("metadata.labels") for one in laid.unit.job.env):
        return
    from gangplan.validate.promise.unset import check_promised_variables_are_set

    yield from check_promised_variables_are_set(laid)


CHECKS: tuple[Check, ...] = (
    counts.check_promised_pods,
    counts.check_promised_slots,
    counts.check_promised_images,
    counts.check_promised_devices,
    pods.check_promised_working_folder,
    pods.check_promised_variable_sources,
    _check_promised_label_variables,
    _check_promised_preflight,
    opaque.check_promised_role_commands,
    opaque.check_image_working_folder_and_path,
    launch.check_promised_launch_arguments,
    launch.check_promised_launch_environment,
    order.check_promised_start_order,
    order.check_promised_success_policy,
    order.check_promised_run_retries,
    failures.check_promised_failure_rules,
    order.check_promised_worker_readiness,
    hosts.check_promised_host_names,
    hosts.check_promised_ssh_keys,
    users.check_promised_program_user,
    mounts.check_promised_mounts,
    mounts.check_promised_launch_files_not_hidden,
    mounts.check_promised_mounts_are_distinct,
    scripts.check_promised_launch_scripts,
    needs.check_promised_pods_have_needed_objects,
    mounts.check_promised_writable_tmp,
    starts.check_promised_managers,
    starts.check_promised_schedulers,
    starts.check_promised_runtime_class,
    starts.check_promised_restarts_are_whole,
    starts.check_promised_pods_can_start,
    starts.check_promised_exclusive_placement,
    starts.check_promised_process_isolation,
    starts.check_promised_priority_class,
    starts.check_promised_probes,
    starts.check_promised_grace_period,
    life.check_promised_run_deadlines,
    life.check_promised_kueue_deadline,
    life.check_containers_outlasting_program,
    labels.check_promised_labels,
    labels.check_promised_queue,
    labels.check_promised_placement,
    fabric.check_promised_fabric,
    containers.check_promised_extra_containers,
    files.check_promised_files,
    settings.check_patched_variables,
    _check_promised_elastic_run,
    others.check_promised_roles,
)

# Checks that depend on the behaviour of Trainer and JobSet; other backends replace them.
OF_TRAINER: frozenset[Check] = frozenset(
    {
        *(
            counts.check_promised_pods,
            counts.check_promised_slots,
            order.check_promised_start_order,
            order.check_promised_success_policy,
            order.check_promised_run_retries,
            failures.check_promised_failure_rules,
        ),
        *(
            hosts.check_promised_ssh_keys,
            starts.check_promised_managers,
            starts.check_promised_restarts_are_whole,
            starts.check_promised_exclusive_placement,
            life.check_promised_run_deadlines,
        ),
        *(_check_promised_elastic_run, others.check_promised_roles),
    }
)


def _load_mpijob_checks() -> tuple[Check, ...]:
    from gangplan.validate.promise import mpijob  # few runs are MPIJobs

    return mpijob.MPIJOB_CHECKS


# The checks that replace them, by the name of the backend.
INSTEAD: Mapping[str, Callable[[], tuple[Check, ...]]] = {MPIJOB.name: _load_mpijob_checks}


def check_plan_conformance(world: World, run: BuiltRun) -> Iterator[tuple[int, Problem]]:
    """Yield each difference between the built objects of a run and its plan, with the index of the object."""
    laid = expand_built_run_into_roles(world, run)
    if laid is None:
        return
    checks = CHECKS
    if instead := INSTEAD.get(run.unit.job.made_of):
        checks = (*(one for one in CHECKS if one not in OF_TRAINER), *instead())
    for check in checks:
        yield from check(laid)
