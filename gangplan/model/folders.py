"""Folders of a container that belong to its image or to whoever starts it: what a mount there would hide.

The Filesystem Hierarchy Standard 3.0 for images, the OCI runtime specification for the folders of the kernel.
"""

from __future__ import annotations

# Folders of every Linux image without whose content no program of it starts, and what is in them. A mount
# hides all of it; one further down, such as /usr/share/data or /etc/myapp, hides nothing else.
PROGRAMS = {
    **dict.fromkeys(
        ("/bin", "/sbin", "/usr/bin", "/usr/sbin", "/usr/local/bin", "/usr/local/sbin"), "programs"
    ),
    **dict.fromkeys(
        ("/lib", "/lib32", "/lib64", "/libx32", "/usr/lib", "/usr/lib64", "/usr/local/lib"), "libraries"
    ),
    # Where Debian and Ubuntu have the C library (multiarch).
    **dict.fromkeys(
        (f"{top}/lib/{machine}-linux-gnu" for top in ("", "/usr") for machine in ("x86_64", "aarch64")),
        "libraries",
    ),
    **dict.fromkeys(("/usr", "/usr/local"), "programs and libraries"),
    "/etc": "users, names and the configuration of its libraries",
}
# Folders that programs write to: no data belongs over them, but a site may give them room of their own, as
# images with a read-only root need.
STATE = {
    "/var": "the state of its packages",
    **dict.fromkeys(("/run", "/var/run"), "sockets and tokens"),
}
# Folders of the kernel, which the container runtime fills.
KERNEL = {
    "/dev": "the container's devices and its shared memory are there",
    "/proc": "the kernel shows processes there",
    "/sys": "the kernel shows devices there",
}
# Its owner alone may enter it in every usual image, and a run never is root.
ROOT = "/root"
# Open MPI and Hydra keep sockets and files of one host there, by names that hosts share.
SCRATCH = "/tmp"


def is_in(path: str, folder: str) -> bool:
    """Whether a path is a folder or inside it; both without a slash at their end."""
    return path == folder or path.startswith(f"{folder}/")
