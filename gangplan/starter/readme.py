"""The README of a new workspace: what is where, the first steps of its owner, and those of a user."""

from __future__ import annotations

from gangplan.gitops.source import EXAMPLE_REPOSITORY
from gangplan.starter.answers import WorkspaceAnswers

_ENGINES = {"argocd": "Argo CD", "flux": "Flux"}


def render_readme_of_new_workspace(answers: WorkspaceAnswers) -> str:
    """Write the README in Markdown."""
    folders = [
        ("`specs/<team>/`", "the jobs of each team, one file each, and `team.yaml`", "the team"),
        ("`overlays/<cluster>/`", "versions, node pools, quotas of each cluster", "platform"),
        ("`images/catalog.yaml`", "images that specs may name", "platform"),
        ("`rendered/`", "what is applied; written by `gangplan render`", "generated"),
    ]
    if answers.sync == "tekton":
        folders.append(
            ("`.tekton/`", "the pipelines that check changes, and apply what is merged", "platform")
        )
    elif answers.sync != "none":
        engine = _ENGINES[answers.sync]
        folders.append((f"`{answers.sync}/`", f"what {engine} reads: apply it once per cluster", "platform"))
    table = "\n".join(f"| {folder} | {contents} | {owner} |" for folder, contents, owner in folders)
    steps = "\n".join(
        f"{number}. {step}" for number, step in enumerate(_describe_first_steps_in_new_readme(answers), 1)
    )
    return (
        "# Training jobs\n\n"
        "Each job is a short file in `specs/`. [gangplan](requirements.txt) turns it into Kubernetes objects in\n"
        "`rendered/` and proves that they will run.\n\n"
        "| folder | contents | owner |\n|---|---|---|\n"
        f"{table}\n\n"
        "## First steps\n\n"
        f"{steps}\n\n"
        "## A new job\n\n"
        "```sh\n"
        f"gangplan new job NAME --team {answers.team} --image openmpi --command 'python train.py' --workers 2\n"
        f"gangplan plan specs/{answers.team}/NAME.yaml    # pods, totals, whether the queue admits it\n"
        f"gangplan run specs/{answers.team}/NAME.yaml     # a few ranks on this machine\n"
        "gangplan render    # then commit specs/ and rendered/ together\n"
        "```\n\n"
        "`gangplan list images` (`claims`, `pools`, `queues`, ...) says what there is, and `gangplan explain NAME`\n"
        "what a field or a finding means.\n"
    )


def _describe_first_steps_in_new_readme(answers: WorkspaceAnswers) -> tuple[str, ...]:
    """Return five steps from the new folder to a run."""
    files = " and ".join(f"`overlays/{name}/cluster.yaml`" for name in answers.clusters)
    task = "Add quotas to what was seen, in" if answers.seen else "State versions, node pools and quotas in"
    state = (
        f"{task} {files}.\n"
        f"   `gangplan cluster snapshot {answers.cluster}` shows where a file differs from its cluster."
    )
    catalog = (
        "Name your images in `images/catalog.yaml`, whose entries are examples. `gangplan images pin` looks up\n"
        "   their digests."
    )
    return (
        state,
        catalog,
        _describe_first_job_step_in_readme(answers),
        _describe_review_step_in_readme(answers),
        _describe_sync_step_in_new_readme(answers),
    )


def _describe_first_job_step_in_readme(answers: WorkspaceAnswers) -> str:
    return (
        f"Change the first job, `specs/{answers.team}/quickstart.yaml`. Then run `gangplan render` and\n"
        "   `gangplan validate`, and commit."
    )


def _describe_review_step_in_readme(answers: WorkspaceAnswers) -> str:
    hooks = "`pre-commit install` checks each commit on your machine."
    if answers.forge == "none" and answers.sync != "tekton":
        return (
            f"{hooks} Let your CI run `gangplan validate` and\n"
            "   `gangplan render --check`, too: `gangplan gitops` writes recipes."
        )
    where = (
        "your forge" if answers.forge == "none" else {"github": "GitHub", "gitlab": "GitLab"}[answers.forge]
    )
    return f"{hooks} In the settings of {where}, require the\n   checks of CI and reviews by code owners."


def _describe_sync_step_in_new_readme(answers: WorkspaceAnswers) -> str:
    if answers.sync == "tekton":
        return (
            "Let Pipelines as Code read `.tekton/`, and give it the Secret `gangplan-kubeconfig`: its key `config` is a\n"
            f"   kubeconfig with the context {answers.cluster}. The cluster needs a namespace `gangplan`."
        )
    if answers.sync not in _ENGINES:
        folders = ", ".join(f"`{name}/`" for name in ("platform", "tenants", "runs"))
        return (
            f"Let whatever syncs {answers.cluster} apply {folders} of `rendered/{answers.cluster}/`, in this\n"
            "   order. `gangplan gitops argocd` and `flux` write what these two need."
        )
    settings = (
        ";\n   `kubectl apply --server-side --field-manager=gangplan -f argocd/settings`, once, how to judge runs."
        if answers.sync == "argocd"
        else "."
    )
    address = (
        f"`gangplan gitops {answers.sync} --repo URL -o {answers.sync}` writes your repository's address; then\n   "
        if answers.repository == EXAMPLE_REPOSITORY
        else ""
    )
    return f"{address}`kubectl apply -f {answers.sync}/{answers.cluster}.yaml` tells {_ENGINES[answers.sync]} where all this is{settings}"
