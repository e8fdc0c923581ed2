"""Rules about images: what the catalog states, what is in the registry, and what is in the image."""

from gangplan.rules.model import ERROR, NOTE, WARNING, Rule

ARCHITECTURE_MISMATCH = Rule(
    "architecture-mismatch",
    ERROR,
    "None of the otherwise suitable pools has the image's processor architecture.",
    why=(
        "Programs for one processor architecture do not start on another: the container ends at once with "
        '"exec format error", after the run has waited for its GPUs. A digest of an index with several '
        "architectures starts everywhere that the catalog lists."
    ),
    fix="Choose an image that was built for the nodes, or build it for both and list both in architectures.",
)

IMAGE_DRIVER = Rule(
    "image-driver",
    ERROR,
    "No otherwise suitable pool has a GPU driver that runs what is in the image.",
    why=(
        "NVIDIA's driver runs every CUDA version up to its own, and later minor versions of its own major one "
        "(CUDA Compatibility: 11 from 450.80.02, 12 from 525.60.13, 13 from 580.65.06); beyond that, programs "
        "end with error 35, cudaErrorInsufficientDriver. AMD supports a driver with the ROCm versions of its "
        "User and AMD GPU driver support matrix alone."
    ),
    fix="Use an image with an older CUDA or ROCm, or have the nodes' driver updated.",
)

CUDA_MINOR_VERSION = Rule(
    "cuda-minor-version",
    NOTE,
    "The pool's driver is older than the CUDA version of the image; minor version compatibility makes up for it.",
    why=(
        "From CUDA 11 on, a program runs on any driver of its major version, but without what its own driver "
        "added: code that is only there as PTX cannot be compiled, and some functions answer "
        "cudaErrorCallRequiresNewerDriver (CUDA Compatibility, Minor Version Compatibility)."
    ),
    fix="Update the driver where the program compiles kernels while it runs; else nothing needs to be done.",
)

CUDA_FORWARD = Rule(
    "cuda-forward",
    NOTE,
    "The pool's driver is too old for the CUDA version of the image, which brings NVIDIA's compatibility package.",
    why=(
        "The package cuda-compat has the user part of a newer driver. NVIDIA supports it on data center GPUs "
        "alone, for base drivers that it lists (CUDA Compatibility, Forward Compatibility); elsewhere "
        "programs end with error 804, cudaErrorCompatNotSupportedOnDevice."
    ),
    fix="Look the pair up in NVIDIA's list, or have the driver updated.",
)

IMAGE_TIER = Rule(
    "image-tier",
    WARNING,
    "The combination of framework, MPI and GPU is of a lower tier than the catalog asks for.",
    why=(
        "An untried combination often fails in its first minutes, or is slow for a reason that nobody "
        "knows. The catalog's requirements.tier says what runs should keep to; tiers says what was tried."
    ),
    fix="Choose an image, framework or GPU model of that tier, or have the combination tried and listed in tiers.",
)

IMAGE_LICENCE = Rule(
    "image-licence",
    ERROR,
    "The catalog states no licence for an image, or one that its requirements do not allow.",
    why=(
        "The platform lists the licences that were cleared. An image outside of them may not be used, or may "
        "need an agreement that somebody has to sign first."
    ),
    fix="State the licence as an SPDX expression, use another image, or have the licence cleared and listed.",
    is_verdict=True,
)

IMAGE_OWNER = Rule(
    "image-owner",
    ERROR,
    "An image has no owner, though the catalog's requirements ask for one.",
    why="Somebody has to rebuild the image when a vulnerability becomes known. Without a name, nobody does.",
    fix="Add owner: with an address that is read.",
    is_verdict=True,
)

IMAGE_SCAN_MISSING = Rule(
    "image-scan-missing",
    ERROR,
    "An image has no scan, though the catalog's requirements ask for one.",
    why="Images bring hundreds of packages; only a scan shows whether one of them has a known hole.",
    fix="Scan the build that the digest names, and add scan: {date: 2026-11-02}.",
    is_verdict=True,
)

