"""Check the base of an image that the catalog calls fit for FIPS mode."""

from __future__ import annotations

import re
from collections.abc import Iterator

from gangplan.containerfile.facts import ContainerfileFacts
from gangplan.containerfile.told import build_instruction_finding
from gangplan.findings import Finding
from gangplan.rules.containerfiles import CONTAINERFILE_NOT_FIPS
from gangplan.spec.catalog import Image

# Official images of distributions whose packages are on no certificate of NIST's list of modules (CMVP), or that are
# built on one of these. UBI has Red Hat's modules; a base of another name is the site's own.
_NOT_VALIDATED = "debian|ubuntu|alpine|fedora|centos|rockylinux|almalinux|archlinux|leap|tumbleweed|busybox"
_NAMES = re.compile(rf"(?:{_NOT_VALIDATED}|python|micromamba|miniconda3|anaconda3)")
_TAGS = re.compile(rf"(?:{_NOT_VALIDATED}|rocky|alma|bookworm|trixie|jammy|noble)[\d.]*(?:-|$)")
# Public images whose own Containerfiles start from Debian or Ubuntu, also in a mirror.
_BUILT_ON_THESE = re.compile(
    r"(?:^|/)(?:pytorch/pytorch|tensorflow/tensorflow|horovod/horovod(?:-cpu)?|deepspeed/deepspeed|rayproject/ray(?:-ml)?"
    r"|mpioperator/(?:base|openmpi|intel|mpich)(?:-builder)?)$"
)


def check_fips_base_of_containerfile(
    file: str, facts: ContainerfileFacts, image: Image | None, name: str
) -> Iterator[Finding]:
    """Check that an image with `fips: true` in the catalog has no base that is known to be unfit for it."""
    if image is None or not image.fips or facts.is_base_given:
        return
    path, _, last = facts.base.partition("@")[0].rpartition("/")
    name_of_base, _, tag = last.partition(":")
    known = _BUILT_ON_THESE.search(f"{path}/{name_of_base}")
    if known or _NAMES.fullmatch(name_of_base) or _TAGS.search(tag):
        begin = next(one for one in reversed(facts.everything) if one.name == "FROM")
        message = f"{facts.base.partition('@')[0]} has no validated cryptography, and {name} of the catalog says fips: true"
        yield build_instruction_finding(CONTAINERFILE_NOT_FIPS, file, begin, message)
