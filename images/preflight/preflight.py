#!/usr/bin/env python3
"""Checks a run's workers before its training starts: every rank runs this once, under the run's own mpirun.

It needs only mpi4py. It prints a table and one line of JSON. The exit code is that of the first check that
failed, in the order of CODES; docs/preflight.md explains each.
"""

import argparse
import glob
import json
import os
import resource
import sys
import time
from array import array
from contextlib import suppress

from mpi4py import MPI

CODES = {
    "ranks": 183,
    "hosts": 184,
    "versions": 186,
    "allreduce": 187,
    "gpus": 188,
    "memlock": 189,
    "storage": 190,
    "clock": 191,
}
HELP = {
    "ranks": (
        "mpirun started other ranks than the plan has, or put them elsewhere.",
        "Leave numbers of ranks to gangplan: remove -np, --map-by and hosts from command and mpi.flags.",
    ),
    "hosts": (
        "Several workers have one host name, so ranks share a pod that should be apart.",
        "Render the run again, and look at the hostfile in the launcher: it names each worker once.",
    ),
    "versions": (
        "Workers have different MPI libraries: another build of the image, or a mount that hides its MPI.",
        "Use one digest for all, and remove other MPIs from LD_LIBRARY_PATH and from mounted folders.",
    ),
    "allreduce": (
        "Sums over all ranks come out wrong: a broken card, cable, driver or MPI.",
        "Run again without that node, and with network: {transport: tcp}; tell the platform team which node.",
    ),
    "gpus": (
        "A worker, or one of its ranks, sees fewer GPUs than it asked for.",
        "Remove CUDA_VISIBLE_DEVICES and the like. If nvidia-smi lacks a GPU, too, have that node drained.",
    ),
    "memlock": (
        "RDMA needs memory that stays in place, and the limit for that (ulimit -l) is too low.",
        "Have the container runtime of the nodes start containers with LimitMEMLOCK=infinity.",
    ),
    "storage": (
        "A worker cannot write to a shared folder, or does not see there what the others have written.",
        "Check that the claim is ReadWriteMany, not full, and writable for the image's user and group.",
    ),
    "clock": (
        "The clock of a node is wrong: certificates, checkpoints by time and logs will not agree.",
        "Ask the platform team to set up time synchronisation (chrony) on that node.",
    ),
}
SUM = MPI.SUM
COUNTS = (1, 1000, 100_000)  # doubles of an allreduce
SIZES = (8, 65_536, 4 * 2**20)  # bytes of a message
REPEAT = 10


def now():
    """Return the seconds of the wall clock."""
    return time.time()


