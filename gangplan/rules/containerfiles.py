"""Rules about Containerfiles, checked by `gangplan images lint` (docs/containerfiles.md)."""

from __future__ import annotations

from gangplan.rules.model import ERROR, WARNING, Rule

CONTAINERFILE_UNREADABLE = Rule(
    "containerfile-unreadable",
    ERROR,
    "A file is no Containerfile: an unknown instruction, no FROM, or a here-document without an end.",
    why="A builder refuses the file as a whole, so nothing of it was checked. Such an image is never built.",
    fix="Correct the line; instructions stand first on theirs.",
)
CONTAINERFILE_ROOT = Rule(
    "containerfile-root",
    ERROR,
    "An image runs as root.",
    why=(
        "gangplan's pods run without root, and clusters refuse others: an image whose programs and files are root's alone "
        "fails at its first write, or with Open MPI's refusal to run as root."
    ),
    fix="Make a user, give it what it writes, and end with USER and its number.",
    is_verdict=True,
)
CONTAINERFILE_UID = Rule(
    "containerfile-uid",
    ERROR,
    "The user of an image has another number than the catalog says.",
    why=(
        "Pods run with the number of the catalog. ssh and sshd look it up in /etc/passwd of the image; a number that is "
        "not there ends with 'No user exists for uid', and files of the image belong to somebody else."
    ),
    fix="Give the user the number of the catalog, or correct user.uid there.",
    is_verdict=True,
)
CONTAINERFILE_KEY = Rule(
    "containerfile-key",
    ERROR,
    "An SSH or TLS key is in an image.",
    why=(
        "Everybody who may pull the image has the key, and every run has the same. Trainer makes a key pair for each run "
        "and mounts it; sshd takes its host key from there."
    ),
    fix=(
        "Leave keys out: no ssh-keygen while building, no key files, and rm -f /etc/ssh/ssh_host_* where apt installs "
        "openssh-server; HostKey names the mounted one."
    ),
    is_verdict=True,
)
CONTAINERFILE_PASSWORD = Rule(
    "containerfile-password",
    ERROR,
    "A user of an image gets a password, or SSH accepts passwords.",
    why=(
        "A password in an image is known to everybody who may pull it, and lets every pod that reaches the port in. Runs use "
        "keys of their own alone."
    ),
    fix="Set no password, and write PasswordAuthentication no and PermitEmptyPasswords no.",
    is_verdict=True,
)
CONTAINERFILE_ROOT_LOGIN = Rule(
    "containerfile-root-login",
    ERROR,
    "SSH lets root in.",
    why=(
        "It makes sense only where sshd runs as root, which clusters refuse and which opens every worker to whoever has the "
        "key. Runs connect as the image's own user."
    ),
    fix="Write PermitRootLogin no, and connect as the user of the image.",
    is_verdict=True,
)
CONTAINERFILE_SSH_PORT = Rule(
    "containerfile-ssh-port",
    ERROR,
    "sshd listens on a port below 1024.",
    why=(
        "Without root, a process may not open such a port: sshd ends at once, and workers never answer. gangplan and its "
        "network policies use the port of the catalog, 2222 unless it says otherwise."
    ),
    fix="Write Port 2222 for sshd and for the client, and the same as ssh.port in the catalog.",
    is_verdict=True,
)
CONTAINERFILE_SSHD = Rule(
    "containerfile-sshd",
    ERROR,
    "sshd of an image does not work without root.",
    why=(
        "The mounted key may be read by the group, which StrictModes refuses; PAM needs root. sshd then ends, or "
        "refuses every login with 'Permission denied (publickey)'."
    ),
    fix="Write StrictModes no and UsePAM no into the configuration that the catalog names.",
    is_verdict=True,
)
CONTAINERFILE_HOST_KEYS = Rule(
    "containerfile-host-keys",
    ERROR,
    "The SSH client of an image asks about host keys.",
    why=(
        "The hosts of a run are new every time, and nobody is there to answer: without an option, ssh ends with 'Host key "
        "verification failed', and no rank starts."
    ),
    fix="Write StrictHostKeyChecking no and UserKnownHostsFile /dev/null into a file of /etc/ssh/ssh_config.d.",
    is_verdict=True,
)
CONTAINERFILE_NO_SSH = Rule(
    "containerfile-no-ssh",
    ERROR,
    "An image with MPI lacks the SSH server or client.",
    why=(
        "MPI starts its daemons on workers by SSH: the launcher needs the client, every worker the server. An image that "
        "lacks one fails only when it runs."
    ),
    fix="Install both: openssh-server and openssh-client (openssh-clients on RHEL).",
    is_verdict=True,
)
CONTAINERFILE_MPI_TWICE = Rule(
    "containerfile-mpi-twice",
    ERROR,
    "Two MPIs are installed in one image.",
    why=(
        "mpirun of one starts programs that were linked with the other: each rank then believes that it is alone, and N "
        "trainings run side by side without an error."
    ),
    fix="Install one, and build mpi4py and Horovod against it.",
    is_verdict=True,
)
CONTAINERFILE_MPI_VERSION = Rule(
    "containerfile-mpi-version",
    ERROR,
    "An image has another MPI, or another version of it, than the catalog says.",
    why=(
        "gangplan writes the options of mpirun for the family and line of the catalog. Open MPI 4 and 5 differ in names, "
        "daemons and defaults: the wrong line does not start, or starts all ranks on one host."
    ),
    fix="Correct mpi of the image in the catalog, or install that version.",
    is_verdict=True,
)
CONTAINERFILE_RUN_AS_ROOT = Rule(
    "containerfile-run-as-root",
    ERROR,
    "An image tells Open MPI that it may run as root.",
    why=(
        "It is needed only by an image that runs as root. Set for good, it hides that the user is wrong until a cluster "
        "refuses the pods."
    ),
    fix="Remove OMPI_ALLOW_RUN_AS_ROOT and --allow-run-as-root, and use a user of its own.",
    is_verdict=True,
)
CONTAINERFILE_PRIVILEGE = Rule(
    "containerfile-privilege",
    ERROR,
    "An image gives its user more rights: sudo, setuid or file capabilities.",
    why=(
        "Pods of runs drop all capabilities and forbid new privileges. A program with file capabilities then fails to "
        "start ('Operation not permitted'), and sudo does not work."
    ),
    fix="Do what needs root while building, and leave sudo, setcap and chmod u+s out.",
    is_verdict=True,
)
CONTAINERFILE_SECRET = Rule(
    "containerfile-secret",
    ERROR,
    "A password, token or key is written into an image.",
    why=(
        "Values of ENV and ARG, and arguments of commands, stay in the image's history, where everybody who may pull it "
        "reads them, even when a later line removes the file."
    ),
    fix="Mount it while building (RUN --mount=type=secret), or at run time: secrets in the spec.",
    is_verdict=True,
)
CONTAINERFILE_BASE_OPEN = Rule(
    "containerfile-base-open",
    WARNING,
    "The base of an image is named without a digest.",
    why=(
        "The same tag is another image next week: a rebuild brings another MPI, driver library or Python, and nobody "
        "decided it."
    ),
    fix="Name the base by digest: FROM image:tag@sha256:...",
    is_verdict=True,
)
CONTAINERFILE_WRITABLE = Rule(
    "containerfile-writable",
    WARNING,
    "Files of an image may be written by everybody.",
    why=(
        "Whatever runs in the container, also as another user, can replace programs and settings; sshd refuses folders of "
        "keys that others may write."
    ),
    fix="Give them to the user or to group 0: chgrp -R 0 DIR && chmod -R g=u DIR.",
    is_verdict=True,
)
CONTAINERFILE_SHELL_FORM = Rule(
    "containerfile-shell-form",
    WARNING,
    "What an image starts does not get signals.",
    why=(
        "In the shell form, /bin/sh is the first process and keeps SIGTERM for itself: an eviction kills the program in "
        "the middle of a checkpoint. gangplan starts the program itself; whoever starts the image otherwise loses it."
    ),
    fix='Write the list form: ENTRYPOINT ["program", "argument"], and exec in scripts.',
    is_verdict=True,
)
CONTAINERFILE_UNCHECKED = Rule(
    "containerfile-unchecked",
    WARNING,
    "A file of the internet is run or added without a check of what it is.",
    why=(
        "Whoever controls the server or the way to it decides what is in the image, and the next build may be another. "
        "Nothing in the history tells."
    ),
    fix="Download a fixed version and compare its checksum: ADD --checksum=sha256:..., or sha256sum -c.",
    is_verdict=True,
)
CONTAINERFILE_REQUIREMENT_OPEN = Rule(
    "containerfile-requirement-open",
    WARNING,
    "A list of Python packages leaves open which version an image gets.",
    why=(
        "Every build of the image takes what is newest that day: two builds of one commit train otherwise, and a release that "
        "breaks something breaks runs whose files nobody changed."
    ),
    fix="Write ==VERSION, or compile the list with hashes: pip-compile --generate-hashes requirements.in.",
    is_verdict=True,
)
