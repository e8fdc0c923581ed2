"""Folders of a container that belong to its image or its runtime, and what a mount there would hide.

Sources: the Filesystem Hierarchy Standard 3.0 for images, the OCI runtime specification for the folders of
the kernel.
"""

from __future__ import annotations

# Folders of every Linux image whose content programs need to start, and what they contain. A mount hides all
# of it; a mount further down, such as /usr/share/data or /etc/myapp, hides nothing else.
PROGRAM_FOLDERS = {
    **dict.fromkeys(
        ("/bin", "/sbin", "/usr/bin", "/usr/sbin", "/usr/local/bin", "/usr/local/sbin"), "programs"
    ),
    **dict.fromkeys(
        ("/lib", "/lib32", "/lib64", "/libx32", "/usr/lib", "/usr/lib64", "/usr/local/lib"), "libraries"
    ),
    # Where Debian and Ubuntu keep the C library (multiarch).
    **dict.fromkeys(
        (f"{top}/lib/{machine}-linux-gnu" for top in ("", "/usr") for machine in ("x86_64", "aarch64")),
        "libraries",
    ),
    **dict.fromkeys(("/usr", "/usr/local"), "programs and libraries"),
    "/etc": "users, names and the configuration of its libraries",
}
# Folders that programs write to. Data should not be mounted over them, but a site may mount volumes there, as
# images with a read-only root need.
STATE_FOLDERS = {
    "/var": "the state of its packages",
    **dict.fromkeys(("/run", "/var/run"), "sockets and tokens"),
}
# Folders of the kernel, which the container runtime provides.
KERNEL_FOLDERS = {
    "/dev": "the container's devices and its shared memory are there",
    "/proc": "the kernel shows processes there",
    "/sys": "the kernel shows devices there",
}
# In every usual image only its owner may enter it, and a run is never root.
ROOT_HOME = "/root"
# Open MPI and Hydra keep the sockets and files of one host there, under names that are the same on all hosts.
SCRATCH_FOLDER = "/tmp"
# Where every run has gangplan's launch scripts (generators/scripts.py).
LAUNCH_SCRIPTS = "/opt/gangplan-launch"


def is_in_folder(path: str, folder: str) -> bool:
    """Return whether a path is a folder or inside it; neither may end with a slash."""
    return path == folder or path.startswith(f"{folder}/")
