"""Rules about sweeps: many runs of one job, a limited number at a time."""

from __future__ import annotations

from gangplan.rules.model import ERROR, WARNING, Rule

PARAMETER_UNKNOWN = Rule(
    "parameter-unknown",
    ERROR,
    "The template of a sweep asks for a value that the sweep does not have.",
    why=(
        "${{ parameters.NAME }} is filled in for every trial. Without a value, each trial would get the text itself, "
        "and train with it or fail after it has waited for its GPUs."
    ),
    fix="Correct the name, or add the parameter.",
)

PARAMETER_UNUSED = Rule(
    "parameter-unused",
    ERROR,
    "A parameter of a sweep is not used in its template.",
    why="Trials that differ only in a value that no program sees are the same run several times, at full price.",
    fix="Write ${{ parameters.NAME }} into command or env of the template, or remove the parameter.",
)

PARAMETER_TWICE = Rule(
    "parameter-twice",
    ERROR,
    "A sweep tries the same value twice.",
    why="1e-3 and 0.001 are one value to the program: the same trial would be paid for twice.",
    fix="Remove one of them.",
)

PARAMETER_VALUES = Rule(
    "parameter-values",
    ERROR,
    "The parameters of a sweep cannot be tried as they are written.",
    why=(
        "Every trial has a value for each parameter, and there is at least one trial. A range begins below its end; "
        "on a logarithmic scale, above zero."
    ),
    fix="Name the same parameters in grid, list and random, and correct the range.",
)

SWEEP_TEMPLATE = Rule(
    "sweep-template",
    ERROR,
    "The template of a sweep has a field that belongs to the sweep itself.",
    why=(
        "The sweep names its trials, puts them into a queue of its own and says which are over. The template has "
        "the fields of a TrainingJob that describe the work."
    ),
    fix="Move the field out of the template, or remove it.",
)

SWEEP_TOO_LARGE = Rule(
    "sweep-too-large",
    ERROR,
    "A sweep has more trials than the cluster allows.",
    why=(
        "A grid grows by multiplication, and each trial is a run with objects of its own: one value too many in two "
        "lists can ask for thousands of runs. The platform says how many one sweep may have (limits.trials)."
    ),
    fix="Try fewer values, draw some with random, or ask the platform to raise limits.trials.",
    is_verdict=True,
)

TRIAL_UNKNOWN = Rule(
    "trial-unknown",
    ERROR,
    "A sweep lists a trial that it does not have.",
    why="The name of a trial follows from its values. A name that no trial has ends nothing.",
    fix="Take the name from gangplan plan, or remove it.",
)

SWEEP_RESULTS = Rule(
    "sweep-results",
    ERROR,
    "The results of a sweep cannot be read.",
    why=(
        "The file decides which trials are over. A misspelt trial, or a value that is not a number, would keep a "
        "losing trial running or end the wrong one."
    ),
    fix="Write a CSV file with a column trial and one for the metric, and one trial per line.",
)

SWEEP_NEEDS_KUEUE = Rule(
    "sweep-needs-kueue",
    ERROR,
    "A sweep would run on a cluster where nothing holds its trials back.",
    why="maxConcurrent is a quota of Kueue. Where another scheduler starts runs, all trials would start at once.",
    fix="Choose a cluster with gang: kueue, or write a spec for each run.",
)

SWEEP_UNCAPPED = Rule(
    "sweep-uncapped",
    ERROR,
    "Kueue would admit more trials of a sweep at once than maxConcurrent.",
    why=(
        "Trials wait in a queue whose quota of pods holds maxConcurrent of them. A patch that changes the queue, or "
        "trials of very different sizes, would let more through."
    ),
    fix="Remove the patch, or raise maxConcurrent.",
    untested="needs a patch of the sweep's queue; tests/kueue/test_sweeps.py",
    is_verdict=True,
)

SWEEP_SLOWER = Rule(
    "sweep-slower",
    WARNING,
    "The team's quota holds fewer trials at once than maxConcurrent.",
    why=(
        "The queue of a sweep takes from the team's quota and never adds to it, so the team's own limit counts as "
        "well: the sweep takes more waves than maxConcurrent says."
    ),
    fix="Lower maxConcurrent, make trials smaller, or ask for more quota.",
)

TRIAL_REMOVED = Rule(
    "trial-removed",
    WARNING,
    "A trial left its sweep, and its run goes on.",
    why=(
        "No engine deletes an active run whose file leaves Git: the trial trains on, holds its quota, and counts "
        "towards maxConcurrent, although nobody sees it there."
    ),
    fix="Put its values back and list the trial under stopped, or let it end by itself.",
    untested="needs rendered/ of an earlier sweep; tests/sweeps/test_life.py",
)
