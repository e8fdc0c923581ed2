"""Look up what the catalog's tags mean now, in their registries and where each cluster pulls them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from gangplan.errors import ToolError, UserError
from gangplan.findings import FieldPath, Finding, Fix
from gangplan.oci.manifests import (
    Descriptor,
    architectures_of,
    find_image_in_manifest,
    parse_manifest_or_config_json,
)
from gangplan.oci.names import Reference, parse_registry_image_reference
from gangplan.oci.registry import ImageMissingError, Manifest, RegistryClient
from gangplan.records import dataclass
from gangplan.resolve.image import apply_mirrors
from gangplan.rules.images import (
    IMAGE_ARCHITECTURES,
    IMAGE_DIGEST_GONE,
    IMAGE_MIRROR_DIFFERS,
    IMAGE_TAG_GONE,
    IMAGE_TAG_MOVED,
    IMAGE_TAG_NONE,
)
from gangplan.source import Document
from gangplan.spec.catalog import Image
from gangplan.spec.cluster import Cluster


@dataclass(frozen=True, slots=True)
class PinnedImages:
    """The result of looking up images: changes of the catalog, findings, and images whose registry gave no
    answer.

    `replaced` are the digests that the changes replace, by image.
    """

    fixes: tuple[Fix, ...]
    findings: tuple[Finding, ...]
    failed: tuple[str, ...]
    replaced: Mapping[str, tuple[str, ...]]


def pin_catalog_images(
    images: Mapping[str, Image],
    document: Document,
    clusters: Mapping[str, Cluster],
    registry: RegistryClient,
    via: str | None = None,
) -> PinnedImages:
    """Look up every image: its tag at its source, and its digest wherever one of the clusters pulls it.

    With `via`, tags are looked up where that cluster pulls them, for users who can reach only its mirrors.
    """
    fixes: list[Fix] = []
    findings: list[Finding] = []
    failed: dict[str, list[str]] = {}
    replaced: dict[str, tuple[str, ...]] = {}
    for name, image in images.items():
        asked = _Asked(name, image, document, registry)
        try:
            found = list(asked.all(clusters, via))
        except ToolError as bad:
            failed.setdefault(f"{bad.message}{f' ({bad.help})' if bad.help else ''}", []).append(f"'{name}'")
            continue
        findings += found
        fixes += [one.fix for one in found if one.fix is not None]
        places = {one.where for one in found if one.fix is not None}
        stated = [(("digest",), image.digest), *_list_cluster_digests(image)]
        replaced[name] = tuple(
            digest for path, digest in stated if document.where(("images", name, *path)) in places
        )
    told = (
        f"image{'s' if len(names) > 1 else ''} {', '.join(names)}: {reason}"
        for reason, names in failed.items()
    )
    return PinnedImages(tuple(fixes), tuple(findings), tuple(told), replaced)


def _list_cluster_digests(image: Image) -> list[tuple[FieldPath, str]]:
    """Return the digests that clusters state for themselves, with their paths in the image."""
    return [(("clusters", name, "digest"), one.digest) for name, one in image.clusters.items() if one.digest]


@dataclass(frozen=True, slots=True)
class _Asked:
    """One image to look up."""

    name: str
    image: Image
    document: Document
    registry: RegistryClient

    def all(self, clusters: Mapping[str, Cluster], via: str | None) -> Iterator[Finding]:
        """Yield findings about its tag, then about the repositories that clusters pull it from."""
        image = self.image
        repository = self._pulled(via, clusters[via]) if via is not None else image.repository
        digest = image.digest
        if image.tag is None:
            where = self.document.where(("images", self.name), key=True)
            message = f"image '{self.name}' has no tag: only its digest can be looked for"
            yield Finding(IMAGE_TAG_NONE, where, message, "Add tag: where later builds are pushed under one.")
            yield from self._present(repository, digest, ("images", self.name, "digest"))
        else:
            found, digest = self._tag(repository, digest, ("images", self.name, "digest"))
            yield from found
        for cluster, spec in clusters.items():
            yield from self._on(cluster, spec, digest, repository)

    def _on(self, cluster: str, spec: Cluster, digest: str, asked: str) -> Iterator[Finding]:
        own = self.image.clusters.get(cluster)
        place = self._pulled(cluster, spec)
        if own is not None and own.digest:
            path: FieldPath = ("images", self.name, "clusters", cluster, "digest")
            if self.image.tag is None:
                yield from self._present(place, own.digest, path)
            else:
                yield from self._tag(place, own.digest, path)[0]
        elif place != asked and digest:
            try:
                self._ask(place, None, digest)
            except ImageMissingError:
                where = self.document.where(("images", self.name, "digest"))
                message = f"cluster {cluster} pulls image '{self.name}' from {place}, which has no {digest}"
                yield Finding(
                    IMAGE_MIRROR_DIFFERS, where, message, "Copy the image there, or state its own digest."
                )

    def _pulled(self, cluster: str, spec: Cluster) -> str:
        own = self.image.clusters.get(cluster)
        return own.repository if own and own.repository else apply_mirrors(self.image.repository, spec)

    def _tag(self, repository: str, stated: str, path: FieldPath) -> tuple[list[Finding], str]:
        """Return findings about a tag and the digest that it has; the catalog's digest if there is no such
        tag."""
        try:
            manifest = self._ask(repository, self.image.tag, None)
        except ImageMissingError:
            where = self.document.where(("images", self.name, "tag"))
            message = f"image '{self.name}': {repository} has no tag {self.image.tag}"
            return [Finding(IMAGE_TAG_GONE, where, message, "Correct the tag, or push the image.")], stated
        found = list(self._architectures(repository, manifest))
        if manifest.digest == stated:
            return found, stated
        fix = self.document.fix(path, manifest.digest, f"{repository}:{self.image.tag} is that build")
        message = (
            f"image '{self.name}': tag {self.image.tag} of {repository} is {manifest.digest},"
            f" and the catalog has {stated}"
        )
        help = f"Write digest: {manifest.digest}, which `gangplan images pin {self.name}` does."
        where = self.document.where(path)
        return [*found, Finding(IMAGE_TAG_MOVED, where, message, help, fix=fix)], manifest.digest

    def _present(self, repository: str, digest: str, path: FieldPath) -> Iterator[Finding]:
        try:
            yield from self._architectures(repository, self._ask(repository, None, digest))
        except ImageMissingError:
            where = self.document.where(path)
            message = f"image '{self.name}': {repository} has no {digest}"
            yield Finding(IMAGE_DIGEST_GONE, where, message, "Correct the digest, or push the image again.")

    def _architectures(self, repository: str, manifest: Manifest) -> Iterator[Finding]:
        """Check that an image has the architectures that the catalog states; a single image has its own in
        its config."""
        reference, what = parse_registry_image_reference(repository), f"{repository}@{manifest.digest}"
        has = architectures_of(manifest, what)
        if not has:
            has = self._looked_up(reference, manifest, what)
        missing = [one for one in self.image.architectures if one not in has]
        if missing:
            stated = "architectures" in self.image.model_fields_set
            path: FieldPath = ("images", self.name, "architectures") if stated else ("images", self.name)
            where = self.document.where(path, key=not stated)
            message = (
                f"image '{self.name}' is to be for {' and '.join(missing)}, and {what} has {', '.join(has)}"
            )
            help = f"Write architectures: [{', '.join(has)}], or push a build for each."
            yield Finding(IMAGE_ARCHITECTURES, where, message, help)

    def _looked_up(self, reference: Reference, manifest: Manifest, what: str) -> tuple[str, ...]:
        """Return the architectures of a single image, or of one in an index that names no platform."""

        def fetch(one: Descriptor) -> Manifest:
            return self.registry.manifest(Reference(reference.host, reference.path, None, one.digest))

        found = find_image_in_manifest(manifest, self.image.architectures[0], fetch, what)
        if found.architectures:
            return found.architectures
        config = self.registry.blob(reference, found.config.digest, found.config.size)
        return (str(parse_manifest_or_config_json(config, what).get("architecture", "")),)

    def _ask(self, repository: str, tag: str | None, digest: str | None) -> Manifest:
        try:
            place = parse_registry_image_reference(repository)
        except UserError as bad:
            raise ToolError(bad.message, bad.help) from None
        return self.registry.manifest(Reference(place.host, place.path, tag, digest))


def choose_catalog_images_to_pin(
    names: Sequence[str], images: Mapping[str, Image], nearest: str
) -> dict[str, Image]:
    """Return the named images, or all. Raises UserError with `nearest` for a name that the catalog lacks."""
    unknown = next((name for name in names if name not in images), None)
    if unknown is not None:
        raise UserError(f"the catalog has no image '{unknown}'", nearest)
    return {name: images[name] for name in names} if names else dict(images)
