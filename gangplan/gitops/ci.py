"""CI of a workspace: GitHub (a workflow and a composite action), GitLab (a component), Jenkins (a pipeline).

Each validates, compares with the target branch, checks that rendered/ is fresh, and shows what a change would
do. Values come in through variables, never as a part of a script, because people choose the names of
branches. A pull request may change what CI installs, so nothing from it runs where a token may write.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from markupsafe import Markup

from gangplan.errors import UserError
from gangplan.records import dataclass
from gangplan.spec.lookalikes import strip_accents
from gangplan.template import render_yaml

# The official images, which have Python and pip; the large one also has Git.
PYTHON_IMAGE, PYTHON_GIT_IMAGE, PYTHON = "python:3.13-slim", "python:3.13", "3.13"
DEFAULT_BRANCH = "main"
# Actions by the commit of a release: a tag can be moved to other code.
ACTIONS = {
    "actions/checkout": ("de0fac2e4500dabe0009e67214ff5f5447ce83dd", "v6.0.2"),
    "actions/setup-python": ("a309ff8b426b58ec0e2a45f0f869d46889d02405", "v6.2.0"),
    "actions/cache": ("cdf6c1fa76f9f475f3d7449005a359c84ca0f306", "v5.0.3"),
    "actions/upload-artifact": ("b7c566a772e6b6bfb58ed0dc250532a479d7789f", "v6.0.0"),
    "actions/download-artifact": ("37930b1c2abaa49bbe596cd826c3c89aef350131", "v7.0.0"),
    "github/codeql-action/upload-sarif": ("9e907b5e64f6b83e7804b09294d44122997950d6", "v4.32.3"),
}
_IMAGE = re.compile(
    r"[a-z0-9][a-z0-9.-]*(?::\d+)?(?:/[a-z0-9._-]+)*(?::\w[\w.-]{0,127})?(?:@sha256:[0-9a-f]{64})?", re.ASCII
)
_FOLDER = re.compile(r"\.|[A-Za-z0-9_][\w.-]*(/[A-Za-z0-9_][\w.-]*)*")


@dataclass(frozen=True, slots=True)
class CiOptions:
    """What the recipes depend on: the branch that is synced, the folder of the workspace in the repository
    (`.` at its top), the image, the version of Python, and when runs that are due are committed (cron; empty:
    never)."""

    branch: str = "main"
    workspace: str = "."
    image: str = ""
    python: str = PYTHON
    schedules: str = ""


@dataclass(frozen=True, slots=True)
class _Pin:
    uses: str
    comment: str


def render_github_files(options: CiOptions, pins: Mapping[str, str]) -> dict[str, str]:
    """Render the workflow and the composite action, and the workflow of schedules if there is one; `pins` are
    commits for some of the actions."""
    values = {
        "branch": options.branch,
        "workspace": options.workspace,
        "here": Markup("" if options.workspace == "." else f"{options.workspace}/"),
        "python": options.python,
        "pins": {name: _select_action_pin(name, pins) for name in ACTIONS},
    }
    files = {
        ".github/workflows/gangplan.yaml": render_yaml("ci/github-workflow.yaml.j2", values),
        ".github/actions/gangplan/action.yaml": render_yaml("ci/github-action.yaml.j2", values),
    }
    if options.schedules:
        values |= {"schedules": options.schedules}
        text = render_yaml("ci/github-schedules.yaml.j2", values)
        files[".github/workflows/gangplan-schedules.yaml"] = text
    return files


def render_gitlab_files(options: CiOptions) -> dict[str, str]:
    """Render the component, and a pipeline that includes it."""
    values = {"image": options.image or PYTHON_IMAGE, "workspace": options.workspace}
    return {
        ".gitlab-ci.yml": render_yaml("ci/gitlab.yaml.j2", values),
        ".gitlab/gangplan.yml": render_yaml("ci/gitlab-component.yaml.j2", values),
    }


def render_jenkins_files(options: CiOptions) -> dict[str, str]:
    """Render a declarative pipeline."""
    values = {
        "image": _quote_groovy_string(options.image or PYTHON_GIT_IMAGE),
        "workspace": _quote_groovy_string(options.workspace),
    }
    return {"Jenkinsfile": render_yaml("ci/jenkinsfile.j2", values)}


def check_ci_image(image: str, words: str) -> str:
    """Return the image if it is the name of one; `words` are how users give it. Raises UserError."""
    if not _IMAGE.fullmatch(image):
        help = f"Write {words} registry.example.com/ci/gangplan@sha256:DIGEST."
        raise UserError(f"'{image}' is not the name of an image", help)
    return image


def check_workspace_folder_in_repository(folder: str, words: str = "--prefix") -> str:
    """Return the folder of a workspace in its repository, without slashes around it; `.` is its top. Raises
    UserError."""
    plain = folder.strip("/") or "."
    if not is_recipe_folder(plain):
        signs = "in letters, digits, '.', '_' and '-'"
        help = f"Write it from the top of the repository, {signs}: {words} ml/jobs."
        raise UserError(f"'{folder}' cannot be the folder of a workspace", help)
    return plain


def is_recipe_folder(folder: str) -> bool:
    """Return whether recipes can name a folder as it is."""
    return bool(_FOLDER.fullmatch(folder)) and ".." not in folder.split("/")


def simplify_folder(folder: str) -> str:
    """Return a name that recipes can use, close to the name of a folder that they cannot use."""
    near = folder if folder.isascii() else strip_accents(folder)
    parts = [re.sub(r"[^A-Za-z0-9_.]+", "-", part).strip("-.") for part in near.split("/")]
    return "/".join(part or "jobs" for part in parts)


def check_github_action_pins(pins: Mapping[str, str]) -> Mapping[str, str]:
    """Check that the pins are whole commits of actions that the workflow uses, and return them. Raises
    UserError."""
    for name, commit in pins.items():
        if name not in ACTIONS or not re.fullmatch(r"[0-9a-f]{40}", commit):
            help = f"Write --pin ACTION=COMMIT with 40 hexadecimal digits; actions: {', '.join(ACTIONS)}."
            raise UserError(f"'{name}={commit}' does not pin an action of the workflow", help)
    return pins


def _select_action_pin(name: str, pins: Mapping[str, str]) -> _Pin:
    commit, release = ACTIONS[name]
    if name in pins and pins[name] != commit:
        return _Pin(f"{name}@{pins[name]}", Markup(""))
    return _Pin(f"{name}@{commit}", Markup(f" # {release}"))


def _quote_groovy_string(text: str) -> Markup:
    """Quote a checked value as a Groovy string without interpolation."""
    return Markup(f"'{text}'")
