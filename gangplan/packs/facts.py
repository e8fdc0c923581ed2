"""Facts of a cluster that a pack can use as parameters: their names, kinds and meanings.

`resolve/facts.py` fills them in. A list is joined by commas; an unstated fact is an empty string.
"""

from __future__ import annotations

from typing import Literal, get_args

from gangplan.records import dataclass
from gangplan.spec.job import Regime

ParameterKind = Literal["text", "number", "truth", "list"]


@dataclass(frozen=True, slots=True)
class FactPage:
    """The kind and the meaning of a fact."""

    kind: ParameterKind
    meaning: str


PACK_FACTS: dict[str, FactPage] = {
    "cluster": FactPage("text", "The cluster's name."),
    "region": FactPage("text", "`region` of the cluster."),
    "location": FactPage("text", "`location`: on-prem or cloud."),
    "environment": FactPage("text", "`environment`: dev or prod."),
    "fips": FactPage("truth", "`fips`: whether nodes run in FIPS mode."),
    "networkEncrypted": FactPage("truth", "`networkEncrypted`: whether traffic between pods is encrypted."),
    "logsRedacted": FactPage("truth", "`logsRedacted`: whether logs are kept without personal data."),
    "certifications": FactPage("list", "`certifications` of the cluster."),
    "auditDays": FactPage("number", "`retention.audit` in days; empty when it is not stated."),
    "registries": FactPage("list", "`registries` that the cluster trusts."),
    "internet": FactPage("truth", "Whether `egress` has an entry `internet`."),
    "egressRanges": FactPage(
        "list",
        "Address ranges of all entries of `egress`, of `proxy`, of nodes whose network a fabric uses, and of "
        "GKE's metadata server with `workloadIdentity: {provider: gcp}`.",
    ),
    "fabricCapabilities": FactPage("list", "Capabilities that fabrics of node pools give."),
    "fabricPaths": FactPage("list", "Paths of the node that fabrics of node pools give."),
    "fabricWritable": FactPage("list", "Of these, the paths that they give for writing."),
    "ownPools": FactPage("list", "Where part of a cluster is rented: the labels of each pool of its own."),
    "deadlineKind": FactPage("text", "The kind that holds a run's deadline: TrainJob or TrainingRuntime."),
    "encryptedClasses": FactPage("list", "Storage classes that encrypt."),
    "encryptedClaims": FactPage("list", "Claims known to be encrypted, as NAMESPACE/NAME."),
    "singleClaims": FactPage("list", "Claims that one node at a time can mount, as NAMESPACE/NAME."),
    "claimData": FactPage("list", "How much data claims hold (`dataSize`), as NAMESPACE/NAME=SIZE."),
    "retainedData": FactPage(
        "list",
        "Claims and connections with a `retention`, their own or that of their claim, as NAMESPACE/NAME.",
    ),
    "catalogImages": FactPage("list", "Images of the catalog, as this cluster pulls them."),
    "fipsImages": FactPage("list", "Of these, the images with `fips: true`."),
    **{
        f"approved-{regime}": FactPage("list", f"Of these, the images approved for {regime}.")
        for regime in get_args(Regime)
    },
    "priorities": FactPage("list", "Priority classes of the cluster."),
    "teamPriorities": FactPage("list", "Priority classes of each team, as NAMESPACE=CLASS/CLASS."),
    "scans": FactPage("list", "Scan reports below images/scans/, as DIGEST=CRITICAL/HIGH."),
    "waivers": FactPage("list", "Waivers that hold here, as expressions over NAMESPACE/JOB/POLICY (RE2)."),
    "waiverEnds": FactPage("list", "Of these, each with its last day, as YYYY-MM-DD=EXPRESSION."),
}
