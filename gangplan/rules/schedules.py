"""Rules about schedules, by which runs start automatically."""

from __future__ import annotations

from gangplan.rules.model import ERROR, NOTE, WARNING, Rule

SCHEDULE_NOT_OFFERED = Rule(
    "schedule-not-offered",
    ERROR,
    "The cluster starts no runs on a schedule.",
    why=(
        "The platform decides what may create runs automatically: an account in the cluster, or a pipeline "
        "that commits. The cluster's file says which (schedules)."
    ),
    fix="Remove schedule, choose another cluster, or ask its owner for schedules: {client: IMAGE, egress: [NAME]}.",
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
)

SCHEDULE_ZONE = Rule(
    "schedule-zone",
    ERROR,
    "The time zone of a schedule is not known.",
    why=(
        "The API server refuses a CronJob whose timeZone it cannot find among the zones of the tz database "
        "(Kubernetes v1.34, pkg/apis/batch/validation), and `Local` would be that of a controller's machine."
    ),
    fix="Write a name from the tz database: Europe/Berlin, America/New_York, Etc/UTC.",
)

SCHEDULE_NEVER = Rule(
    "schedule-never",
    ERROR,
    "A schedule never starts a run.",
    why="The API server accepts '0 0 31 2 *', and the controller then finds no start within five years.",
    fix="Correct day and month of cron.",
)

SCHEDULE_OVERLAP = Rule(
    "schedule-overlap",
    WARNING,
    "A run may still train when its schedule starts the next one.",
    why=(
        "With concurrency: forbid, that start is skipped: a nightly job then runs every second night. The "
        "shortest time between two starts counts, including the 23-hour day of a clock change; time "
        "in the queue comes on top."
    ),
    fix="Write a timeout below the time that the message names, or start less often.",
)

SCHEDULE_CLOCK = Rule(
    "schedule-clock",
    WARNING,
    "A schedule skips or repeats a start when the clock changes.",
    why=(
        "The controller goes by wall-clock time: a start at a time that the clock skips does not "
        "happen that day, and one at a time that occurs twice may happen twice (robfig/cron v3.0.1, "
        "SpecSchedule.Next)."
    ),
    fix="Choose an hour that no change touches, such as 4 o'clock, or timeZone: Etc/UTC.",
)

SCHEDULE_DEADLINE = Rule(
    "schedule-deadline",
    ERROR,
    "The starting deadline makes a schedule miss starts.",
    why=(
        "The controller looks every ten seconds, so with a shorter deadline it may miss every start; it also warns of every "
        "start if more than 100 lie within the deadline (Kubernetes v1.34, pkg/controller/cronjob/utils.go)."
    ),
    fix="Write a startingDeadline of a minute or more that holds at most 100 starts.",
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
)

SCHEDULE_CROWDED = Rule(
    "schedule-crowded",
    WARNING,
    "Runs of several schedules are due at an hour at which their queue cannot hold all of them.",
    why=(
        "Each fits alone, but one of them waits until another is over, and with concurrency: forbid its own "
        "next start may be skipped. Runs count from their start to their timeout, over five weeks."
    ),
    fix="Start them at different hours, shorten their timeouts, or raise the team's quota.",
)

RUN_SCHEDULED = Rule(
    "run-scheduled",
    NOTE,
    "A schedule begins, changes or ends.",
    why=(
        "A sync starts no runs of a schedule: the next start creates a run from the template of that time, "
        "and runs already created go on, whatever happens to the schedule."
    ),
    fix="Nothing needs to be done; in a terminal, gangplan plan shows the next starts.",
)
