"""Rules about files that a spec mounts."""

from __future__ import annotations

from gangplan.rules.model import ERROR, Rule

FILE_MISSING = Rule(
    "file-missing",
    ERROR,
    "A file that the spec mounts is not there.",
    why="Its bytes become part of the run. gangplan resolves the name from the spec's own folder.",
    fix="Correct the name, or add the file.",
)

FILE_UNUSABLE = Rule(
    "file-unusable",
    ERROR,
    "A file that the spec mounts cannot be used.",
    why=(
        "gangplan takes only plain files in the spec's folder or below it, so reviewers of a spec see everything "
        "that comes with it. YAML files below specs/ are read as specs, unless they are in a folder files/."
    ),
    fix="Move the file into a folder files/ next to the spec.",
)

FILES_TOO_LARGE = Rule(
    "files-too-large",
    ERROR,
    "The files of a spec do not fit into a ConfigMap.",
    why=(
        "They reach the pods as one ConfigMap of the run, which Kubernetes limits to 1 MiB. Git and every "
        "API server keep it as long as the run."
    ),
    fix="Put what is large onto a claim that data mounts, or into the image.",
)

OF_FILES = frozenset({FILE_MISSING, FILE_UNUSABLE, FILES_TOO_LARGE})
