"""Rules about reading files: YAML, spec files, required files of the workspace, and names."""

from __future__ import annotations

from gangplan.rules.model import ERROR, Rule

YAML_SYNTAX = Rule(
    "yaml-syntax",
    ERROR,
    "The file is not YAML.",
    why=(
        "gangplan does not guess at a file that it cannot read. The message says where reading stopped "
        "and what is usually wrong there, such as a missing space after a colon or a tab."
    ),
    fix=("Correct the line; editors show it when they know the schema (first line of the samples)."),
)

YAML_EMPTY = Rule(
    "yaml-empty",
    ERROR,
    "The file is empty.",
    why=(
        "An empty spec is nearly always a file that was saved too early or a merge that went wrong. "
        "Treated as a spec without fields, it would be a run that nobody asked for."
    ),
    fix="Write the spec, or remove the file.",
)

YAML_DUPLICATE_KEY = Rule(
    "yaml-duplicate-key",
    ERROR,
    "A key is set twice in one mapping.",
    why=(
        "Most YAML readers keep the last value silently, others keep the first. Two people looking at "
        "the same file would see two different jobs."
    ),
    fix="Keep one of the two lines.",
)

YAML_MANY_DOCUMENTS = Rule(
    "yaml-many-documents",
    ERROR,
    "The file contains several YAML documents.",
    why=(
        "A spec file describes one job, and its name is the job's name. A second document would be "
        "ignored by some readers."
    ),
    fix="Put each job in a file of its own.",
)

YAML_TAG = Rule(
    "yaml-tag",
    ERROR,
    "The file uses a YAML tag, which is not supported.",
    why=(
        "Tags such as !!python/object make some readers run code or build objects. Kubernetes supports "
        "none of them, so gangplan refuses them all."
    ),
    fix="Remove the tag, or quote the value.",
)

YAML_ALIAS_BOMB = Rule(
    "yaml-alias-bomb",
    ERROR,
    "Aliases repeat the same text too often.",
    why=(
        'A few lines of nested aliases expand to gigabytes ("billion laughs"). A limit on the expanded '
        "size keeps one file from blocking everybody's checks."
    ),
    fix="Write the values out, or use fewer aliases.",
)

YAML_MERGE_KEY = Rule(
    "yaml-merge-key",
    ERROR,
    "The file uses the merge key <<.",
    why=(
        "YAML 1.2 dropped it and readers disagree about which value wins. A job's meaning must not "
        "depend on the reader."
    ),
    fix="Write the values out; defaults belong in team.yaml.",
)

YAML_KEY_TYPE = Rule(
    "yaml-key-type",
    ERROR,
    "A key is not text.",
    why=(
        "Kubernetes reads YAML 1.1, where on, off, yes and no are booleans and 1e3 is a number. As keys "
        "they would turn into something other than what is written. A leftover template brace ends up "
        "here, too."
    ),
    fix="Put quotes around the key.",
)

YAML_BAD_NUMBER = Rule(
    "yaml-bad-number",
    ERROR,
    "A number is infinite or not a number.",
    why=("JSON, and so every Kubernetes API, has no infinity and no NaN. The object could not be sent."),
    fix="Write a finite number, or quote the text.",
)

YAML_CONTROL_CHARACTER = Rule(
    "yaml-control-character",
    ERROR,
    "The file contains a control character.",
    why=(
        "Control characters cannot be seen in a review, and YAML forbids most of them. They come from "
        "copied terminal output, or from somebody hiding something."
    ),
    fix="Remove the character at the reported place.",
)

YAML_NOT_UTF8 = Rule(
    "yaml-not-utf8",
    ERROR,
    "The file is not UTF-8.",
    why=(
        "Kubernetes and Git tools read UTF-8. A file in another encoding reads differently from one "
        "machine to the next."
    ),
    fix="Save the file as UTF-8 without a byte order mark.",
    untested=(
        'an example is text, and this is about bytes; tests/test_malformed.py has "not UTF-8" and "UTF-16".'
    ),
)

YAML_TOO_DEEP = Rule(
    "yaml-too-deep",
    ERROR,
    "The file is nested more deeply than any format here.",
    why=(
        "No file of a workspace needs more than a few levels. Thousands of brackets stop many "
        "readers with a stack overflow."
    ),
    fix="Look for brackets or indentation that repeat by mistake.",
)