def options(words=None):
    """Parse the facts of the plan, which the launch script passes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workers", type=int, required=True)
    parser.add_argument("--slots", type=int, required=True)
    parser.add_argument("--gpus", type=int, default=0, help="that each worker asked for")
    parser.add_argument("--memlock", action="store_true", help="whether ulimit -l must be unlimited")
    parser.add_argument("--storage", action="append", default=[], help="a folder that all workers write to")
    parser.add_argument("--skew", type=float, default=1.0, help="seconds that clocks may differ")
    return parser.parse_args(words)


def gpus_here(root="/", env=os.environ):
    """Return the GPUs that this rank can use: those with device files that no variable hides from it."""
    files = [path for path in glob.glob(f"{root}dev/nvidia[0-9]*") if path.rpartition("nvidia")[2].isdigit()]
    if files:
        named = [one for one in env.get("NVIDIA_VISIBLE_DEVICES", "").split(",") if one]
        if named and named[0] not in (
            "all",
            "void",
        ):  # void: another way than this variable brings the devices
            slices = [one for one in named if one.startswith("MIG-")]  # slices of a GPU share its device file
            files = slices or ([] if named[0] == "none" else files[: len(named)])
        return chosen(numbered(files), env, "CUDA_VISIBLE_DEVICES")
    kept = chosen(numbered(amd_files(root)), env, "ROCR_VISIBLE_DEVICES")
    if kept:  # HIP counts what ROCr leaves, and takes CUDA's variable where its own is not set
        return chosen(
            kept, env, "HIP_VISIBLE_DEVICES" if "HIP_VISIBLE_DEVICES" in env else "CUDA_VISIBLE_DEVICES"
        )
    return numbered(render_files(root, "0x8086"))


def amd_files(root):
    """Return the render nodes of GPUs that compute; that of a display card does not."""
    if not os.path.exists(f"{root}dev/kfd"):
        return []
    found = []
    for path in glob.glob(f"{root}sys/class/kfd/kfd/topology/nodes/*/properties"):
        with suppress(OSError), open(path) as file:
            about = dict(line.split()[:2] for line in file if len(line.split()) > 1)
            node = f"{root}dev/dri/renderD{about.get('drm_render_minor', 0)}"
            if about.get("simd_count", "0") != "0" and os.path.exists(node):
                found.append(node)
    return found or render_files(root, "0x1002")


def render_files(root, vendor):
    """Return the render nodes of cards of a vendor, by its PCI number."""
    found = []
    for path in glob.glob(f"{root}dev/dri/renderD*"):
        with suppress(OSError), open(f"{root}sys/class/drm/{os.path.basename(path)}/device/vendor") as file:
            if file.read().strip() == vendor:
                found.append(path)
    return found


def numbered(files):
    """Return the numbers that a runtime gives to devices, as texts."""
    return [str(number) for number in range(len(files))]


def chosen(devices, env, name):
    """Return the devices that a variable leaves visible: up to the first entry that names none."""
    if name not in env:
        return devices
    found = []
    for word in (one.strip() for one in env[name].split(",")):
        if not (word.startswith(("GPU-", "MIG-")) or (word.isdecimal() and int(word) < len(devices))):
            break
        one = devices[int(word)] if word.isdecimal() else word
        if one in found:
            break
        found.append(one)
    return found if any(one.startswith("MIG-") for one in found) else found[: len(devices)]


def library():
    """Return the name and version of the MPI library in one line, without details of its build."""
    line = MPI.Get_library_version().strip("\0 \n").split("\n")[0].split(", package")[0]
    return " ".join(line.split())


def facts(world):
    """Return the facts of all ranks on rank 0, and None elsewhere."""
    gpus = gpus_here()
    own = {
        "rank": world.Get_rank(),
        "host": os.uname().nodename,
        "mpi": library(),
        "gpus": len(gpus),
        "devices": gpus,
        "memlock": resource.getrlimit(resource.RLIMIT_MEMLOCK)[0],
    }
    return world.gather(own, root=0)


def reduced(world):
    """Measure and check sums over all ranks: seconds by bytes, and the ranks that got a wrong one."""
    rank, size = world.Get_rank(), world.Get_size()
    took, wrong = {}, False
    for count in COUNTS:
        mine = array("d", [(rank + 1.0) * (index % 7 + 1) for index in range(count)])
        total = array("d", bytes(8 * count))
        world.Barrier()
        start = time.perf_counter()
        for _ in range(REPEAT):
            world.Allreduce(mine, total, op=SUM)
        took[8 * count] = (time.perf_counter() - start) / REPEAT
        whole = size * (size + 1) / 2
        wrong = wrong or any(got != whole * (index % 7 + 1) for index, got in enumerate(total))
    return took, [one for one, bad in enumerate(world.allgather(wrong)) if bad]


def messages(world, firsts):
    """Measure messages from rank 0 to the first rank of each other host: the slowest one way, by bytes."""
    rank, slowest = world.Get_rank(), {}
    for other in firsts[1:]:
        for size in SIZES:
            data = bytearray(size)
            world.Barrier()
            start = time.perf_counter()
            for _ in range(REPEAT):
                if rank == 0:
                    world.Send(data, dest=other)
                    world.Recv(data, source=other)
                elif rank == other:
                    world.Recv(data, source=0)
                    world.Send(data, dest=0)
            took = (time.perf_counter() - start) / REPEAT / 2
            if rank == 0 and took > slowest.get(size, (0.0, 0))[0]:
                slowest[size] = took, other
    return slowest


def offsets(world, firsts):
    """Measure how many seconds the clock of each host is ahead of rank 0's, by the quickest answer."""
    rank, found = world.Get_rank(), {}
    for other in firsts[1:]:
        best = None
        for _ in range(REPEAT):
            if rank == 0:
                asked = now()
                world.send(None, dest=other)
                said = world.recv(source=other)
                back = now()
                if best is None or back - asked < best[0]:
                    best = back - asked, said - (asked + back) / 2
            elif rank == other:
                world.recv(source=0)
                world.send(now(), dest=0)
        if best:
            found[other] = best[1]
    return found