IMAGE_SCAN_OLD = Rule(
    "image-scan-old",
    ERROR,
    "The last scan of an image is older than the catalog's requirements allow.",
    why=(
        "Vulnerabilities become known in builds that do not change. As with waivers that have ended, validate "
        "judges by the day on which it runs; what is rendered does not depend on it."
    ),
    fix="Scan the image again, and write the new day; rebuild it where the scan finds something.",
    is_verdict=True,
)

_REGISTRY = "it needs a registry; tests/images/test_pin.py has one."

IMAGE_TAG_MOVED = Rule(
    "image-tag-moved",
    ERROR,
    "An image's tag names a different build from the digest in the catalog.",
    why=(
        "Clusters pull by digest: runs keep the build that the catalog names, whatever the tag names now. "
        "Anyone who goes by the tag, or pulls it to try something, has another build."
    ),
    fix="Run `gangplan images pin`, which writes the digest, and try the build; or correct the tag.",
    is_verdict=True,
    untested=_REGISTRY,
)

IMAGE_TAG_GONE = Rule(
    "image-tag-gone",
    ERROR,
    "The registry has no such tag.",
    why="The tag was never pushed, was removed, or is misspelt; its build can no longer be looked up.",
    fix="Correct the tag, or push the image.",
    is_verdict=True,
    untested=_REGISTRY,
)

IMAGE_TAG_NONE = Rule(
    "image-tag-none",
    NOTE,
    "An image has no tag, so nobody can use the catalog to find a later build of it.",
    why="`images pin` looks up what a tag means now. Without one, it can only check whether the digest is there.",
    fix="Add the tag under which later builds are pushed.",
    untested=_REGISTRY,
)

IMAGE_DIGEST_GONE = Rule(
    "image-digest-gone",
    ERROR,
    "The registry does not have the build that the catalog names.",
    why=(
        "Registries remove builds that no tag has. The next node that has no copy cannot start a pod: "
        "ErrImagePull, after the run has waited for its GPUs."
    ),
    fix="Push the build again, or pin another one.",
    is_verdict=True,
    untested=_REGISTRY,
)

IMAGE_MIRROR_DIFFERS = Rule(
    "image-mirror-differs",
    ERROR,
    "The place that a cluster pulls an image from does not have the build that the catalog names.",
    why="A mirror that is copied by hand or nightly lags behind; pods of that cluster end in ErrImagePull.",
    fix="Copy the build to the mirror, or state what the cluster has: clusters: {NAME: {digest: ...}}.",
    is_verdict=True,
    untested=_REGISTRY,
)

IMAGE_ARCHITECTURES = Rule(
    "image-architectures",
    ERROR,
    "The registry's image is not for the processor architectures that the catalog lists.",
    why=(
        "The catalog decides which nodes runs go to. A node whose architecture the index lacks cannot pull "
        'the image ("no match for platform in manifest").'
    ),
    fix="Correct architectures in the catalog, or push a build for each.",
    is_verdict=True,
    untested=_REGISTRY,
)

_LOOKED = "it needs an image; tests/images/test_inspect.py makes layouts, and a registry."

IMAGE_DIFFERS = Rule(
    "image-differs",
    ERROR,
    "The image does not contain what the catalog says.",
    why=(
        "Runs are rendered from the catalog: which MPI starts the ranks and how, where sshd is, which GPUs "
        "are suitable. A wrong entry shows after the run has waited for its GPUs, in its first seconds."
    ),
    fix="Correct the catalog, or build the image as it says.",
    is_verdict=True,
    untested=_LOOKED,
)

IMAGE_USER_UNKNOWN = Rule(
    "image-user-unknown",
    ERROR,
    "The image has no entry in /etc/passwd for the user that its pods run as.",
    why='ssh and sshd end with "No user exists for uid", and programs that ask for their home fail.',
    fix="Add the user to the image with that number, or correct user.uid in the catalog.",
    is_verdict=True,
    untested=_LOOKED,
)

