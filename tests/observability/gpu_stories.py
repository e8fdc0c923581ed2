"""The behaviour of a run's GPUs, as series of DCGM, and the alerts that must fire then."""

from __future__ import annotations

from tests.observability.stories import (
    ALERT,
    NS,
    READY,
    RUN,
    RUNNING,
    Series,
    Story,
    alert,
    job,
    pod,
    series,
    story,
)

WHO = f'namespace="{NS}",run="{RUN}",team="team-cv"'


def card(number: int, name: str, values: str, worker: int = 0, labels: str = "") -> Series:
    """Return a series of one GPU of a worker."""
    where = f'namespace="{NS}",pod="{RUN}-node-0-{worker}-abcde"'
    return series(
        f"DCGM_FI_DEV_{name}",
        f'gpu="{number}",UUID="GPU-{worker}{number}",Hostname="n{worker}",{where}{labels}',
        values,
    )


def run(*cards: Series) -> Series:
    """Return the series of a run of two workers with these GPUs."""
    out = job("node", 2, RUNNING) | pod("node", 0, READY) | pod("node", 1, READY)
    for one in cards:
        out |= one
    return out


def fires(name: str, severity: str, labels: str = WHO) -> dict[str, float]:
    """Return the one alert."""
    return {ALERT % (name, severity, labels): 1}


def idle() -> list[Story]:
    """Return stories of GPUs that are held but not used."""
    name = "GangplanGpusIdle"
    busy, unused = card(0, "GPU_UTIL", "97x200"), card(1, "GPU_UTIL", "0x200")
    told = story(
        "one of two GPUs is never used",
        run(busy, unused),
        (20, alert(name), {}),
        (50, alert(name), fires(name, "warning")),
    )
    told["promql_expr_test"].append(
        {"expr": "count(gangplan_run_gpu)", "eval_time": "50m", "exp_samples": [{"labels": "{}", "value": 2}]}
    )
    return [
        told,
        story(
            "data is loaded for twenty minutes, then the GPUs are used",
            run(card(0, "GPU_UTIL", "0x20 90x200")),
            (30, alert(name), {}),
            (80, alert(name), {}),
        ),
        story("a GPU that is used a little", run(card(0, "GPU_UTIL", "6x200")), (100, alert(name), {})),
        story("no GPU at all", run(), (100, alert(name), {})),
        story(
            "an idle GPU of nobody's",
            run(series("DCGM_FI_DEV_GPU_UTIL", 'gpu="7",UUID="GPU-x",pod="",namespace=""', "0x200")),
            (100, alert(name), {}),
        ),
        story(
            "what was idle is used again",
            run(card(0, "GPU_UTIL", "0x60 95x200")),
            (60, alert(name), fires(name, "warning")),
            (100, alert(name), {}),
        ),
    ]


def stuck() -> list[Story]:
    """Return stories of kernels that wait for a rank: busy GPUs that draw little power."""
    name = "GangplanCollectiveStuck"

    def both(util: str, watts: str, other_util: str = "", other_watts: str = "") -> Series:
        return run(
            card(0, "GPU_UTIL", util),
            card(0, "POWER_USAGE", watts),
            card(0, "GPU_UTIL", other_util or util, 1),
            card(0, "POWER_USAGE", other_watts or watts, 1),
        )

    return [
        story(
            "training for an hour, then waiting for each other",
            both("98x60 100x200", "390x60 95x200"),
            (55, alert(name), {}),
            (70, alert(name), {}),
            (90, alert(name), fires(name, "warning")),
        ),
        story(
            "one GPU has stopped, the other waits for it",
            both("98x60 100x200", "390x60 95x200", "98x60 0x200", "390x60 60x200"),
            (90, alert(name), fires(name, "warning")),
        ),
        story("training without an end", both("100x300", "390x300"), (200, alert(name), {})),
        story("a light load from the start", both("100x300", "95x300"), (200, alert(name), {})),
        story(
            "validation that needs less power",
            both("98x60 100x200", "390x60 210x200"),
            (120, alert(name), {}),
        ),
        story(
            "short waits",
            both("98x60 100x10 98x200", "390x60 95x10 390x200"),
            (72, alert(name), {}),
            (90, alert(name), {}),
        ),
        story("waiting for data", both("98x60 20x200", "390x60 80x200"), (120, alert(name), {})),
        story(
            "one rank computes while others wait",
            both("98x60 100x200", "390x60 95x200", "98x300", "390x300"),
            (120, alert(name), {}),
        ),
        story(
            "a single GPU has nobody to wait for",
            run(card(0, "GPU_UTIL", "98x60 100x200"), card(0, "POWER_USAGE", "390x60 95x200")),
            (120, alert(name), {}),
        ),
    ]


