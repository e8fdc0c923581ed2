"""Policies that come with gangplan (package data)."""

# The packs that come with gangplan, one folder each. Any other folder with a pack.yaml is a workspace's own,
# even if the workspace is this repository.
BUILTIN_PACKS = (
    "baseline",
    "data",
    "fabrics",
    "fedramp",
    "gdpr",
    "hipaa",
    "images",
    "labels",
    "lifecycle",
    "network",
    "pci-dss",
    "priorities",
    "residency",
    "restricted",
    "sox",
)