def stored(world, folders, is_first):
    """Check folders that all workers write to, and return problems as (rank, text) on rank 0."""
    token = world.bcast(f"{time.time_ns():x}", root=0)
    problems = []
    for folder in folders:
        mine = os.path.join(folder, f".preflight-{token}-{world.Get_rank()}")
        problem = ""
        if is_first:
            try:
                with open(mine, "w") as file:
                    file.write(token)
                    file.flush()
                    os.fsync(file.fileno())
            except OSError as error:
                problem = f"cannot write to {folder}: {error.strerror}"
        wrote = world.allgather(is_first and not problem)
        if is_first and not problem:
            for other, there in enumerate(wrote):
                path = os.path.join(folder, f".preflight-{token}-{other}")
                if there and not seen(path, token):
                    problem = f"does not see in {folder} what rank {other} has written"
        world.Barrier()
        if is_first:
            with suppress(OSError):
                os.unlink(mine)
        said = world.gather((world.Get_rank(), problem), root=0) or ()
        problems += [(rank, text) for rank, text in said if text]
    return problems


def seen(path, token):
    """Return whether another worker's file appears complete within 5 seconds; NFS caches old answers."""
    for _ in range(50):
        try:
            with open(path) as file:
                if file.read() == token:
                    return True
        except OSError:
            pass
        time.sleep(0.1)
    return False


def main():
    """Run all checks on all ranks, and return the exit code."""
    plan, world = options(), MPI.COMM_WORLD
    known = facts(world)
    firsts = world.bcast(first_ranks(known) if known else None, root=0)
    took, wrong = reduced(world)
    slowest, skews = messages(world, firsts), offsets(world, firsts)
    problems = stored(world, plan.storage, world.Get_rank() in firsts)
    code = 0
    if world.Get_rank() == 0:
        checks = judge(plan, known, wrong, problems, skews)
        code = next((CODES[one["check"]] for one in checks if not one["ok"]), 0)
        sys.stdout.write(text(plan, known, checks, took, slowest))
        whole = {"version": 1, "exitCode": code, "checks": checks, "ranks": known}
        whole["allreduceSeconds"] = {str(size): round(value, 9) for size, value in took.items()}
        whole["messageSeconds"] = {str(size): round(value[0], 9) for size, value in slowest.items()}
        sys.stdout.write("gangplan-preflight " + json.dumps(whole, sort_keys=True) + "\n")
        sys.stdout.flush()
    return world.bcast(code, root=0)


def first_ranks(known):
    """Return the first rank of each host, in order."""
    hosts = {}
    for one in known:
        hosts.setdefault(one["host"], one["rank"])
    return sorted(hosts.values())


