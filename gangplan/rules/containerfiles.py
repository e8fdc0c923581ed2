"""Rules about Containerfiles, checked by `gangplan images lint` (docs/containerfiles.md)."""

from __future__ import annotations

from gangplan.rules.model import ERROR, WARNING, Rule

CONTAINERFILE_UNREADABLE = Rule(
    "containerfile-unreadable",
    ERROR,
    "A file is not a Containerfile: an unknown instruction, no FROM, or a here-document without an end.",
    why="A builder refuses the whole file, so gangplan checked none of it. Such an image is never built.",
    fix="Correct the line; an instruction comes first on its line.",
)
CONTAINERFILE_ROOT = Rule(
    "containerfile-root",
    ERROR,
    "An image runs as root.",
    why=(
        "gangplan's pods do not run as root, and clusters refuse pods that do. An image whose programs and files only root can use "
        "fails at its first write, or because Open MPI refuses to run as root."
    ),
    fix="Make a user, give it what it writes, and end with USER and its number.",
    is_verdict=True,
)
CONTAINERFILE_UID = Rule(
    "containerfile-uid",
    ERROR,
    "The user of an image has a different number from the catalog's.",
    why=(
        "Pods run with the number in the catalog. ssh and sshd look it up in the image's /etc/passwd; if the number is "
        "missing, they end with 'No user exists for uid', and the image's files belong to another user."
    ),
    fix="Give the user the number of the catalog, or correct user.uid there.",
    is_verdict=True,
)
CONTAINERFILE_KEY = Rule(
    "containerfile-key",
    ERROR,
    "An SSH or TLS key is in an image.",
    why=(
        "Anyone who may pull the image has the key, and all runs share it. Trainer creates a key pair for each run "
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
        "Anyone who may pull the image knows its password, and any pod that reaches the port can log in with it. Runs use "
        "only their own keys."
    ),
    fix="Set no password, and write PasswordAuthentication no and PermitEmptyPasswords no.",
    is_verdict=True,
)
CONTAINERFILE_ROOT_LOGIN = Rule(
    "containerfile-root-login",
    ERROR,
    "SSH lets root in.",
    why=(
        "This makes sense only where sshd runs as root. Clusters refuse that, and it opens every worker to anyone who has the "
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
CONTAINERFILE_NO_MPI = Rule(
    "containerfile-no-mpi",
    WARNING,
    "An image that should have an MPI installs none.",
    why=(
        "The catalog says that the image has an MPI, so runs start with its mpirun. The base is an operating system, "
        "Python or CUDA alone, and no instruction mentions an MPI: the launcher would find no mpirun."
    ),
    fix="Install the MPI that the catalog says, or remove mpi from the image's entry.",
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
    "An image's MPI, or its version, differs from what the catalog says.",
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
        "Only an image that runs as root needs this. Set permanently, it hides that the user is wrong until a cluster "
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
        "The same tag is a different image next week: a rebuild brings another MPI, driver library or Python that no "
        "one chose."
    ),
    fix="Name the base by digest: FROM image:tag@sha256:...",
    is_verdict=True,
)
CONTAINERFILE_NOT_FIPS = Rule(
    "containerfile-not-fips",
    ERROR,
    "An image with fips: true in the catalog has a base without validated cryptography.",
    why=(
        "Clusters in FIPS mode run the image because the catalog says so. The official images of Debian, Ubuntu, Alpine, Fedora "
        "and others contain no module of NIST's list (CMVP), so TLS and SSH in them use cryptography that no one has validated."
    ),
    fix="Build it on UBI 9 or on another base with validated modules, or remove fips from the image's entry.",
)
CONTAINERFILE_WRITABLE = Rule(
    "containerfile-writable",
    WARNING,
    "Anyone can write to files of an image.",
    why=(
        "Anything that runs in the container, even as another user, can replace programs and settings; sshd refuses key "
        "folders that others may write to."
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
        "the middle of a checkpoint. gangplan starts the program itself; anyone else who runs the image loses the checkpoint."
    ),
    fix='Write the list form: ENTRYPOINT ["program", "argument"], and exec in scripts.',
    is_verdict=True,
)
CONTAINERFILE_UNCHECKED = Rule(
    "containerfile-unchecked",
    WARNING,
    "A file from the internet is run or added without a check of its contents.",
    why=(
        "Anyone who controls the server or the route to it decides what is in the image, and the next build may differ. "
        "Nothing in the history shows it."
    ),
    fix="Download a fixed version and compare its checksum: ADD --checksum=sha256:..., or sha256sum -c.",
    is_verdict=True,
)
CONTAINERFILE_REQUIREMENT_OPEN = Rule(
    "containerfile-requirement-open",
    WARNING,
    "A list of Python packages leaves open which version an image gets.",
    why=(
        "Every build of the image takes the newest versions that day: two builds of one commit train differently, and a release that "
        "breaks something breaks runs whose files no one changed."
    ),
    fix="Write ==VERSION, or compile the list with hashes: pip-compile --generate-hashes requirements.in.",
    is_verdict=True,
)
