"""Rules about what servers accept but breaks later: at the next sync, the next version, or a run's end."""

from __future__ import annotations

from gangplan.rules.model import ERROR, NOTE, WARNING, Rule

GANG_DEADLOCK = Rule(
    "gang-deadlock",
    ERROR,
    "Pods wait for each other, and the gang scheduler waits for all of them.",
    why=(
        "A pod group starts no pod until all of them exist. A replicated job that is created only after "
        "another one is ready, or an initializer that runs first, never gets there."
    ),
    fix=(
        "Remove podGroupPolicy from the patch. For a cluster with such a scheduler, write gang: "
        "coscheduling or gang: volcano in its file; gangplan then renders runs that suit it."
    ),
    is_verdict=True,
)

TTL_RERUNS = Rule(
    "ttl-reruns",
    ERROR,
    "A TTL on the JobSet makes runs start again.",
    why=(
        "Trainer up to 2.3 recreates the JobSet when it is gone. 2.1 does so for every finished run, "
        "later versions for failed runs, which then train over and over (trainer#2981, trainer#3737)."
    ),
    fix="Remove ttlSecondsAfterFinished; state: stopped in the spec cleans up.",
    is_verdict=True,
)

GIT_OWNED_FIELD = Rule(
    "git-owned-field",
    ERROR,
    "A field that Kueue or the API server owns is set in Git.",
    why=(
        "Kueue sets suspend, its own runtime patch and, where runs go to worker clusters, managedBy. "
        "Every sync restores the values in Git, which stops runs or removes their placement; "
        "generateName cannot be applied at all."
    ),
    fix="Remove the field from the patch.",
    is_verdict=True,
)

OWNER_REFERENCE = Rule(
    "owner-reference",
    ERROR,
    "An object in Git has an owner.",
    why=(
        "An owner is named by a uid, which the API server makes up when the owner is created. The server accepts "
        "any uid, and the garbage collector deletes an object when none of its owners is there; with a uid of "
        "another cluster, or of an owner that was created again, that is minutes after each sync."
    ),
    fix="Remove ownerReferences: what is in Git belongs to Git.",
    is_verdict=True,
)

STATUS_IGNORED = Rule(
    "status-ignored",
    NOTE,
    "An object in Git has a status.",
    why=(
        "The status is a subresource that controllers write: API servers drop the one that comes with the object, "
        "so it does nothing, and GitOps engines may show the object as out of sync again and again. Mostly it was copied "
        "from kubectl get -o yaml."
    ),
    fix="Remove status from the patch.",
    is_verdict=True,
)

SYNC_DESTROYS = Rule(
    "sync-destroys",
    ERROR,
    "A sync deletes running work, data, or what they need.",
    why=(
        "Force and Replace delete and recreate an object when anything differs, even a label. A hook is "
        "created again at every sync. Both kill or repeat training (Argo CD 3.5, gitops-engine). Without the "
        "annotations that gangplan writes, an engine also deletes what has left Git: a run, a claim with its "
        "data, or a namespace with everything in it."
    ),
    fix="Remove the option, and leave the annotations as they are rendered; a changed run gets a new name by itself.",
    is_verdict=True,
)

SYNC_SKIPS = Rule(
    "sync-skips",
    ERROR,
    "A sync engine does not apply an object.",
    why=(
        "Argo CD leaves out objects that are hooks of type Skip, Flux those with ssa: Ignore or reconcile: "
        "disabled; both report success. Everything that gangplan proves counts on the object being there: a "
        "NetworkPolicy that is never applied lets all traffic through."
    ),
    fix="Remove the annotation or label from the patch. A run that is only a record has state: archived.",
    is_verdict=True,
)

SYNC_ORDER = Rule(
    "sync-order",
    ERROR,
    "An object is applied before what it needs.",
    why=(
        "Argo CD begins a wave only when the one before it has been applied. Trainer's webhook refuses a run "
        "whose runtime is not there yet, so every sync fails in the run's wave."
    ),
    fix="Leave the sync wave of the run and its runtime as it is rendered.",
    is_verdict=True,
)

QUANTITY_DRIFT = Rule(
    "quantity-drift",
    WARNING,
    "The cluster writes an amount back in another form.",
    why=(
        "Kubernetes turns 2000m into 2 and 1024Mi into 1Gi. A GitOps engine then always sees a "
        "difference, and on an immutable field it never stops trying to correct it."
    ),
    fix="Write the amount as the message shows it.",
)

ENV_OVERWRITTEN = Rule(
    "env-overwritten",
    WARNING,
    "Trainer overwrites a variable that is set here.",
    why=(
        "Trainer sets the hostfile and the torch rendezvous itself. In a runtime its values silently "
        "win; Trainer before 2.3 does the same in a run."
    ),
    fix="Remove the variable; use a flag of the command instead.",
)

