"""Schedules: when runs start by themselves."""

from __future__ import annotations

from gangplan.rules.model import ERROR, NOTE, WARNING, Example, Rule

_CLUSTER = "overlays/lab/cluster.yaml"
_EGRESS = "  s3: [{cidr: 10.40.8.0/24, ports: [443]}]\n"
_KUBERNETES = f"{_EGRESS}  kubernetes: [{{cidr: 10.96.0.1/32, ports: [443]}}]\n"
_OFFER = "schedules: {client: kubectl, egress: [kubernetes]}\n"
_DIGEST = "ab" * 32
_CATALOG = (
    "images/catalog.yaml",
    "images:\n",
    f"images:\n  kubectl: {{repository: registry.example.com/kubectl, digest: sha256:{_DIGEST}, framework: plain}}\n",
)
OFFERED = (
    (_CLUSTER, _EGRESS, _KUBERNETES),
    (_CLUSTER, "teams:\n", f"{_OFFER}teams:\n"),
    _CATALOG,
)
_SPEC = "specs/nlp/filings.yaml"

SCHEDULE_NOT_OFFERED = Rule(
    "schedule-not-offered",
    ERROR,
    "The cluster starts no runs by a schedule.",
    why=(
        "What may create runs by itself is the platform's choice: an account in the cluster, or a pipeline "
        "that commits. The cluster's file says which (schedules)."
    ),
    fix="Remove schedule, choose another cluster, or ask its owner for schedules: {client: IMAGE, egress: [NAME]}.",
    example=Example(
        _SPEC,
        before='schedule: {cron: "0 2 * * *"}\ntimeout: 20h\n',
        after="timeout: 20h\n",
    ),
)

SCHEDULE_CLIENT = Rule(
    "schedule-client",
    ERROR,
    "The cluster's schedules cannot create runs.",
    why=(
        "The pod that creates a run needs an image with kubectl, by digest, and a way to the API server: the "
        "namespaces of teams are closed by default."
    ),
    fix="Write schedules: {client: IMAGE, egress: [NAME]} with an image of the catalog and an endpoint of egress.",
    example=Example(
        _CLUSTER,
        old="schedules: {client: kubectl, egress: [kubernetes]}\n",
        before="schedules: {client: kubectl}\n",
        after=_OFFER,
        changes=OFFERED,
    ),
)

SCHEDULE_ZONE = Rule(
    "schedule-zone",
    ERROR,
    "The time zone of a schedule is not known.",
    why=(
        "The API server refuses a CronJob whose timeZone it cannot find among the zones of the tz database "
        "(Kubernetes v1.34, pkg/apis/batch/validation), and `Local` would be that of a controller's machine."
    ),
    fix="Write the name of the tz database: Europe/Berlin, America/New_York, Etc/UTC.",
    example=Example(
        _SPEC,
        before='schedule: {cron: "0 2 * * *", timeZone: Europe/Bonn}\ntimeout: 20h\n',
        after='schedule: {cron: "0 2 * * *", timeZone: Europe/Berlin}\ntimeout: 20h\n',
        changes=OFFERED,
    ),
)

SCHEDULE_NEVER = Rule(
    "schedule-never",
    ERROR,
    "A schedule never starts a run.",
    why="The API server accepts '0 0 31 2 *', and the controller then finds no start within five years.",
    fix="Correct day and month of cron.",
    example=Example(
        _SPEC,
        before='schedule: {cron: "0 2 31 2 *"}\ntimeout: 20h\n',
        after='schedule: {cron: "0 2 28 2 *"}\ntimeout: 20h\n',
        changes=OFFERED,
    ),
)

SCHEDULE_OVERLAP = Rule(
    "schedule-overlap",
    WARNING,
    "A run may still train when its schedule starts the next one.",
    why=(
        "With concurrency: forbid that start is skipped: a nightly job becomes one of every second night. The "
        "shortest time between two starts counts, also over a changed clock, where a day has 23 hours; time "
        "in the queue comes on top."
    ),
    fix="Write a timeout below the time that the message names, or start less often.",
    example=Example(
        _SPEC,
        before='schedule: {cron: "0 */6 * * *"}\ntimeout: 8h\n',
        after='schedule: {cron: "0 */6 * * *"}\ntimeout: 5h\n',
        changes=OFFERED,
    ),
)

