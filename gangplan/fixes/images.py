"""Replace images that are written out by the catalog's name in specs, or by its digest in patches."""

from __future__ import annotations

import re
from collections.abc import Iterator

from gangplan.findings import FieldPath, Fix
from gangplan.resolve.image import apply_mirrors
from gangplan.source import Document
from gangplan.spec.catalog import Image, ImageCatalog
from gangplan.spec.cluster import Cluster

# Where specs and team files name an image.
_PLACES: tuple[FieldPath, ...] = (("image",), ("defaults", "image"))
# What may not precede and follow an image: parts of a longer name.
_BEFORE, _BEHIND = r"(?<![\w./:@-])", r"(?![\w.:/@-])"


def find_name_fixes(document: Document, catalog: ImageCatalog) -> Iterator[Fix]:
    """Yield a fix for each image written with the tag or digest of a catalog entry: its name.

    The name pins the digest, and the cluster's own mirror is found by it. A tag that the catalog does not
    have is another image, and a repository alone could be any.
    """
    for path in _PLACES:
        written = document.text(path)
        name = name_of(written, catalog) if written else None
        text = document.like(path, name) if name and name != written else None
        fix = document.fix(path, text, f"the catalog pins {written} as {name}") if text else None
        if fix is not None:
            yield fix


def name_of(written: str, catalog: ImageCatalog) -> str | None:
    """Return the only entry of the catalog that a reference names exactly; None for none or several."""
    found = [
        name
        for name, image in catalog.images.items()
        if written in set(_list_catalog_image_references(name, image))
    ]
    return found[0] if len(found) == 1 else None


def _list_catalog_image_references(name: str, image: Image) -> Iterator[str]:
    places = {image.repository, *(own.repository for own in image.clusters.values() if own.repository)}
    for place in (name, *places):
        if image.tag:
            yield f"{place}:{image.tag}"
            yield f"{place}:{image.tag}@{image.digest}"
        yield f"{place}@{image.digest}"


def find_digest_fixes(
    file: str, text: str, cluster: str, facts: Cluster, catalog: ImageCatalog
) -> Iterator[Fix]:
    """Yield a fix for each image with a tag of the catalog in a cluster's patches: its digest.

    Patches are text inside text, so they are searched as text; comments are left alone.
    """
    pinned: dict[str, set[str]] = {}
    for image in catalog.images.values():
        own = image.clusters.get(cluster)
        digest = own.digest if own and own.digest else image.digest
        for place in {
            image.repository,
            apply_mirrors(image.repository, facts),
            own.repository if own else None,
        }:
            if place and image.tag:
                pinned.setdefault(f"{place}:{image.tag}", set()).add(f"{place}@{digest}")
    for number, line in enumerate(re.split(r"\r\n|\n|\r", text), 1):
        code = re.split(r"(?:^|\s)#", line, maxsplit=1)[0]
        for tagged, references in pinned.items():
            if len(references) != 1:
                continue
            (reference,) = references
            for match in re.finditer(f"{_BEFORE}{re.escape(tagged)}{_BEHIND}", code):
                why = f"the catalog pins {tagged}"
                yield Fix(file, number, match.start() + 1, number, match.end() + 1, reference, why)
