"""Flux: a source and Kustomizations of each cluster."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from gangplan.delivery.engine import EngineInput, EngineOption, GitopsEngine
from gangplan.delivery.options import (
    NAMESPACE_OPTION,
    PREFIX_OPTION,
    REPO_OPTION,
    REVISION_OPTION,
    build_delivery_option_choice_check,
)
from gangplan.errors import UserError
from gangplan.gitops.source import (
    OCI_SCHEME,
    check_branch_name,
    check_gitops_artifact_url,
    check_gitops_repository_url,
    format_flux_url,
)


def _build_flux_delivery_files(given: EngineInput) -> Mapping[str, str]:
    """Build a file per cluster: its source and Kustomizations."""
    from gangplan.delivery.clusters import (
        build_repository_source,
        list_controllers,
        list_deliverable_cluster_parts,
        list_synced_clusters,
        require_workspace_for_delivery,
    )
    from gangplan.gitops.flux import FluxAccess, build_flux_objects
    from gangplan.objects import dump_all

    files, source = {}, build_repository_source(given)
    secrets = tuple((field, given[name]) for name, field in _SECRETS.items() if given[name])
    access = FluxAccess(secrets, given["provider"], given["after"])
    _check_flux_access(source.is_oci, given)
    for name in list_synced_clusters(given, "flux"):
        spec, parts = (
            require_workspace_for_delivery(given).clusters[name].spec,
            list_deliverable_cluster_parts(given, name),
        )
        objects = build_flux_objects(
            name, source, parts, spec.gang == "kueue", bool(spec.multi_kueue), list_controllers(spec), access
        )
        files[f"{name}.yaml"] = dump_all(objects)
    return files


_OBJECT_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?")
# Options that name a Secret, and the field of the source that refers to it.
_SECRETS = {"secret": "secretRef", "ca": "certSecretRef", "proxy": "proxySecretRef"}
# Whose workload identity can read a source (source-controller v1.9, api/v1).
_GIT_PROVIDERS, _OCI_PROVIDERS = ("aws", "azure", "github"), ("aws", "azure", "gcp")


def _check_flux_access(is_oci: bool, given: EngineInput) -> None:
    """Check that the kind of source has what was given. Raises UserError."""
    known = _OCI_PROVIDERS if is_oci else _GIT_PROVIDERS
    if given["provider"] and given["provider"] not in known:
        kind = "an OCI artifact" if is_oci else "a Git repository"
        message = f"provider {given['provider']} cannot read {kind}"
        raise UserError(message, f"Write one of {', '.join(known)}, or name a secret.")
    if given["ca"] and not is_oci:
        message = "ca is of an OCI artifact: a GitRepository reads its CA from the Secret of secret"
        raise UserError(message, "Add the key ca.crt to that Secret, and remove ca.")


def _check_object_name(value: Any, words: str) -> Any:
    """Return the name of an object, which may have dots; empty for none. Raises UserError."""
    if value and not (len(value) <= 253 and _OBJECT_NAME.fullmatch(value)):
        raise UserError(f"'{value}' cannot be the name of an object", f"Write {words} flux-git.")
    return value


def _check_flux_revision(value: Any, words: str) -> Any:
    is_digest = re.fullmatch(r"sha256:[0-9a-f]{64}", value)
    return value if is_digest else check_branch_name(value, words)


def _check_flux_source_address(value: Any, words: str) -> Any:
    return (
        check_gitops_artifact_url(value, words)
        if value.startswith(OCI_SCHEME)
        else format_flux_url(check_gitops_repository_url(value, words))
    )


ENGINE = GitopsEngine(
    "flux",
    "Write a Flux source and Kustomizations for the platform, tenants and runs of each cluster.",
    (
        replace(
            REPO_OPTION,
            help="Git repository or oci:// artifact that Flux reads.",
            check=_check_flux_source_address,
        ),
        replace(
            REVISION_OPTION,
            help="Branch; with oci://, tag or digest of the artifact.",
            check=_check_flux_revision,
        ),
        replace(NAMESPACE_OPTION, default="flux-system"),
        PREFIX_OPTION,
        *(
            EngineOption(name, help, "NAME", f"flux-{name}", check=_check_object_name)
            for name, help in (
                ("secret", "Secret with the credentials of a private source (secretRef)."),
                ("ca", "Secret with the CA of a private registry, for oci:// (certSecretRef)."),
                ("proxy", "Secret with the address of a proxy on the way to the source (proxySecretRef)."),
            )
        ),
        EngineOption(
            "provider",
            "Whose workload identity reads the source: aws, azure, gcp or github.",
            "NAME",
            "azure",
            check=build_delivery_option_choice_check(
                "provider", ("", *sorted({*_GIT_PROVIDERS, *_OCI_PROVIDERS}))
            ),
        ),
        EngineOption(
            "after",
            "Kustomization that installs Kueue and the operators, on which the first one depends.",
            "NAME",
            "operators",
            check=_check_object_name,
        ),
    ),
    _build_flux_delivery_files,
    home="flux",
    by_cluster=True,
)