SCHEDULE_CLOCK = Rule(
    "schedule-clock",
    WARNING,
    "A schedule skips or repeats a start when the clock changes.",
    why=(
        "The controller compares the clock on the wall: a start at a time that the clock jumps over does not "
        "happen that day, and one at a time that it shows twice may happen twice (robfig/cron v3.0.1, "
        "SpecSchedule.Next)."
    ),
    fix="Choose an hour that no change touches, such as 4 o'clock, or timeZone: Etc/UTC.",
    example=Example(
        _SPEC,
        before='schedule: {cron: "30 2 * * *", timeZone: Europe/Berlin}\ntimeout: 20h\n',
        after='schedule: {cron: "30 4 * * *", timeZone: Europe/Berlin}\ntimeout: 20h\n',
        changes=OFFERED,
    ),
)

SCHEDULE_DEADLINE = Rule(
    "schedule-deadline",
    ERROR,
    "The starting deadline of a schedule loses starts.",
    why=(
        "The controller looks every ten seconds, so below that it may miss each start; and it warns of every "
        "start where more than 100 lie within the deadline (Kubernetes v1.34, pkg/controller/cronjob/utils.go)."
    ),
    fix="Write a startingDeadline of a minute or more that holds at most 100 starts.",
    example=Example(
        _SPEC,
        before='schedule: {cron: "0 2 * * *", startingDeadline: 5s}\ntimeout: 20h\n',
        after='schedule: {cron: "0 2 * * *", startingDeadline: 10m}\ntimeout: 20h\n',
        changes=OFFERED,
    ),
)

SCHEDULE_UNUSABLE = Rule(
    "schedule-unusable",
    ERROR,
    "A job with these fields cannot have dated runs.",
    why=(
        "All dated runs share one runtime, which is rendered before they have names. A runtime that holds the "
        "names of its pods would lead every run to pods that do not exist."
    ),
    fix="Remove the field that the message names, or let commits start the runs (schedules.backend: commit).",
    example=Example(
        _SPEC,
        before='schedule: {cron: "0 2 * * *"}\ntimeout: 20h\nelastic: {min: 2, max: 4}\ncheckpoint: {to: filings}\n',
        after='schedule: {cron: "0 2 * * *"}\ntimeout: 20h\nworkers: 4\ncheckpoint: {to: filings}\n',
        changes=(
            *OFFERED,
            (_SPEC, "image: openmpi", "image: pytorch"),
            (_SPEC, "workers: 4\n", ""),
        ),
    ),
)

_SECOND = """\
apiVersion: gangplan.dev/v1
kind: TrainingJob
image: openmpi
command: [python, other.py]
workers: 4
gpus: 8
cpu: 8
memory: 32Gi
timeout: 4h
placement: {nodePool: a100}
schedule: {cron: "30 4 * * *"}
"""
SCHEDULE_CROWDED = Rule(
    "schedule-crowded",
    WARNING,
    "Runs of several schedules are due at an hour at which their queue cannot hold all of them.",
    why=(
        "Each fits alone, but one of them waits until another is over, and with concurrency: forbid its own "
        "next start may be skipped. Runs count from their start to their timeout, over five weeks."
    ),
    fix="Start them at different hours, shorten their timeouts, or raise the team's quota.",
    example=Example(
        _SPEC,
        old="gpus: 2\n",
        before='gpus: 2\nplacement: {nodePool: a100}\nschedule: {cron: "0 4 * * *"}\ntimeout: 4h\n',
        after='gpus: 2\nplacement: {nodePool: a100}\nschedule: {cron: "0 14 * * *"}\ntimeout: 4h\n',
        changes=OFFERED,
        files={"specs/nlp/other.yaml": _SECOND},
    ),
)

RUN_SCHEDULED = Rule(
    "run-scheduled",
    NOTE,
    "A schedule begins, changes or ends.",
    why=(
        "A sync starts nothing of a schedule: the next start creates a run from the template that is there then, "
        "and runs that a schedule created go on whatever becomes of it."
    ),
    fix="Nothing needs to be done; gangplan plan shows the next starts.",
    example=Example(
        "specs/nlp/second.yaml",
        before=(
            "apiVersion: gangplan.dev/v1\nkind: TrainingJob\nimage: openmpi\ncommand: [python, train.py]\n"
            'workers: 2\nmemory: 4Gi\ntimeout: 4h\nschedule: {cron: "0 2 * * *"}\n'
        ),
        after=None,
        whole=True,
        run="since",
        changes=OFFERED,
    ),
)