MPI_HOSTS_UNKNOWN = Rule(
    "mpi-hosts-unknown",
    ERROR,
    "Open MPI 5 cannot find its workers.",
    why=(
        "Trainer sets the variables of Open MPI 4, and Open MPI 5 reads none of them. All ranks start in "
        "the launcher, and the run completes without its workers (trainer#4028)."
    ),
    fix="Leave PRTE_MCA_prte_default_hostfile in the launcher's environment.",
    is_verdict=True,
)

RUN_REMOVED = Rule(
    "run-removed",
    WARNING,
    "A run is removed from Git without being stopped.",
    why=(
        "Removing a file does not stop a run, because runs are never pruned. It keeps its GPUs, and "
        "nobody can see it in Git any more."
    ),
    fix=(
        "Set state: stopped first; remove the spec in a later change. That ends the run on all clusters of the spec. To "
        "end it on a cluster that leaves the spec alone, delete it there with kubectl, as the message says."
    ),
)

RUN_REPLACED = Rule(
    "run-replaced",
    NOTE,
    "A newer run of the same job replaces a run in Git.",
    why=(
        "A changed spec is a new run with a new name. Nothing stops the old one, so if it has not "
        "finished, both train and both count against the quota."
    ),
    fix=(
        "If the old run has not finished, end it as the message says. If only the platform changed, the old run can be "
        "kept instead: keep: true in the spec, as long as rendered/ has the old run. Once the new one is committed, first "
        "bring it back: git checkout main -- rendered/<cluster>/runs/<team>/<run>.yaml, then keep: true, then gangplan "
        "render."
    ),
)

RUNTIME_EDITED = Rule(
    "runtime-edited",
    ERROR,
    "The runtime of a run changed under its old name.",
    why=(
        "Trainer reads the live runtime again when a run is resumed or updated. A runtime that "
        "changed makes the update fail, or mixes old pods and new ones."
    ),
    fix="Change the spec or raise run:, so that the run gets a new name.",
    is_verdict=True,
    untested=(
        "the name of a run is a hash of its runtime, so that only an edit by hand can do it; "
        "tests/rules/test_since.py edits."
    ),
)

IMMUTABLE_CHANGED = Rule(
    "immutable-changed",
    ERROR,
    "An immutable field was changed.",
    why=(
        "The API server answers 'field is immutable' and the sync fails again and again, and blocks "
        "everything behind it. The queue behind a LocalQueue, the levels of a Topology, and most of a "
        "TrainJob since Trainer 2.2 are immutable."
    ),
    fix="Give the object a new name, move what uses it, and remove the old one later.",
    is_verdict=True,
)

QUEUE_REMOVED = Rule(
    "queue-removed",
    WARNING,
    "A queue or flavor is removed while runs use it.",
    why=(
        "A ClusterQueue cannot be deleted while a run holds quota in it, nor a flavor while a queue "
        "lists it; the deletion blocks the sync. Where no queue lists a flavor any more, Kueue no longer counts what "
        "its runs hold, and admits others onto the same nodes. Runs that wait in a deleted LocalQueue are never "
        "admitted."
    ),
    fix=(
        "Drain it in one commit, remove it in a later one. To drain it, stop its runs (state: stopped), or set stopPolicy "
        "by a patch in overlays/<cluster>/kustomization.yaml, below patches: - {target: {kind: ClusterQueue, name: nlp}, "
        'patch: \'[{"op": "add", "path": "/spec/stopPolicy", "value": "HoldAndDrain"}]\'}.'
    ),
)

APP_MOVED = Rule(
    "app-moved",
    WARNING,
    "Objects move to another Application of Argo CD.",
    why=(
        "Applications are named after clusters and teams. An object that stays where it is has the tracking id of the "
        "Application that applied it, and Argo CD ends the sync of any other one that has it, too, even after the first "
        "one is gone: no run of a renamed team starts, until somebody removes the tracking ids."
    ),
    fix="Keep the name of the team or cluster, or remove the tracking ids after the merge, as the message says.",
    untested=(
        "a team or a cluster has another name, which is a change of several files; tests/gitops/test_applications.py "
        "renames both."
    ),
)

BASE_UNREADABLE = Rule(
    "base-unreadable",
    WARNING,
    "A committed file cannot be compared.",
    why=(
        "The rendered file, at the revision or now, is not a stream of Kubernetes objects, for example "
        "after a merge conflict. gangplan cannot judge what it contained."
    ),
    fix="Render and commit it again.",
    untested="what gangplan renders can be read; tests/rules/test_since.py commits a conflict.",
)
