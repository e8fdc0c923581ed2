"""The launch scripts: one immutable ConfigMap per team and content, and the words that start a script.

All pods of all runs start with the same files (templates/launch/*.sh); what differs between runs are options.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from hashlib import sha256

from gangplan.generators.common import LABEL_PREFIX, MANAGED_LABEL
from gangplan.model import syncing
from gangplan.model.exits import LAUNCH_EXITS
from gangplan.model.job import Job
from gangplan.model.kinds import SYNC_WAVES
from gangplan.objects import Body
from gangplan.template import TEMPLATES_FOLDER
from gangplan.waivers import build_mark_labels

# Where pods of a run find the scripts.
SCRIPTS_FOLDER = "/opt/gangplan-launch"
SCRIPTS_VOLUME = "gangplan-launch"
SCRIPT_FILES = ("common.sh", "launcher.sh", "program.sh", "ranks.sh", "worker.sh")
# A ConfigMap can be created again with other content: texts that moved from one file to the next leave one
# file empty, which succeeds at once. An image without sha256sum starts unchecked. It sets no variable, which
# could be one of the job's.
_START = """\
case $({{ cd {folder} && sha256sum *.sh; }} 2>/dev/null | sha256sum 2>/dev/null) in
'' | {digest}\\ *) exec /bin/sh "{folder}/$0" "$@" ;;
esac; echo "gangplan: {folder} does not hold the launch scripts of this run" >&2; exit {code}
"""


@cache
def read_launch_scripts() -> dict[str, str]:
    """Return the text of each script by the name of its file, in the order of names."""
    return {name: (TEMPLATES_FOLDER / "launch" / name).read_text(encoding="utf-8") for name in SCRIPT_FILES}


@cache
def scripts_digest() -> str:
    """Return the digest of today's scripts, which the command of each pod states."""
    return hash_launch_scripts(read_launch_scripts())


def hash_launch_scripts(texts: Mapping[str, str]) -> str:
    """Return the SHA-256 of the list that `sha256sum *.sh` prints, so that names count as well as texts."""
    lines = [f"{sha256(texts[name].encode()).hexdigest()}  {name}\n" for name in sorted(texts)]
    return sha256("".join(lines).encode()).hexdigest()


def name_launch_script_config_map() -> str:
    """Return the name of the ConfigMap of the scripts, which the first eight digits of their digest end."""
    return f"{SCRIPTS_VOLUME}-{scripts_digest()[:8]}"


def is_launch_script_config_map(bodies: Sequence[Body], namespace: str, digest: str) -> bool:
    """Return whether objects are one ConfigMap of launch scripts with these digits, in a namespace.

    Eight digits only rule out mistakes: the command of each pod has the whole digest, and today's scripts are
    known.
    """
    if len(bodies) != 1:
        return False
    (body,) = bodies
    metadata = body.get("metadata")
    if not isinstance(metadata, dict):
        return False
    name = f"{SCRIPTS_VOLUME}-{digest}"
    is_named = (metadata.get("name"), metadata.get("namespace")) == (name, namespace)
    is_alone = (
        body.get("kind") == "ConfigMap" and not body.get("binaryData") and body.get("immutable") is True
    )
    if name == name_launch_script_config_map():
        return is_named and is_alone and body.get("data") == read_launch_scripts()
    return is_named and is_alone and digest in _list_possible_script_digests(body)


def _list_possible_script_digests(body: Body) -> list[str]:
    """Return the first eight digits of the digests that the pods of some gangplan compute from a ConfigMap.

    Before names counted, the digest was that of all texts, one after another.
    """
    data = body["data"] if isinstance(body.get("data"), dict) else {}
    texts = {str(name): str(text) for name, text in data.items() if str(name).endswith(".sh")}
    digests = [hash_launch_scripts(texts)]
    if sorted(texts) == sorted(SCRIPT_FILES) and all(text.startswith("# ") for text in texts.values()):
        digests.append(sha256("".join(texts[name] for name in sorted(texts)).encode()).hexdigest())
    return [digest[:8] for digest in digests]


def team_source_of(team: str) -> str:
    """Return the file of a team, from which its ConfigMap of scripts comes."""
    return f"specs/{team}/team.yaml"


def generate_launch_script_config_map(job: Job, waived: Sequence[str] = ()) -> Body:
    """Return the ConfigMap with the scripts in the namespace of a job: the same for all runs of the team.

    `waived` are the policies that the team need not follow.
    """
    annotations = {**syncing.build_run_sync_annotations(), **syncing.build_verbatim_annotations()}
    annotations |= {
        **syncing.build_wave_annotations(SYNC_WAVES["runs", "ConfigMap"]),
        f"{LABEL_PREFIX}source": team_source_of(job.team),
    }
    metadata = {
        "name": name_launch_script_config_map(),
        "namespace": job.namespace,
        "labels": {
            MANAGED_LABEL: "gangplan",
            syncing.SCRIPTS: "launch",
            f"{LABEL_PREFIX}team": job.team,
            **build_mark_labels(waived),
        },
        "annotations": dict(sorted(annotations.items())),
    }
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": metadata,
        "immutable": True,
        "data": dict(read_launch_scripts()),
    }


@cache
def start_text() -> str:
    """Return the shell command that starts a script once it is known to be that of the run."""
    code = LAUNCH_EXITS["scripts"].code
    return _START.format(folder=SCRIPTS_FOLDER, digest=scripts_digest(), code=code)


def generate_script_start_command(script: str, options: Iterable[tuple[str, str | int]]) -> list[str]:
    """Return the command of a container that starts a script with these options; empty ones are left out."""
    words = [f"--{name}={value}" if value != "yes" else f"--{name}" for name, value in options if value]
    return ["/bin/sh", "-c", start_text(), script, *words, "--"]