def errors() -> list[Story]:
    """Return stories of XIDs: the last one stays in the series until the driver is reloaded, even if the GPU
    has another user."""
    fault, program = "GangplanGpuFault", "GangplanGpuProgramError"
    labels = f'Hostname="n0",UUID="GPU-00",gpu="0",{WHO},pod="{RUN}-node-0-0-abcde",worker_id="0"'
    util = card(0, "GPU_UTIL", "90x200")
    return [
        story(
            "a GPU falls off the bus",
            run(util, card(0, "XID_ERRORS", "0x30 79x200")),
            (29, alert(fault), {}),
            (33, alert(fault), fires(fault, "critical", labels)),
            (33, alert(program), {}),
            (60, alert(fault), {}),
        ),
        story(
            "the program reads a wrong address",
            run(util, card(0, "XID_ERRORS", "0x30 31x200")),
            (33, alert(program), fires(program, "warning", labels)),
            (33, alert(fault), {}),
        ),
        story(
            "the first error of a GPU, whose series begins with it",
            run(util, card(0, "XID_ERRORS", "_x30 94x200")),
            (33, alert(fault), fires(fault, "critical", labels)),
            (60, alert(fault), {}),
        ),
        story(
            "an error of long ago",
            run(util, card(0, "XID_ERRORS", "79x300")),
            (5, alert(fault), {}),
            (100, alert(fault), {}),
        ),
        story(
            "the exporter starts again, and the old error is still there",
            run(card(0, "GPU_UTIL", "90x30 _x20 90x200"), card(0, "XID_ERRORS", "79x30 _x20 79x200")),
            (53, alert(fault), {}),
            (100, alert(fault), {}),
        ),
        story(
            "another error, with other labels",
            run(
                util,
                card(0, "XID_ERRORS", "31x30 stale", labels=',err_code="31"'),
                card(0, "XID_ERRORS", "_x31 48x200", labels=',err_code="48"'),
            ),
            (34, alert(fault), fires(fault, "critical", labels)),
        ),
        story(
            "no errors",
            run(util, card(0, "XID_ERRORS", "0x300")),
            (100, alert(fault), {}),
            (100, alert(program), {}),
        ),
        story(
            "a GPU of nobody's",
            run(util, series("DCGM_FI_DEV_XID_ERRORS", 'gpu="7",UUID="GPU-x",Hostname="n9"', "0x30 79x200")),
            (33, alert(fault), {}),
        ),
    ]


def held() -> list[Story]:
    """Return stories of pods that stay after they have failed, in runs with `debug`."""
    name = "GangplanRunHeldForDebug"
    one = f'namespace="{NS}",pod="{RUN}-node-0-1-abcde",container='
    restarts = "kube_pod_container_status_restarts_total"
    over = {**RUNNING, "kube_job_status_active": "2x60 0x200", "kube_job_failed": "_x61 1x200"}
    ended = job("node", 2, over) | pod("node", 0, READY) | pod("node", 1, READY)
    failed = series(restarts, f'{one}"node"', "0x30 1x200")
    return [
        story(
            "a worker has failed and stays",
            run(failed),
            (30, alert(name), {}),
            (35, alert(name), fires(name, "warning")),
            (35, "gangplan_run_held", {f"gangplan_run_held{{{WHO}}}": 1.0}),
        ),
        story("nothing has failed", run(series(restarts, f'{one}"node"', "0x200")), (100, alert(name), {})),
        story(
            "a sidecar was started again",
            run(series(restarts, f'{one}"metrics"', "3x200")),
            (100, alert(name), {}),
        ),
        story(
            "the time is up",
            ended | failed,
            (50, alert(name), fires(name, "warning")),
            (70, alert(name), {}),
        ),
    ]


def everything() -> dict[str, list[Story]]:
    """Return all stories about GPUs, by name."""
    return {f"gpus-{teller.__name__}": teller() for teller in (idle, stuck, errors, held)}
