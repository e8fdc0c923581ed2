"""Rules about built objects: what an overlay's patches can break, by schemas and by the servers' rules."""

from __future__ import annotations

from gangplan.rules.model import ERROR, Deduplication, Rule

SCHEMA = Rule(
    "schema",
    ERROR,
    "An object does not match the schema of its kind.",
    why=(
        "The API server of the stated version would refuse it at sync time, which breaks the sync for "
        "everybody. Rendered objects match by construction, so a patch of the overlay is to blame."
    ),
    fix="Correct the patch named in the finding.",
    is_verdict=True,
    echo=Deduplication.CAUSE,
)

SCHEMA_MISSING = Rule(
    "schema-missing",
    ERROR,
    "There is no schema for an object.",
    why=(
        "What cannot be checked does not pass. A kind or version that the cluster does not serve would "
        "fail the sync."
    ),
    fix="State the component's version in cluster.yaml, or use a version that is served.",
    is_verdict=True,
    untested="patches cannot change a kind; tests/validate/test_schema.py has every way.",
)

OBJECT_INVALID = Rule(
    "object-invalid",
    ERROR,
    "Fields of an object contradict each other.",
    why=(
        "A schema judges one field at a time. The API server, a webhook or the Job that is created later "
        "still refuses this, and the user sees it only as an event."
    ),
    fix="Correct the patch named in the finding.",
    is_verdict=True,
    echo=Deduplication.CAUSE,
)

QUEUE_INVALID = Rule(
    "queue-invalid",
    ERROR,
    "Kueue refuses a queue, cohort or flavor, or it makes a queue inactive.",
    why=(
        "Kueue accepts references to things that do not exist, and then silently admits nothing in the "
        "whole queue."
    ),
    fix="Correct the patch named in the finding.",
    is_verdict=True,
    echo=Deduplication.CAUSE,
)

BOUNDS_UNCOVERED = Rule(
    "bounds-uncovered",
    ERROR,
    "A LimitRange adds a resource that the queue does not cover.",
    why=(
        "The default of a LimitRange counts as a request of every container. A request for a resource "
        "without quota in the queue is never admitted (kueue#4848)."
    ),
    fix="Remove the bound, or cover the resource in the queue.",
    is_verdict=True,
    echo=Deduplication.CAUSE,
)

KUBECONFORM = Rule(
    "kubeconform",
    ERROR,
    "kubeconform rejects an object.",
    why=("A second program reads the same schemas, so that a mistake in one validator shows."),
    fix="Report it as a bug: the embedded validator should have found it first.",
    is_verdict=True,
    untested=(
        "nothing passes the embedded validator and fails here; tests/tools/test_kubeconform.py has "
        "its verdicts."
    ),
)

OVERLAY_KIND = Rule(
    "overlay-kind",
    ERROR,
    "The overlay is not a kustomize Component.",
    why=(
        "A Component holds patches for objects that come from elsewhere. A Kustomization could add "
        "objects of its own, or rename objects."
    ),
    fix="Write kind: Component.",
)

OVERLAY_TRANSFORMER = Rule(
    "overlay-transformer",
    ERROR,
    "The overlay uses a transformer that is not safe for runs.",
    why=(
        "Prefixes and labels change names and selectors, but not the references to them inside custom "
        "resources; a run would fall apart."
    ),
    fix="Use patches with JSON6902 operations.",
)

OVERLAY_PATCH = Rule(
    "overlay-patch",
    ERROR,
    "A patch of the overlay cannot be used.",
    why=(
        "Strategic merges replace whole lists of custom resources, a patch without a target applies to "
        "nothing, and a changed name breaks references. kustomize accepts all of these."
    ),
    fix="Write a target and a list of {op, path, value} with paths that exist.",
)

OVERLAY_NO_MATCH = Rule(
    "overlay-no-match",
    ERROR,
    "A patch matches no object of the cluster.",
    why=("kustomize silently accepts such a patch, and its author believes that it protects something."),
    fix="Correct its target, or remove it.",
)
