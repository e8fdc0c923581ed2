"""Rules about the sources of `gangplan import` (docs/import.md)."""

from __future__ import annotations

from gangplan.rules.model import ERROR, WARNING, Rule

IMPORT_SOURCE = Rule(
    "import-source",
    ERROR,
    "A source is not of the kind that the command names, or lacks what makes it a job.",
    why=(
        "gangplan reads each kind of source by its own format. An object without a pod, or a file of another kind, "
        "has nothing that could become a spec."
    ),
    fix="Name the right kind: gangplan import --help lists them.",
)

IMPORT_TEMPLATE = Rule(
    "import-template",
    ERROR,
    "Another program still has to fill in a value of the source.",
    why=(
        "Published manifests are often templates for envsubst, Helm or a shell. gangplan cannot know the number or "
        "the image that will be there, and a guess would change what runs."
    ),
    fix="Give the value: --set NAME=VALUE; or render the template first.",
)

IMPORT_ENTRYPOINT = Rule(
    "import-entrypoint",
    ERROR,
    "A source has no command, because the image's own entrypoint starts the program.",
    why=(
        "A spec names the program that every rank starts, and what an image starts by itself is not in a manifest. "
        "Arguments alone would be taken for the program."
    ),
    fix="Give the entrypoint with its arguments: --command 'PROGRAM ...'.",
)

IMPORT_SCRIPT = Rule(
    "import-script",
    ERROR,
    "A batch script does something that only running it would show.",
    why=(
        "gangplan reads scripts and never runs them. What a loop, a branch or the output of a command decides is not "
        "known before the run, so that a spec would be a guess."
    ),
    fix="Write the launch itself, with the values of one run, and import that.",
)

IMPORT_ASKED = Rule(
    "import-asked",
    WARNING,
    "A source leaves a question open that only a person can answer.",
    why=(
        "A digest, the MPI inside an image or the access modes of a claim are not in a manifest; and some settings "
        "have no place in a spec. gangplan assumes the likely value where there is one, and says so, because a "
        "silent assumption would be found in production."
    ),
    fix="Follow the help of the finding; the account (gangplan import --account) lists every field.",
)

IMPORT_UNPLACED = Rule(
    "import-unplaced",
    WARNING,
    "A workspace file is written in a way that leaves no place for a suggestion.",
    why=(
        "gangplan adds entries where no other byte changes. In a mapping with comments inside braces, or where "
        "another value is already set, there is no such place."
    ),
    fix="Add the lines of the help yourself.",
    untested="A file with comments inside of braces; tests/imports/test_laws.py has cases of such files (import-unplaced).",
)


IMPORT_PATCH = Rule(
    "import-patch",
    ERROR,
    "Something of a kustomize overlay has no place in a cluster's overlay.",
    why=(
        "An overlay in gangplan holds JSON6902 patches on what gangplan renders. A merge for another kind, or one "
        "that deletes an object, has nothing there to change. Images, namespaces and names are fields of gangplan's "
        "own files; this is a warning, as the patches are taken over without them."
    ),
    fix="Import what the overlay builds, or write the operations yourself (docs/overlays.md).",
)
