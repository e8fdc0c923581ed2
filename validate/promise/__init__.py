"""Checks that the built objects of a run start what was planned, even after patches.

The checks read the built objects as Trainer, JobSet, the MPI operator and the kubelet do and compare them
with the `Unit`, never with the generator's output, so that they also find the generator's mistakes. Only
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
from gangplan.validate.promise.roles import Laid, laid_of
from gangplan.validate.world import BuiltRun, World

__all__ = ["kept"]

Check = Callable[[Laid], Iterator[tuple[int, Problem]]]


def _elastic(laid: Laid) -> Iterator[tuple[int, Problem]]:
    """Check elastic runs; imported on demand because few runs are elastic."""
    if laid.unit.job.elastic is None:
        return
    from gangplan.validate.promise.elastic import going_on

    yield from going_on(laid)


def _preflight(laid: Laid) -> Iterator[tuple[int, Problem]]:
    """Check the preflight; imported on demand because few runs have one."""
    if not laid.unit.job.image.preflight:
        return
    from gangplan.validate.promise.preflight import looked

    yield from looked(laid)


def _unset(laid: Laid) -> Iterator[tuple[int, Problem]]:
    """Check variables that read pod labels; imported on demand because few runs have any."""
    if not any(one.field.startswith("metadata.labels") for one in laid.unit.job.env):
        return
    from gangplan.validate.promise.unset import unset

    yield from unset(laid)


CHECKS: tuple[Check, ...] = (
    counts.pods,
    counts.slots,
    counts.images,
    counts.devices,
    pods.folder,
    pods.variables,
    _unset,
    _preflight,
    opaque.commands,
    opaque.surroundings,
    launch.arguments,
    launch.environment,
    order.start,
    order.success,
    order.restarts,
    failures.judged,
    order.ready,
    hosts.names,
    hosts.keys,
    users.user,
    mounts.planned,
    mounts.hiding,
    mounts.twice,
    scripts.mounted,
    needs.named,
    mounts.writable,
    starts.managers,
    starts.placed,
    starts.classed,
    starts.alone,
    starts.held,
    starts.crowded,
    starts.shared_processes,
    starts.classed_by_priority,
    starts.probed,
    starts.grace,
    life.deadlines,
    life.endings,
    life.sync,
    labels.labels,
    labels.queue,
    labels.placement,
    fabric.given,
    containers.beside,
    files.given,
    settings.patched,
    _elastic,
    others.given,
)

# Checks that depend on the behaviour of Trainer and JobSet; other backends replace them.
OF_TRAINER: frozenset[Check] = frozenset(
    {
        *(counts.pods, counts.slots, order.start, order.success, order.restarts, failures.judged),
        *(hosts.keys, starts.managers, starts.alone, starts.crowded, life.deadlines),
        *(_elastic, others.given),
    }
)


def _of_operator() -> tuple[Check, ...]:
    from gangplan.validate.promise import mpijob  # few runs are MPIJobs

    return mpijob.CHECKS


# The checks that replace them, by the name of the backend.
INSTEAD: Mapping[str, Callable[[], tuple[Check, ...]]] = {MPIJOB.name: _of_operator}


def kept(world: World, run: BuiltRun) -> Iterator[tuple[int, Problem]]:
    """Yield each difference between the built objects of a run and its plan, with the index of the object."""
    laid = laid_of(world, run)
    if laid is None:
        return
    checks = CHECKS
    if instead := INSTEAD.get(run.unit.job.made_of):
        checks = (*(one for one in CHECKS if one not in OF_TRAINER), *instead())
    for check in checks:
        yield from check(laid)
