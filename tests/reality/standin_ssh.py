"""A stand-in for ssh on hosts that are not namespaces (standin.py): it connects where the real one would.

It reads a command line as OpenSSH 9 does, looks up the host, checks the network policies, looks for a
listening sshd and for the keys, and gives the command what a login gives: a home, a shell, sshd's
environment, nothing of the caller's. It is run by `python -I`, without any module of the tests. `gangplan
run` reads command lines in the same way.
"""

import os
import resource
import sys
from pathlib import Path

from gangplan.local.hop import fail, read

BASE = 700000  # standin.c
PORT = 2222
KEY_FILES = ".ssh/id_rsa", ".ssh/authorized_keys"


def main():
    """Execute the command as on the other host."""
    host, command = read(sys.argv[1:])
    host = host.rpartition("@")[2].lower()
    table = Path(os.environ["GANGPLAN_STANDIN"])
    own = resource.getrlimit(resource.RLIMIT_MSGQUEUE)[0] - BASE
    hosts, names, allowed, filtered = [], {}, [], False
    for line in table.read_text().splitlines():
        kind, *fields = line.split()
        if kind == "host":
            hosts.append(fields[0])
        elif kind == "name":
            names[fields[0].lower()] = int(fields[1])
        elif kind == "allow":
            allowed.append([int(field) for field in fields])
        else:
            filtered = True
    target = own if host == hosts[own] else names.get(host)
    if target is None:
        fail(f"Could not resolve hostname {host}: Name or service not known")
    is_open = any(one == own and two == target and low <= PORT <= high for one, two, low, high in allowed)
    root = table.parent / hosts[target]
    if (filtered and target != own and not is_open) or not (root / "listens").exists():
        fail(f"connect to host {host} port {PORT}: Connection refused")
    home = root / "home"
    private, authorized = (table.parent / hosts[own] / "home" / KEY_FILES[0], home / KEY_FILES[1])
    if not (os.access(private, os.R_OK) and os.access(authorized, os.R_OK)):
        fail("Permission denied (publickey).")
    if not command:
        fail("a stand-in has no terminal to offer")
    env = dict(line.split("=", 1) for line in (root / "login").read_text().splitlines())
    env |= {"SSH_CLIENT": f"127.0.0.1 50000 {PORT}", "SSH_CONNECTION": f"127.0.0.1 50000 127.0.0.1 {PORT}"}
    resource.setrlimit(
        resource.RLIMIT_MSGQUEUE, (BASE + target, resource.getrlimit(resource.RLIMIT_MSGQUEUE)[1])
    )
    os.chdir(home)
    os.execve("/bin/bash", ["bash", "-c", " ".join(command)], env)


main()
