"""Rules about jobs that run after others: what a run can wait for, and what creates it."""

from __future__ import annotations

from gangplan.rules.model import ERROR, NOTE, Rule

AFTER_NOT_OFFERED = Rule(
    "after-not-offered",
    ERROR,
    "Nothing on the cluster creates runs after others.",
    why=(
        "An engine applies what is in Git at once. A run that comes after others is in Git as a template, and an "
        "account of the cluster creates it later: the platform says with which image, and how that reaches the "
        "API server (schedules)."
    ),
    fix="Remove after, or ask the cluster's owner for schedules: {client: IMAGE, egress: [NAME]}.",
)

AFTER_UNKNOWN = Rule(
    "after-unknown",
    ERROR,
    "The team has no job of this name.",
    why="A run that waits for a job that nobody starts waits forever.",
    fix="Correct the name: jobs are called as their files are.",
)

AFTER_CYCLE = Rule(
    "after-cycle",
    ERROR,
    "Jobs wait for each other.",
    why="Each of them is created when the one before it is complete, so none of them ever is.",
    fix="Take one of them off an after.",
)

AFTER_ELSEWHERE = Rule(
    "after-elsewhere",
    ERROR,
    "A run waits on another cluster than the one that its predecessor runs on.",
    why=(
        "The Job that waits asks the API server of its own cluster, with an account of its own namespace. It has "
        "no account elsewhere, and a run that it never sees never completes for it."
    ),
    fix="Let both run on one cluster, or ask the platform for a pipeline engine that sees both (pipelines.engine).",
)

AFTER_NEVER = Rule(
    "after-never",
    ERROR,
    "The job before a run never completes, or nobody knows which of its runs is meant.",
    why=(
        "A stopped run ends without being complete, and an archived one is not started. Of a schedule's runs there "
        "is another one every night: a job follows them where all jobs of its after do, and a CronJob starts them."
    ),
    fix="Remove it from after. A run that was created before stays as it is.",
)

AFTER_UNUSABLE = Rule(
    "after-unusable",
    ERROR,
    "A run of this kind cannot come after others.",
    why=(
        "The account that creates runs may create TrainJobs and nothing else. Trials are started by Kueue, "
        "and runs of a job with a schedule of its own by the clock."
    ),
    fix="Remove after, or what it does not go with.",
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
    "A run reads what was made of regulated data, and is not under the same rules.",
    why=(
        "What is made of data under a regime or a residency falls under it, too: features of patients' records are "
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
    "A failure is tried again by a pipeline and by the job.",
    why=(
        "Tries multiply: two of a pipeline's task and two of a job train up to nine times, with the GPUs of each. "
        "The job's own retries resume in place, without a new place in the queue, and its run is Failed only once "
        "they are used up; so a pipeline that runs it should not try again."
    ),
    fix="Write retries: 0 for the task, or retries: 0 into the spec.",
    is_verdict=True,
)