YAML_TOO_LARGE = Rule(
    "yaml-too-large",
    ERROR,
    "The file is larger than a spec can be.",
    why=(
        "A spec is about one kilobyte; the limit is one megabyte. Anything larger is stray data, and "
        "would slow every check down."
    ),
    fix="Keep data out of specs; mount it from a claim or read it from a bucket.",
    untested=('an example of a megabyte does not fit a page; tests/test_malformed.py has "too large".'),
)

FILE_UNREADABLE = Rule(
    "file-unreadable",
    ERROR,
    "A required file cannot be read.",
    why=(
        "Skipping a missing file, a folder in its place or a link would silently drop a job, so gangplan "
        "reports it. Links could lead out of the workspace."
    ),
    fix="Put a regular file there, or remove what is there now.",
)

SPEC_MISSING_FIELD = Rule(
    "spec-missing-field",
    ERROR,
    "A required field is missing.",
    why=("Few fields are required, and none of them has a default that would suit everybody."),
    fix="Add the field; the help shows an example.",
)

SPEC_UNKNOWN_FIELD = Rule(
    "spec-unknown-field",
    ERROR,
    "A field does not exist in this format.",
    why=(
        "An unknown field is nearly always a typo or a word from another tool. If gangplan ignored it, "
        "the job would run with a default that nobody chose."
    ),
    fix="Use the suggested field, or look it up with `gangplan explain FIELD`.",
)

SPEC_TYPE = Rule(
    "spec-type",
    ERROR,
    "A value has the wrong type.",
    why=(
        'gangplan never converts values. "4" is text and 4 is a number; guessing would turn 010 into 8 '
        "and no into false."
    ),
    fix="Write the value as the message says, with or without quotes.",
)

SPEC_VALUE = Rule(
    "spec-value",
    ERROR,
    "A value has the right type, but is not allowed here.",
    why=(
        "Amounts need Kubernetes units, durations need a unit, and names are limited to the characters "
        "that DNS allows. An API server would refuse a wrong value later, in an event that nobody reads."
    ),
    fix="Write the value as the help says.",
)

SPEC_FILE_NAME = Rule(
    "spec-file-name",
    ERROR,
    "The file's name is not a valid job name, or the file would be ignored.",
    why=(
        "The file's name is the job's name, which becomes part of Kubernetes names. A file that ends in "
        ".yml or contains capitals would be left out, and nobody would notice."
    ),
    fix=("Rename it to lower-case letters, digits and '-', ending in .yaml, or set name in the spec."),
)

SPEC_TEAM = Rule(
    "spec-team",
    ERROR,
    "The spec names a different team from its folder's.",
    why=(
        "A folder belongs to a team, with its namespace, quota and reviewers. A spec that claims another "
        "team would spend that team's quota."
    ),
    fix="Move the file into specs/<team>/, or remove the line.",
)

JOB_NAME_TWICE = Rule(
    "job-name-twice",
    ERROR,
    "Two specs in one namespace describe the same job.",
    why=("Both would render runs with the same name, and the second would replace the first in the cluster."),
    fix="Rename one of the files, or set name in one of them.",
)

NAME_TOO_LONG = Rule(
    "name-too-long",
    ERROR,
    "The job's name leaves no room for the names of its pods.",
    why=(
        "A pod is called RUN-ENTRY-REPLICA-INDEX-xxxxx and may have at most 63 characters. Trainer "
        "accepts a longer name, and JobSet then fails to create the pods."
    ),
    fix="Shorten the name to the length in the message.",
)

TEAM_MISSING = Rule(
    "team-missing",
    ERROR,
    "A folder of specs has no team.yaml.",
    why=(
        "The team file says which namespace, claims and secrets the specs may use. Without it "
        "nothing in the folder can be resolved."
    ),
    fix="Add team.yaml; `gangplan schema print team` shows its fields.",
)

WORKSPACE_EMPTY = Rule(
    "workspace-empty",
    ERROR,
    "The workspace has no cluster.",
    why=(
        "Specs are rendered per cluster. Without one, nothing is checked, and checking nothing is never "
        "a success."
    ),
    fix="Add overlays/<cluster>/cluster.yaml.",
    untested="the example would remove a folder; tests/rules/test_extra.py removes it.",
)

CATALOG_MISSING = Rule(
    "catalog-missing",
    ERROR,
    "There is no image catalog.",
    why=(
        "Specs refer to images by their name in the catalog, which holds the repository, digest and MPI. "
        "Without it, no image can be resolved."
    ),
    fix="Add images/catalog.yaml.",
    untested=('the example would repeat the catalog; tests/malformed/platform.yaml has "no catalog".'),
)
