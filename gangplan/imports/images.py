"""Find the catalog entry of a source's image, or suggest one that the catalog must gain."""

from __future__ import annotations

import posixpath
import re
from typing import Any

from gangplan.imports.account import SourceNode
from gangplan.imports.draft import SpecDraft
from gangplan.imports.pods import SourcePod
from gangplan.model.frameworks import MPI_FRAMEWORKS
from gangplan.resolve.image import apply_mirrors, is_image_registry_trusted
from gangplan.spec.catalog import Image
from gangplan.workspace import CATALOG

# What Docker puts before a name without a registry (distribution/reference v0.6, normalize.go).
_DOCKER, _LIBRARY = "docker.io", "library"
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
# A placeholder that no image has, until the digest is looked up.
NO_DIGEST = "sha256:" + "0" * 64
# The MPI version assumed if the source names only the family: the newest that gangplan starts.
_VERSIONS = {"OpenMPI": "4.1.8", "IntelMPI": "2021.13", "MPICH": "4.3.2"}
_FROM_TAG = re.compile(r"(?:openmpi|ompi|open-mpi|impi|intelmpi|mpich)[-_v]?([0-9]+(?:\.[0-9]+){1,2})")
_DEFAULT_USER = 1000
_KEYS_ROW = "folder of the SSH keys"
_KEYS: str = Image.model_fields["ssh"].default.keys


def split_source_image_reference(image: str) -> tuple[str, str, str]:
    """Split an image as Docker does into its repository with the registry, its tag and its digest.

    Tag and digest may be empty.
    """
    rest, _, digest = image.partition("@")
    name, colon, tag = rest.rpartition(":")
    if not colon or "/" in tag:
        name, tag = rest, ""
    head, slash, _ = name.partition("/")
    if not slash or not ("." in head or ":" in head or head == "localhost"):
        name = f"{_DOCKER}/{name}" if slash else f"{_DOCKER}/{_LIBRARY}/{name}"
    return name, tag, digest if _DIGEST.fullmatch(digest) else ""


def map_imported_image_to_catalog(
    draft: SpecDraft, image: str, node: SourceNode | None, pod: SourcePod | None, framework: str
) -> None:
    """Name the image of the run, and suggest an entry if the catalog has none."""
    if draft.home.answers.image:
        draft.put("image", draft.home.answers.image)
        if node is not None:
            node.dropped("--image names another one")
        _account_for_keys_of_known_image(draft, draft.home.answers.image, framework)
        return
    if not image:
        place = node or draft.work.account.root()
        draft.wonder(place, "the source names no image", "Name one of the catalog: --image NAME.")
        return
    parts = split_source_image_reference(image)
    name = _find_catalog_entry_of_image(draft, *parts)
    if name is not None or parts in draft.home.images:
        as_listed = framework
        if name is None:
            name, as_listed, _ = draft.home.images[parts]
        if as_listed != framework:
            draft.put("framework", framework)
        _account_for_keys_of_known_image(draft, name, framework)
    else:
        name = _suggest_catalog_entry_for_image(draft, parts, node, pod, framework)
    draft.put("image", name, node)


def find_catalog_name_of_image(draft: SpecDraft, image: str, node: SourceNode) -> str:
    """Return the catalog's name of an image that does not train; without an entry, suggest one."""
    parts = split_source_image_reference(image)
    name = _find_catalog_entry_of_image(draft, *parts)
    if name is None and parts in draft.home.images:
        name = draft.home.images[parts][0]
    return name or _suggest_catalog_entry_for_image(draft, parts, node, None, "plain")


def _find_catalog_entry_of_image(draft: SpecDraft, repository: str, tag: str, digest: str) -> str | None:
    """Return the entry of an image: the same repository, and the digest or tag if the source has one."""
    catalog = draft.home.workspace.catalog
    for name, entry in (catalog.images if catalog else {}).items():
        places = {
            entry.repository,
            *(apply_mirrors(entry.repository, one) for one in draft.home.clusters.values()),
        }
        if repository not in places:
            continue
        if (digest and digest in (entry.digest, *entry.earlier)) or (not digest and (entry.tag or "") == tag):
            return name
        if not digest and not tag:
            return name
    return None


def _suggest_catalog_entry_for_image(
    draft: SpecDraft,
    parts: tuple[str, str, str],
    node: SourceNode | None,
    pod: SourcePod | None,
    framework: str,
) -> str:
    repository, tag, digest = parts
    answered = draft.home.answers.digests
    plain = repository.removeprefix(f"{_DOCKER}/").removeprefix(f"{_LIBRARY}/")
    keys = [f"{base}:{tag}" if tag else base for base in (repository, plain)] + [repository, plain]
    digest = digest or next((answered[key] for key in keys if key in answered), "")
    taken = {name for name, _, _ in draft.home.images.values()}
    if draft.home.workspace.catalog is not None:
        taken |= set(draft.home.workspace.catalog.images)
    name = _choose_catalog_image_name(repository, tag, taken)
    entry: dict[str, Any] = {"repository": repository.lower()}
    if re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}", tag):
        entry["tag"] = tag
    entry["digest"] = digest or NO_DIGEST
    entry["framework"] = framework
    if framework in MPI_FRAMEWORKS:
        entry["mpi"] = _guess_mpi_of_imported_image(draft, tag, node)
    if pod is not None:
        _map_source_image_user_and_ssh(draft, entry, pod)
    draft.home.images[parts] = (name, framework, entry.get("ssh", {}).get("keys", _KEYS))
    draft.suggest(CATALOG, ("images", name), entry, f"the image {repository}{':' + tag if tag else ''}", node)
    place = node or draft.work.account.root()
    if repository != entry["repository"]:
        draft.wonder(
            place,
            f"{repository} is not a valid name: repositories are in lower case",
            f"Correct images.{name}.repository in {CATALOG}, which has {entry['repository']}.",
        )
    if not digest:
        shown = f"{repository}:{tag}" if tag else repository
        draft.wonder(
            place,
            f"the digest of {shown} is not known here; zeros keep its place in {CATALOG}",
            f"Look it up (skopeo inspect --format '{{{{.Digest}}}}' docker://{shown}), and give it: --digest {shown}=sha256:...",
        )
    _suggest_registry_of_imported_image(draft, repository, node)
    return name


