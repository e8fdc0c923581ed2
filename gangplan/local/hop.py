"""A stand-in for ssh between the workers of a run that are all on this machine. Run by `python -I -S`, alone.

Its arguments are the folder of the run, and a command line as OpenSSH 9 reads it. A command gets what a login
through sshd gives: the target worker's environment, its shell, and nothing of the caller's.
"""

from __future__ import annotations

import ctypes
import json
import os
import pwd
import sys

TYPE_CHECKING = False  # a start without `typing` is shorter
if TYPE_CHECKING:
    from typing import NoReturn

WITH_VALUE, FLAGS = "BbcDEeFIiJLlmOopQRSWw", "46AaCfGgKkMNnqsTtVvXxYy"
# From <linux/sched.h> and <linux/mount.h>.
NEWNS, NEWUTS, NEWUSER = 0x00020000, 0x04000000, 0x10000000
RDONLY, REMOUNT, BIND, REC, PRIVATE = 0x1, 0x20, 0x1000, 0x4000, 0x40000
# Flags of a mount that a remount must repeat in a user namespace, as statvfs has them and as mount does.
LOCKED = {2: 2, 4: 4, 8: 8, 1024: 1024, 2048: 2048, 4096: 1 << 21}
SHELLS = "sh", "bash", "dash", "ash", "ksh", "zsh", "csh", "tcsh"


def read(words: list[str]) -> tuple[str, list[str]]:
    """Return the host and the command of a command line; SystemExit where ssh would print its usage."""
    rest: list[str] = list(words)
    host: str | None = None
    while rest:
        word = rest.pop(0)
        if word == "--":
            continue
        if not word.startswith("-"):
            if host is None:
                host = word
                continue
            return host, [word, *rest]
        letters = word[1:]
        while letters:
            letter, letters = letters[0], letters[1:]
            if letter in WITH_VALUE:
                if not letters and not rest:
                    fail("option requires an argument -- " + letter)
                if not letters:
                    rest.pop(0)
                letters = ""
            elif letter not in FLAGS:
                fail("unknown option -- " + letter)
    if host is None:
        fail("no host")
    return host, []


def fail(message: str) -> NoReturn:
    """End as ssh does when it cannot connect."""
    print("ssh: " + message, file=sys.stderr)
    raise SystemExit(255)


def shell() -> str:
    """Return the user's login shell, as sshd starts it."""
    try:
        own = pwd.getpwuid(os.getuid()).pw_shell
    except KeyError:
        own = ""
    return own if os.path.basename(own) in SHELLS and os.access(own, os.X_OK) else "/bin/sh"


def call(name: str, hosts: str = "", shut: str = "") -> bool:
    """Set a host name for this process in a UTS namespace of its own; return whether the system allows it.

    `hosts` is a file that this process and its children see as /etc/hosts, and `shut` one that names a folder
    that is read-only for them, where the system allows that too.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    if not hasattr(libc, "unshare"):
        return False
    if (hosts or shut) and enter_own_namespaces(libc, NEWUTS | NEWNS):
        # Without a word where it fails: names of the run then have no address, and all else works.
        if not libc.mount(None, b"/", None, ctypes.c_ulong(REC | PRIVATE), None):
            if hosts:
                libc.mount(hosts.encode(), b"/etc/hosts", None, ctypes.c_ulong(BIND), None)
            if shut:
                mount_folder_read_only(libc, shut)
    elif not enter_own_namespaces(libc, NEWUTS):
        return False
    return int(libc.sethostname(name.encode(), len(name))) == 0


def mount_folder_read_only(libc: ctypes.CDLL, file: str) -> None:
    """Make a folder read-only but for some folders in it; `file` names them in this order."""
    with open(file) as text:
        folders = [os.fsencode(one) for one in json.load(text)]
    for one in folders:
        libc.mount(one, one, None, ctypes.c_ulong(BIND | REC), None)
    had = os.statvfs(folders[0]).f_flag
    kept = sum(mount for flag, mount in LOCKED.items() if had & flag)
    libc.mount(None, folders[0], None, ctypes.c_ulong(REMOUNT | BIND | RDONLY | kept), None)


def enter_own_namespaces(libc: ctypes.CDLL, spaces: int) -> bool:
    """Give this process namespaces of its own, in a user namespace where its user may not do so otherwise."""
    user, group = os.geteuid(), os.getegid()
    if libc.unshare(spaces):
        if libc.unshare(NEWUSER | spaces):
            return False
        for file, text in (
            ("setgroups", "deny"),
            ("uid_map", f"{user} {user} 1"),
            ("gid_map", f"{group} {group} 1"),
        ):
            try:
                with open("/proc/self/" + file, "w") as out:
                    out.write(text)
            except OSError:
                return False
    return True


def run_local_ssh_hop() -> None:
    """Become the command on the other worker."""
    root, *words = sys.argv[1:]
    if words[0] == "--here":  # a command in this pod
        files = (os.path.join(root, "etc", name) for name in ("hosts", "shut.json"))
        call(words[1], *(file if os.path.exists(file) else "" for file in files))
        os.execvp(words[2], words[2:])
    if words[0] == "--can":
        raise SystemExit(0 if call("gangplan") and os.uname().nodename == "gangplan" else 1)
    host, command = read(words)
    host = host.rpartition("@")[2].lower()
    with open(os.path.join(root, "hosts.json")) as file:
        hosts = json.load(file)
    found = next((one for one in hosts if host in one["names"]), None)
    if found is None:
        fail(f"Could not resolve hostname {host}: Name or service not known")
    if not command:
        fail("there is no terminal to offer")
    text = " ".join(command)
    # Commands of the launch script for the first process of a worker's pod. It does not exist here: process 1
    # would be this machine's.
    if "gangplan-asked" in text or "gangplan-told" in text or "kill -USR1 1" in text:
        raise SystemExit(255)
    call(found["names"][0])
    os.chdir(found["folder"])
    own = shell()
    os.execve(own, [os.path.basename(own), "-c", text], found["env"])


if __name__ == "__main__":
    run_local_ssh_hop()
