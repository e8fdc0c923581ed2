"""What containers of runs start with: their commands, and the launch scripts that these name.

The text is one that a shell reads: commands as they would be typed, the scripts below them, and the rest as
comments.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from gangplan.generators.scripts import SCRIPTS_FOLDER, SCRIPTS_VOLUME
from gangplan.objects import Body
from gangplan.pipeline.launch_maps import launch_map_path_of
from gangplan.pipeline.worker import PlannedRun
from gangplan.records import dataclass
from gangplan.report.edit import describe_over_run
from gangplan.report.escape import escape_own_line
from gangplan.source import load_objects
from gangplan.validate.promise.launch import unescape_kubelet_word
from gangplan.validate.world import find_pod_templates

SHAPE = 1
_SOURCED = re.compile(r'^\. "\$\{0%/\*\}/([a-z]+\.sh)"$', re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Start:
    """How a container of a role starts: its words, and the launch script among them with its ConfigMap.

    `config_map` and `script` are empty for a container that starts without one.
    """

    role: str
    words: tuple[str, ...]
    config_map: str
    script: str


# The scripts of ConfigMaps, by their names; each with its files in the order of their names.
Maps = Mapping[str, Mapping[str, str]]


def render_launch_scripts_text(runs: Sequence[PlannedRun], texts: Mapping[str, str]) -> str:
    """Return the command of each role of each run, then each launch script that they use, once.

    `texts` are the rendered files by their paths below `rendered/`.
    """
    lines, used = [], dict[str, set[str]]()
    for run in runs:
        lines.append(
            f"# {escape_own_line(f'{run.unit.job.source} on {run.cluster}: {_format_run_name(run)}')}"
        )
        starts = list(_find_container_starts(run, texts))
        if not starts:
            lines.append(f"#   {describe_over_run(run.unit.job)}")
        for one in starts:
            lines += [f"# {one.role}", shlex.join(one.words)]
            used.setdefault(one.config_map, set()).add(one.script)
        lines.append("")
    for name, files in sorted(_collect_printed_launch_scripts(runs, texts).items()):
        for file in _list_needed_script_files(files, used.get(name, ())):
            lines += [f"# {SCRIPTS_FOLDER}/{file} ({name})", files[file]]
    return "\n".join(lines)


def build_launch_scripts_json(runs: Sequence[PlannedRun], texts: Mapping[str, str]) -> dict[str, Any]:
    """Return the commands and the scripts as data."""
    used = dict[str, set[str]]()
    documents = []
    for run in runs:
        starts = list(_find_container_starts(run, texts))
        for one in starts:
            used.setdefault(one.config_map, set()).add(one.script)
        facts = {"spec": run.unit.job.source, "cluster": run.cluster, "namespace": run.unit.job.namespace}
        containers = [
            {"role": one.role, "words": list(one.words), "script": one.script, "configMap": one.config_map}
            for one in starts
        ]
        documents.append({**facts, "name": run.name, "containers": containers})
    scripts = {
        name: {file: files[file] for file in _list_needed_script_files(files, used.get(name, ()))}
        for name, files in sorted(_collect_printed_launch_scripts(runs, texts).items())
    }
    return {"version": SHAPE, "runs": documents, "scripts": scripts}


def _format_run_name(run: PlannedRun) -> str:
    return f"{run.unit.job.namespace}/{run.name}"


def _find_container_starts(run: PlannedRun, texts: Mapping[str, str]) -> Iterator[Start]:
    """Yield how the containers of a run start that run the program, role by role; none if it is over."""
    job = run.unit.job
    for body in () if job.is_stopped or job.is_archived else load_objects(texts.get(run.path, "")):
        for _, template in find_pod_templates(body):
            spec = template.get("spec") or {}
            labels = (template.get("metadata") or {}).get("labels") or {}
            containers = spec.get("containers") or ()
            box = next((one for one in containers if one.get("name") == "node"), None)
            if box is not None:
                yield _build_container_start(
                    str(labels.get("gangplan.dev/role", "")), box, spec.get("volumes") or ()
                )


def _build_container_start(role: str, box: Body, volumes: Sequence[Body]) -> Start:
    words = [
        unescape_kubelet_word(str(word)) for field in ("command", "args") for word in box.get(field) or ()
    ]
    mounted = next((one for one in volumes if one.get("name") == SCRIPTS_VOLUME), {})
    name = str((mounted.get("configMap") or {}).get("name") or "")
    return Start(role, tuple(words), name, words[3] if name and len(words) > 3 else "")


def _collect_printed_launch_scripts(runs: Sequence[PlannedRun], texts: Mapping[str, str]) -> Maps:
    """Return the files of all ConfigMaps of scripts that runs mount."""
    found: dict[str, dict[str, str]] = {}
    for run in runs:
        for name in {one.config_map for one in _find_container_starts(run, texts)} - {"", *found}:
            text = texts.get(launch_map_path_of(run.cluster, run.unit.job.team, name[-8:]), "")
            for body in load_objects(text):
                found[name] = {key: str(value) for key, value in sorted((body.get("data") or {}).items())}
    return found


def _list_needed_script_files(files: Mapping[str, str], scripts: Sequence[str] | set[str]) -> list[str]:
    """Return the files that some scripts are made of: themselves, and what they read in; first those."""
    found: dict[str, None] = {}
    for one in sorted(scripts):
        if one in files:
            found |= dict.fromkeys((*_SOURCED.findall(files[one]), one))
    return list(found)