IMAGE_HOLDS_KEY = Rule(
    "image-holds-key",
    ERROR,
    "A layer of the image holds a private key of SSH.",
    why=(
        "Anyone who can pull the image has the key, even if a later layer removes the file: layers are kept as "
        "they were built. gangplan makes a key pair for each run."
    ),
    fix="Build the image without keys, and replace those that were in it wherever they are trusted.",
    is_verdict=True,
    untested=_LOOKED,
)

SSHD_SETTING = Rule(
    "sshd-setting",
    ERROR,
    "The sshd configuration in the image allows root or password logins.",
    why=(
        "Pods run as a user and log in by the run's key. Root and passwords are never needed, and open the pod "
        "to whoever reaches its port."
    ),
    fix="Write PermitRootLogin no and PasswordAuthentication no into the file that ssh.config names.",
    is_verdict=True,
    untested=_LOOKED,
)

IMAGE_UNREAD = Rule(
    "image-unread",
    WARNING,
    "A part of the image could not be looked into.",
    why=(
        "A layer is packed in a way that this Python cannot read, is damaged, or unpacks to more than is read. "
        "What is inside is then not compared with the catalog."
    ),
    fix="Push it with layers packed by gzip (--compression-format gzip), or look into it where it was built.",
    untested=_LOOKED,
)


IMAGE_TWICE = Rule(
    "image-twice",
    WARNING,
    "Two images of the catalog are the same build.",
    why=(
        "One of them was probably meant to be another: specs that ask for it get a build that its name does not "
        "promise. Where both are meant, every pin and every scan has to be written twice."
    ),
    fix="Remove one of them, or correct its digest.",
    is_verdict=True,
)

IMAGE_CLUSTER_UNKNOWN = Rule(
    "image-cluster-unknown",
    ERROR,
    "An image has a line for a cluster that does not exist.",
    why="Nothing reads it. The cluster that was meant pulls the image from elsewhere, or another build.",
    fix="Correct the cluster's name, or remove the line.",
    is_verdict=True,
)

IMAGE_NOWHERE = Rule(
    "image-nowhere",
    WARNING,
    "No cluster may pull an image of the catalog.",
    why="Its registry is in no cluster's list, even behind a mirror. A spec that names it is refused everywhere.",
    fix="Mirror it, list its registry where it may be pulled, or remove it.",
    is_verdict=True,
)

IMAGE_TAG_CONTRADICTS = Rule(
    "image-tag-contradicts",
    WARNING,
    "An image's tag names a different CUDA or ROCm from the catalog.",
    why=(
        "The image's builder writes the tag, and people write the catalog: one of the two is out of date. Pools "
        "are chosen by the catalog's version."
    ),
    fix="Correct cuda or rocm, or the tag. `images inspect` shows what is inside.",
    is_verdict=True,
)

IMAGE_VERSION_UNKNOWN = Rule(
    "image-version-unknown",
    NOTE,
    "The CUDA or ROCm version of an image is in no table, so that it is compared with no driver.",
    why="Either the version does not exist, or it is newer than gangplan's tables. Nothing is guessed.",
    fix="Correct the version; for a newer one, look the driver up yourself.",
)

IMAGE_UNUSED = Rule(
    "image-unused",
    NOTE,
    "No spec, team or cluster names an image of the catalog.",
    why="What nobody uses is still scanned, mirrored and approved, and the list is longer for everybody who looks.",
    fix="Remove it when nobody needs it any more.",
)

MPI_UNTESTED = Rule(
    "mpi-untested",
    WARNING,
    "The image contains an MPI version that gangplan starts, but that it was never tested with.",
    why=(
        "gangplan's tests start real Open MPI 4.1 and 5.0, MPICH and Intel MPI 2021. Open MPI 3 is started as Open MPI 4, "
        "and Intel MPI 2019 as 2021: the options have the same names, and no one has tried them together."
    ),
    fix="Choose an image with a newer version; or try the run with few workers first.",
)
