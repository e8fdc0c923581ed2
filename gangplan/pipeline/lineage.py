"""The annotations of a kept run's TrainJob, made to agree with the specs that it keeps.

Its metadata is rendered as it is today, and the image of today may be another one. The digest is read from
the run's own containers, for which its name vouches, and not from the annotations in its file, which anybody
may edit. The other annotations come out the same today: a run is only kept for a spec with the same hash, and
the data sets are those that the spec names.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from gangplan.generators.trainjob import IMAGE_DIGEST
from gangplan.model.backend import BACKEND_BY_HOLDER, BACKEND_BY_KIND
from gangplan.objects import Body

# The container that runs the user's program, in every role (templates/pod.yaml.j2).
_CONTAINER = "node"


def annotate_image_digest(bodies: Sequence[Body]) -> list[Body]:
    """Return the objects of a run, with the digest that its runtime runs in the TrainJob's annotations.

    If the containers have no digest, or different ones, the TrainJob names none.
    """
    found = {
        image.partition("@")[2]
        for body in bodies
        if body["kind"] in BACKEND_BY_HOLDER
        for image in _list_container_images(body["spec"])
    }
    digest = found.pop() if len(found) == 1 else ""
    return [
        _set_image_digest_annotation(body, digest) if body["kind"] in BACKEND_BY_KIND else body
        for body in bodies
    ]


def _set_image_digest_annotation(job: Body, digest: str) -> Body:
    metadata = job["metadata"]
    annotations = metadata.get("annotations") or {}
    if annotations.get(IMAGE_DIGEST, digest) == digest:
        return job  # already right, or removed by a patch of the cluster
    told = {name: digest if name == IMAGE_DIGEST else value for name, value in annotations.items()}
    if not digest:
        del told[IMAGE_DIGEST]
    return {**job, "metadata": {**metadata, "annotations": told}}


def _list_container_images(value: Any) -> Iterator[str]:
    """Yield the images of a spec's containers. It comes from a file and may hold anything."""
    if isinstance(value, dict):
        for name, item in value.items():
            if name == "containers" and isinstance(item, list):
                own = [one for one in item if isinstance(one, dict) and one.get("name") == _CONTAINER]
                yield from (str(one.get("image")) for one in own)
            else:
                yield from _list_container_images(item)
    elif isinstance(value, list):
        for item in value:
            yield from _list_container_images(item)
