"""Rules about files that a spec mounts."""

from __future__ import annotations

from gangplan.rules.model import ERROR, Rule

FILE_MISSING = Rule(
    "file-missing",
    ERROR,
    "A file that the spec mounts is not there.",
    why="Its bytes become a part of the run. They are looked for next to the spec, from its own folder on.",
    fix="Correct the name, or add the file.",
)

FILE_UNUSABLE = Rule(
    "file-unusable",
    ERROR,
    "A file that the spec mounts cannot be taken.",
    why=(
        "Only plain files in the folder of the spec or below it are taken: whoever reviews a spec sees all "
        "that comes with it. YAML files below specs/ are read as specs, unless they are in a folder files/."
    ),
    fix="Move the file into a folder files/ next to the spec.",
)

FILES_TOO_LARGE = Rule(
    "files-too-large",
    ERROR,
    "The files of a spec are more than a ConfigMap holds.",
    why=(
        "They reach the pods as one ConfigMap of the run, of which Kubernetes takes 1 MiB, and Git and every "
        "API server keep it as long as the run."
    ),
    fix="Put what is large onto a claim that data mounts, or into the image.",
)

OF_FILES = frozenset({FILE_MISSING, FILE_UNUSABLE, FILES_TOO_LARGE})