def judge(plan, known, wrong, problems, skews):
    """Return the result of each check, in the order of CODES: whether it passed, and what was seen."""
    hosts = {}
    for one in known:
        hosts.setdefault(one["host"], []).append(one)
    name = {one["rank"]: one["host"] for one in known}
    ranks, many = plan.workers * plan.slots, sorted({len(group) for group in hosts.values()})
    placed = len(known) == ranks and (len(hosts) != plan.workers or many == [plan.slots])
    mpis = {}
    for one in known:
        mpis.setdefault(one["mpi"], one["host"])
    few = [one for group in hosts.values() for one in lacking(plan, group)]
    low = {host: least(group) for host, group in hosts.items() if least(group) >= 0}
    far = {name[rank]: skew for rank, skew in skews.items() if abs(skew) > plan.skew}
    most = max((abs(skew) for skew in skews.values()), default=0.0)
    limit = "unlimited" if not low else f"{min(low.values()) // 1024} KiB on {min(low, key=low.get)}"
    shown = [f"{host}: {version}" for version, host in mpis.items()]
    failed = "; ".join(f"{name[rank]} {what}" for rank, what in problems[:3])
    ahead = "; ".join(f"{host}: {skew:+.3f} s" for host, skew in far.items())
    per_worker = f"{', '.join(map(str, many))} of {plan.slots}"
    results = {
        "ranks": (placed, f"{len(known)} of {ranks}; per worker: {per_worker}"),
        "hosts": (len(hosts) == plan.workers, f"{len(hosts)} of {plan.workers}"),
        "versions": (len(mpis) == 1, next(iter(mpis)) if len(mpis) == 1 else "; ".join(shown)),
        "allreduce": (not wrong, f"wrong on ranks {listed(wrong)}" if wrong else "right on all ranks"),
        "gpus": (not few, "; ".join(few) or str(plan.gpus)),
        "memlock": (not (plan.memlock and low), limit + ("" if plan.memlock else ", not needed")),
        "storage": (not problems, failed or ", ".join(plan.storage) or "none"),
        "clock": (not far, ahead or f"within {1000 * most:.1f} ms"),
    }
    return [{"check": check, "ok": results[check][0], "seen": results[check][1]} for check in CODES]


def lacking(plan, group):
    """Return what is missing of a host's GPUs: to all of its ranks together, or else to single ones."""
    host = group[0]["host"]
    together = {one for rank in group for one in rank["devices"]}
    if len(together) < plan.gpus:
        return [f"{host}: {len(together)} of {plan.gpus}"]
    each = max(1, plan.gpus // plan.slots) if plan.gpus else 0
    return [
        f"rank {rank['rank']} on {host}: {rank['gpus']} of {each}" for rank in group if rank["gpus"] < each
    ]


def least(group):
    """Return the lowest memlock limit of a host's ranks in bytes, or -1 if all are unlimited."""
    return min((one["memlock"] for one in group if one["memlock"] >= 0), default=-1)


def listed(numbers):
    """Return the first eight numbers of a list as text."""
    return ", ".join(map(str, numbers[:8])) + (", ..." if len(numbers) > 8 else "")


def text(plan, known, checks, took, slowest):
    """Return all results as a text for one screen."""
    lines = [f"preflight: {len(known)} ranks, planned {plan.workers} workers x {plan.slots}"]
    for one in checks:
        lines.append(f"  {one['check']:<10} {'ok' if one['ok'] else 'FAILED':<7} {one['seen'][:140]}")
    sums = ", ".join(f"{size}: {1e6 * value:.0f} us" for size, value in took.items())
    lines.append(f"  allreduce by bytes: {sums}")
    pairs = (f"{size}: {1e6 * one:.1f} us, {size / one / 1e6:.0f} MB/s" for size, (one, _) in slowest.items())
    if slowest:
        lines.append("  slowest message by bytes: " + "; ".join(pairs))
    for one in checks:
        if not one["ok"]:
            cause, cure = HELP[one["check"]]
            lines += [f"gangplan: preflight failed: {one['check']}: {one['seen']}", f"  {cause}", f"  {cure}"]
    return "".join(f"{line}\n" for line in lines)


if __name__ == "__main__":
    sys.exit(main())
