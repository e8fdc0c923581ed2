"""Causes while containers start, and causes that take pods away from a healthy run."""

from __future__ import annotations

from gangplan.diagnose.cause import ENDING, SYMPTOM, KnownCause

CAUSES = (
    KnownCause(
        "image-not-found",
        "its image does not exist",
        "The registry has no image of that name, tag or digest.",
        (
            "Correct the image in the catalog (images/catalog.yaml): name, tag, digest.",
            "Push it, if it was built and not pushed.",
        ),
        ("image-unknown", "image-digest-open"),
    ),
    KnownCause(
        "image-pull",
        "its image cannot be pulled",
        "The node does not get the image, and the message does not say why.",
        ("Look at the events of the pod: kubectl describe pod NAME names the registry's answer.",),
        ("image-unknown",),
        SYMPTOM,
    ),
    KnownCause(
        "image-forbidden",
        "it may not pull its image",
        "The registry asks for a login, or for other rights. Registries that hide what exists also say so of wrong names.",
        (
            "Check the name of the image, then the pull secret of the team on that cluster.",
            "Renew the password or token in the secret: they end.",
        ),
        ("secret-unknown",),
    ),
    KnownCause(
        "registry-unreachable",
        "the registry does not answer",
        "Nodes cannot reach the registry: no network or name, a wrong certificate, or too many requests.",
        (
            "Use the registry mirror of that cluster: registries in the cluster file.",
            "Ask the platform team whether its nodes may reach that registry.",
        ),
        ("registry-untrusted",),
    ),
    KnownCause(
        "image-architecture",
        "its image is for other processors",
        "The image has nothing for the architecture of the node (amd64, arm64).",
        ("Build the image for that architecture, or name a pool that has the other one.",),
        ("architecture-mismatch",),
    ),
    KnownCause(
        "image-name",
        "the name of its image is invalid",
        "It does not follow the form of image names.",
        ("Correct the name in the catalog: lower case, one tag or digest.",),
        ("spec-value",),
    ),
    KnownCause(
        "image-disk",
        "the node has no room for its image",
        "Unpacking the image filled the node's disk.",
        (
            "Make the image smaller, or have larger disks for the pool.",
            "Ask the platform team to clear the node of old images.",
        ),
        unforeseen="Neither the catalog nor the nodes say how much room an image takes.",
    ),
    KnownCause(
        "image-root",
        "its image runs as root, which the cluster forbids",
        "The image names no user, or root, or a user by name, and pods must not run as root.",
        (
            "Write USER with a number other than 0 into the Containerfile.",
            "Say the number in the catalog: user of the image.",
        ),
        ("pod-security",),
    ),
    KnownCause(
        "config-missing",
        "a Secret or ConfigMap that it names is missing",
        "The container cannot be made before it is there, with the key that is asked for.",
        (
            "Create it in the team's namespace, with that key.",
            "Correct its name: secrets and configMaps of the team, and of the spec.",
        ),
        ("secret-unknown", "config-map-unknown"),
    ),
    KnownCause(
        "launch-scripts-missing",
        "the ConfigMap of its launch scripts is missing",
        "All pods of a run mount one ConfigMap of its team, whose name ends in the scripts' hash. It was not synced with the run, or somebody deleted it.",
        (
            "Sync runs/<team>/ of that cluster as a whole: launch.<hash>.yaml there is the ConfigMap.",
            "If the file is gone from Git, bring it back, or raise run: in the spec; gangplan render writes what a new run mounts.",
        ),
        ("launch-scripts-lost",),
    ),
    KnownCause(
        "launch-scripts",
        "its launch scripts are not those of the run",
        "The ConfigMap that it mounts was deleted and created again with other scripts, or something else is mounted over them (193). Nothing of them ran.",
        (
            "Delete the ConfigMap that is named gangplan-launch-<hash>, and sync: Git has the right one.",
            "Find out who created it (the API server's audit log): nobody but the engine that syncs may write it.",
        ),
        ("launch-scripts-lost", "plan-broken"),
    ),
    KnownCause(
        "program-missing",
        "its program is not in the image",
        "The command names a program that the image does not have, or not on its PATH.",
        (
            "Correct command in the spec, or write the whole path of the program.",
            "Put the program into the image; gangplan plan SPEC shows the final command.",
        ),
        ("command-no-program",),
    ),
    KnownCause(
        "program-not-executable",
        "its program cannot be executed",
        "The file is there, and is not a program: the x permission, the first line (#!) or the line ends are wrong.",
        (
            "Start it by its interpreter (python train.py), or set the permission in the image (chmod +x).",
            "Save scripts with Unix line ends: #!/bin/sh and CR do not go together.",
        ),
        rules=("command-one-word",),
    ),
    KnownCause(
        "program-architecture",
        "its program is for other processors",
        "The kernel cannot execute the file: it was built for another architecture.",
        ("Build the image for the architecture of the pool's nodes.",),
        rules=(
            "architecture-mismatch",
            "image-architectures",
        ),
    ),
    KnownCause(
        "folder-missing",
        "the folder that it starts in cannot be used",
        "workdir is missing in the image, or belongs to another user.",
        ("Correct workdir in the spec, or make the folder in the image.",),
        ("workdir-unusable",),
    ),
    KnownCause(
        "mount-failed",
        "a volume cannot be mounted",
        "The storage refuses, does not answer, or is mounted elsewhere in a way that excludes others.",
        (
            "Read what the storage says above; Multi-Attach means a claim of ReadWriteOnce on several nodes.",
            "Ask the platform team whether nodes reach the storage (NFS exports, CSI driver).",
        ),
        ("claim-not-shared", "storage-access-mode"),
    ),
    KnownCause(
        "pod-network",
        "the node cannot give it a network",
        "The network plugin failed: no addresses left, or an additional network that does not exist.",
        (
            "Correct the networks of the pool in the cluster file, if one is named above.",
            "Ask the platform team about free addresses, and about the plugin on that node.",
        ),
        ("rdma-devices",),
    ),
    KnownCause(
        "gpu-allocation",
        "the node could not give it its GPUs or devices",
        "The scheduler counted them as free, and the node's device plugin did not have them: a GPU is unhealthy or was taken.",
        (
            "Start it again: another node is chosen.",
            "Have the node drained and its GPUs looked at (nvidia-smi, Xid messages in the kernel's log).",
        ),
        unforeseen="It is the state of the node and its device plugin.",
    ),
    KnownCause(
        "out-of-memory",
        "it used more memory than it asked for",
        "The kernel ended a process because the container was at its memory limit.",
        (
            "Raise memory in the spec, to well above what it had.",
            "Use less: a smaller batch, fewer data-loader workers, no copy of the model per rank on loading.",
            "Files in /dev/shm and in scratch of medium memory count as memory, too.",
        ),
        rules=(
            "memory-tiny",
            "launcher-small",
            "scratch-memory",
        ),
    ),
    KnownCause(
        "killed",
        "it was killed",
        "A process ended by SIGKILL (137). Mostly memory ran out; else its time to end was over.",
        (
            "Look whether the pod says OOMKilled: kubectl get pod NAME -o yaml.",
            "Raise memory in the spec.",
        ),
        ("memory-tiny", "launcher-small"),
        SYMPTOM,
    ),
    KnownCause(
        "evicted-disk",
        "it used more local disk than it may",
        "The node evicted the pod: its files in the container and its scratch went over their limit, or the node's disk was full.",
        (
            "Write to a mounted volume, and not into the container's own file system or /tmp.",
            "Ask for the room: scratch and disk in the spec.",
        ),
        ("scratch-not-counted",),
    ),
    KnownCause(
        "evicted-memory",
        "its node ran out of memory",
        "The kubelet evicted the pod to save the node: pods used more than they had asked for.",
        (
            "Ask for as much memory as it uses: memory in the spec.",
            "Have other pods kept off the pool's nodes.",
        ),
        unforeseen="Other pods of the node took more memory than they asked for.",
    ),
    KnownCause(
        "node-lost",
        "its node was lost",
        "The node stopped answering, was shut down, drained or taken back (spot), and its pods with it.",
        (
            "Let it be tried again: retries in the spec; checkpoints make it cheap.",
            "Use a pool that is not spot for what must not be interrupted.",
        ),
        ("spot-without-retry", "spot-in-prod"),
    ),
    KnownCause(
        "deadline",
        "it ran into its timeout",
        "The run was active for as long as its timeout allows, and was ended.",
        (
            "Raise timeout in the spec, if the team may; write checkpoints, so that a new run goes on from there.",
            "See whether it hung: the last lines of the launcher's log, and when they were written.",
            "Where mpirun says so, the limit is its own: --timeout in mpi.flags, or MPIEXEC_TIMEOUT.",
        ),
        ("timeout-over-limit",),
    ),
    KnownCause(
        "retries-used-up",
        "it failed as often as it may be tried",
        "Each attempt failed, and retries allows no further one.",
        ("Find out why the attempts failed: gangplan logs RUN --previous.",),
        (),
        ENDING,
    ),
    KnownCause(
        "not-retried",
        "it ended with a code that is not tried again",
        "A rule of exitCodes, or of the launch script, says that another try cannot help.",
        ("The code's own cause is above. exitCodes in the spec says which codes are tried again.",),
        (),
        ENDING,
    ),
    KnownCause(
        "job-failed",
        "one of its Jobs failed",
        "A part of the run failed; its pods say why.",
        ("Save its pods and logs too: kubectl get pods -l jobset.sigs.k8s.io/jobset-name=RUN -o json.",),
        (),
        ENDING,
    ),
    KnownCause(
        "told-to-end",
        "it was asked to end",
        "A process ended by SIGTERM (143): the run was stopped, preempted, its node drained, or another rank failed first.",
        ("Look at what ended first.",),
        (),
        ENDING,
    ),
    KnownCause(
        "program-failed",
        "its program ended with an error",
        "The exit code is the program's own; its output says why.",
        ("Read the last lines of its log: gangplan logs RUN --tail 50, and give diagnose the log too.",),
        (),
        ENDING,
    ),
)
