"""Rules about jobs that run after others: what a run can wait for, and what creates it."""

from __future__ import annotations

from gangplan.rules.model import ERROR, NOTE, Rule

AFTER_NOT_OFFERED = Rule(
    "after-not-offered",
    ERROR,
    "Nothing on the cluster creates runs after others.",
    why=(
        "An engine applies what is in Git at once. A run that comes after others is in Git as a template, and an "
        "account of the cluster creates it later. The platform states which image does this and how it reaches the "
        "API server (schedules)."
    ),
    fix="Remove after, or ask the cluster's owner for schedules: {client: IMAGE, egress: [NAME]}.",
)

AFTER_UNKNOWN = Rule(
    "after-unknown",
    ERROR,
    "The team has no job of this name.",
    why="A run that waits for a job that nobody starts waits forever.",
    fix="Correct the name: a job has the name of its file.",
)

AFTER_CYCLE = Rule(
    "after-cycle",
    ERROR,
    "Jobs wait for each other.",
    why="Each is created only when the one before it is complete, so none is ever created.",
    fix="Remove one job from an after.",
)

AFTER_ELSEWHERE = Rule(
    "after-elsewhere",
    ERROR,
    "A run waits on a different cluster from its predecessor's.",
    why=(
        "The Job that waits asks the API server of its own cluster, with an account of its own namespace. It has "
        "no account elsewhere, so it never sees the earlier run complete."
    ),
    fix="Let both run on one cluster, or ask the platform for a pipeline engine that sees both (pipelines.engine).",
)

AFTER_NEVER = Rule(
    "after-never",
    ERROR,
    "The job before a run never completes, or it is unclear which of its runs is meant.",
    why=(
        "A stopped run ends without being complete, and an archived one is not started. A scheduled job has a "
        "new run every night. Another job can follow these if all jobs in its after share that schedule and a CronJob starts them."
    ),
    fix="Remove it from after. A run that was created before stays as it is.",
)

AFTER_UNUSABLE = Rule(
    "after-unusable",
    ERROR,
    "A run of this kind cannot come after others.",
    why=(
        "The account that creates runs may create TrainJobs and nothing else. Kueue starts trials, "
        "and the clock starts runs of a job that has its own schedule."
    ),
    fix="Remove after, or what conflicts with it.",
)

AFTER_DATA = Rule(
    "after-data",
    ERROR,
    "What a job hands on does not reach the next one.",
    why="A claim belongs to one cluster. The claim of the same name on another cluster is another volume.",
    fix="Hand the data on by a connection to a bucket, or run both jobs on one cluster.",
)

AFTER_RULES = Rule(
    "after-rules",
    ERROR,
    "A run reads data derived from regulated data, but is not under the same rules.",
    why=(
        "Anything derived from data under a regime or a residency falls under it, too: features of patients' records are "
        "patients' data. A later step without the regime could be on a cluster, or write to a bucket, where "
        "the data must not be."
    ),
    fix="Add compliance or residency of the earlier job to the later one.",
)

RUN_WAITS = Rule(
    "run-waits",
    NOTE,
    "A run is created when others are complete.",
    why=(
        "Git has a template of such a run, and a Job or a pipeline creates it: the sync starts nothing, and a run "
        "that was created before is not created again."
    ),
    fix="Nothing needs to be done; gangplan plan shows the order of jobs.",
)

RETRY_TWICE = Rule(
    "retry-twice",
    ERROR,
    "Both a pipeline and the job retry after a failure.",
    why=(
        "Retries multiply: two for a pipeline's task and two for a job mean up to nine trainings, each with its GPUs. "
        "The job's own retries resume in place, without queueing again, and its run is Failed only once "
        "they are used up; so a pipeline that runs it should not retry."
    ),
    fix="Write retries: 0 for the task, or retries: 0 into the spec.",
    is_verdict=True,
)