def _suggest_registry_of_imported_image(draft: SpecDraft, repository: str, node: SourceNode | None) -> None:
    """Suggest the registry to each cluster that lists registries without it, unless a mirror replaces it."""
    for cluster, spec in draft.home.clusters.items():
        if not is_image_registry_trusted(apply_mirrors(repository, spec), spec.registries):
            path = f"overlays/{cluster}/cluster.yaml"
            host = repository.partition("/")[0]
            draft.suggest(path, ("registries",), (host,), f"images of {host}; or mirror them", node)


def _choose_catalog_image_name(repository: str, tag: str, taken: set[str]) -> str:
    """Return a name for the catalog: that of the repository, with the tag if it is taken."""
    last = repository.rpartition("/")[2]
    for text in (last, f"{last}-{tag}" if tag else f"{last}-2"):
        name = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:63].strip("-")
        name = name if name[:1].isalpha() else f"image-{name}"[:63].strip("-")
        if name not in taken:
            return name
    return next(one for one in (f"{name[:60]}-{number}" for number in range(2, 100)) if one not in taken)


def _guess_mpi_of_imported_image(draft: SpecDraft, tag: str, node: SourceNode | None) -> dict[str, str]:
    family = draft.work.mpi or "OpenMPI"
    found = _FROM_TAG.search(tag.lower())
    version = found[1] if found else _VERSIONS[family]
    if not found:
        draft.wonder(
            node or draft.work.account.root(),
            f"the source does not say which {family} the image has; {version} is assumed",
            f"Correct mpi.version in {CATALOG}: mpirun --version says it.",
        )
    return {"implementation": family, "version": version}


def _map_source_image_user_and_ssh(draft: SpecDraft, entry: dict[str, Any], pod: SourcePod) -> None:
    """Fill in the user and SSH server of the image, as far as the pod specifies them."""
    user = _get_source_security_context_field(pod, "runAsUser")
    group = _get_source_security_context_field(pod, "runAsGroup") or _get_source_security_context_field(
        pod, "fsGroup"
    )
    uid = user.number() if user is not None else None
    gid = group.number() if group is not None else None
    if uid and uid != _DEFAULT_USER:
        entry["user"] = {"uid": uid, "gid": gid or uid}
    elif gid and gid != _DEFAULT_USER:
        entry["user"] = {"uid": _DEFAULT_USER, "gid": gid}
    node = draft.work.ssh_keys
    keys = draft.work.keys_folder
    if entry.get("mpi") and keys:
        ssh = {"keys": keys} if keys != _KEYS else {}
        if keys.startswith("/root"):
            why = f"the user of a run cannot read {keys}, and the image looks for its keys there"
            draft.wonder(
                node or pod.main.node["image"] or draft.work.account.root(),
                why,
                f"Rebuild the image with an SSH server that reads {_KEYS} (docs/containerfiles.md).",
            )
            draft.miss("image", _KEYS_ROW, keys, _KEYS, why)
            ssh = {}
        words = list(pod.main.command)
        if "-f" in words[:-1] and words[0].endswith("sshd"):
            config = words[words.index("-f") + 1]
            if config != Image.model_fields["ssh"].default.config:
                ssh["config"] = config
        if ssh:
            entry["ssh"] = ssh


def _account_for_keys_of_known_image(draft: SpecDraft, name: str, framework: str) -> None:
    """Account for the folder of the SSH keys where the image has another one, and was not suggested for it."""
    node, catalog = draft.work.ssh_keys, draft.home.workspace.catalog
    folder = draft.work.keys_folder
    if not folder or framework not in MPI_FRAMEWORKS:
        return
    entry = catalog.images.get(name) if catalog else None
    suggested = (keys for other, _, keys in draft.home.images.values() if other == name)
    keys = entry.ssh.keys if entry else next(suggested, _KEYS)
    if posixpath.normpath(folder) == posixpath.normpath(keys):
        return
    why = f"the image {name} has its keys in {keys}"
    if node is not None and draft.home.answers.image:
        node.dropped(why)
    elif node is not None:
        draft.ask(node, why, f"Correct images.{name}.ssh.keys in {CATALOG} if the source is right.")
    draft.miss("image", _KEYS_ROW, folder, keys, why)


def _get_source_security_context_field(pod: SourcePod, name: str) -> SourceNode | None:
    """Return a field of the security context: the container's, else the pod's."""
    for context in (pod.main.node["securityContext"], pod.node["securityContext"]):
        if context[name]:
            return context[name]
    return None
