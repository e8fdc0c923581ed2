"""The programs of the lab: which Go module, which version, which executables.

Every program is built from a Go module whose exact dependencies are committed under
``modules/<name>/<version>/`` (``go.mod`` and ``go.sum``). A program without a ``package`` has its own small
``modules/<name>/main.go``. A program with ``edits`` is built from a copy of its package with those strings
replaced.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

MODULES = Path(__file__).parent / "modules"

#: The variable with the folder of our Kueue's metrics certificate.
KUEUE_METRICS_CERTS = "GANGPLAN_LAB_KUEUE_METRICS_CERTS"


@dataclass(frozen=True)
class Program:
    """One Go program at one version, built into one executable.

    ``binaries`` are the names under which the executable is linked; programs with several names (Kubernetes,
    Argo CD) check the name they run under. ``edits`` are (old, new) strings of upstream's main file.
    """

    name: str
    version: str
    module: str
    package: str | None
    binaries: tuple[str, ...]
    edits: tuple[tuple[str, str], ...] = ()

    @property
    def key(self) -> str:
        """``name-version``, unique among all programs."""
        return f"{self.name}-{self.version}"

    @property
    def pins(self) -> Path:
        """The folder with the pinned ``go.mod`` and ``go.sum``."""
        return MODULES / self.name / self.version

    @property
    def main(self) -> Path | None:
        """Our own main file, or None when upstream's package is built."""
        return None if self.package else MODULES / self.name / "main.go"

    def sources(self) -> tuple[Path, ...]:
        """Return every committed file that decides what the build produces."""
        files = (self.pins / "go.mod", self.pins / "go.sum")
        return (*files, self.main) if self.main else files

    def digest(self) -> str:
        """Return a short hash of the build inputs, which names the cache entry."""
        total = hashlib.sha256(repr((self.package, self.binaries, self.edits)).encode())
        for path in self.sources():
            total.update(path.read_bytes())
        return total.hexdigest()[:12]

    def ldflags(self) -> str:
        """Return linker flags: no debug data, and a version where the program reads one."""
        flags = ["-s", "-w"]
        if self.name in ("kubernetes", "kubelet"):
            major, minor, _ = self.version.split(".")
            package = "k8s.io/component-base/version"
            flags += [
                f"-X {package}.gitVersion=v{self.version}",
                f"-X {package}.gitMajor={major}",
                f"-X {package}.gitMinor={minor}",
            ]
        return " ".join(flags)


def etcd(version: str) -> Program:
    """Return etcd, the API server's store."""
    module = "go.etcd.io/etcd/server/v3"
    return Program("etcd", version, module, module, ("etcd",))


def kubernetes(version: str) -> Program:
    """Return API server, scheduler, controller manager and kubectl, in one executable."""
    names = ("kube-apiserver", "kube-scheduler", "kube-controller-manager", "kubectl")
    return Program("kubernetes", version, "k8s.io/kubernetes", None, names)


def kubelet(version: str) -> Program:
    """Return the kubelet, for the tests with a real node."""
    module = "k8s.io/kubernetes"
    return Program("kubelet", version, module, f"{module}/cmd/kubelet", ("kubelet",))


def jobset(version: str) -> Program:
    """Return the JobSet controller manager."""
    module = "sigs.k8s.io/jobset"
    return Program("jobset", version, module, module, ("jobset",))


def trainer(version: str) -> Program:
    """Return the Kubeflow Trainer controller manager."""
    module = "github.com/kubeflow/trainer/v2"
    return Program("trainer", version, module, f"{module}/cmd/trainer-controller-manager", ("trainer",))


def kueue(version: str) -> Program:
    """Return the Kueue controller manager.

    It reads its metrics certificate from one fixed path of the machine, which neither an unprivileged user
    nor two labs can share; ours takes the path from the environment.
    """
    module = "sigs.k8s.io/kueue"
    edit = ('"/etc/kueue/metrics/certs"', f'os.Getenv("{KUEUE_METRICS_CERTS}")')
    return Program("kueue", version, module, f"{module}/cmd/kueue", ("kueue",), (edit,))


def mpi_operator(version: str) -> Program:
    """Return the controller of the MPI operator, in a command of ours: its own listens on one fixed port."""
    module = "github.com/kubeflow/mpi-operator"
    return Program("mpi-operator", version, module, None, ("mpi-operator",))


def training_operator(version: str) -> Program:
    """Return the controllers of the training operator, in a command of ours without its webhooks."""
    module = "github.com/kubeflow/training-operator"
    return Program("training-operator", version, module, None, ("training-operator",))


def kwok(version: str) -> Program:
    """Return KWOK, which simulates the nodes and their pods."""
    module = "sigs.k8s.io/kwok"
    return Program("kwok", version, module, f"{module}/cmd/kwok", ("kwok",))


def kustomize(version: str) -> Program:
    """Return kustomize, which builds upstream's default installations."""
    module = "sigs.k8s.io/kustomize/kustomize/v5"
    return Program("kustomize", version, module, module, ("kustomize",))


def promtool(version: str) -> Program:
    """Return promtool, which checks and tests alert rules; Prometheus 3.13.5 is the module's 0.313.5."""
    module = "github.com/prometheus/prometheus"
    return Program("promtool", version, module, f"{module}/cmd/promtool", ("promtool",))


def amtool(version: str) -> Program:
    """Return amtool, which checks configurations of Alertmanager and says who gets an alert."""
    module = "github.com/prometheus/alertmanager"
    return Program("amtool", version, module, f"{module}/cmd/amtool", ("amtool",))


def distribution(version: str) -> Program:
    """Return the CNCF distribution registry, in a command of ours: its own has the clients of all clouds."""
    module = "github.com/distribution/distribution/v3"
    return Program("distribution", version, module, None, ("registry",))


def lua(version: str) -> Program:
    """Return the Lua of Argo CD's health checks."""
    return Program("lua", version, "github.com/yuin/gopher-lua", None, ("lua",))


def argocd(version: str) -> Program:
    """Return Argo CD's application controller, repo server, plugin server and Redis, in one executable."""
    names = ("argocd-application-controller", "argocd-repo-server", "argocd-cmp-server", "argocd-redis")
    return Program("argocd", version, "github.com/argoproj/argo-cd/v3", None, names)


def actionlint(version: str) -> Program:
    """Return actionlint, which checks workflows and actions of GitHub."""
    module = "github.com/rhysd/actionlint"
    return Program("actionlint", version, module, f"{module}/cmd/actionlint", ("actionlint",))


def codeowners(version: str) -> Program:
    """Return a parser of CODEOWNERS files that prints who owns a path."""
    module = "github.com/hmarr/codeowners"
    return Program("codeowners", version, module, f"{module}/cmd/codeowners", ("codeowners",))


def tekton_check(version: str) -> Program:
    """Return a command of ours that checks objects with the code of Tekton's webhook."""
    return Program("tekton-check", version, "github.com/tektoncd/pipeline", None, ("tekton-check",))


def source_controller(version: str) -> Program:
    """Return the part of Flux that fetches repositories."""
    module = "github.com/fluxcd/source-controller"
    return Program("source-controller", version, module, module, ("source-controller",))


def kustomize_controller(version: str) -> Program:
    """Return the part of Flux that applies what was fetched."""
    module = "github.com/fluxcd/kustomize-controller"
    return Program("kustomize-controller", version, module, module, ("kustomize-controller",))


def flux_check(version: str) -> Program:
    """Return a command of ours that reads and checks objects with the code of Flux's controllers.

    Its pins began as those of kustomize-controller itself: the newest fluxcd/pkg/runtime needs a newer Go.
    """
    return Program("flux-check", version, "github.com/fluxcd/kustomize-controller/api", None, ("flux-check",))


def katib_check(version: str) -> Program:
    """Return a command of ours that checks Experiments with the code of Katib's webhook."""
    return Program("katib-check", version, "github.com/kubeflow/katib", None, ("katib-check",))


ETCD = etcd("3.6.5")
KUBELET = kubelet("1.34.4")
KWOK = kwok("0.7.0")
KUSTOMIZE = kustomize("5.8.1")
ARGOCD = argocd("3.5.1")
PROMTOOL = promtool("0.313.5")
AMTOOL = amtool("0.33.0")
LUA = lua("1.1.2")
DISTRIBUTION = distribution("3.1.2")
ACTIONLINT = actionlint("1.7.12")
CODEOWNERS = codeowners("1.2.1")
TEKTON_CHECK = tekton_check("1.9.0")
FLUX_CHECK = flux_check("1.9.4")
KATIB_CHECK = katib_check("0.19.0")
TRAINING_OPERATOR = training_operator("1.9.3")
FLUX = (source_controller("1.9.2"), kustomize_controller("1.9.4"))

CATALOG: tuple[Program, ...] = (
    ETCD,
    kubernetes("1.34.4"),
    kubernetes("1.33.13"),
    KUBELET,
    jobset("0.12.0"),
    jobset("0.11.0"),
    jobset("0.10.1"),
    trainer("2.3.0"),
    trainer("2.2.1"),
    trainer("2.1.0"),
    kueue("0.19.2"),
    kueue("0.18.2"),
    kueue("0.15.2"),
    mpi_operator("0.8.2"),
    KWOK,
    KUSTOMIZE,
    ARGOCD,
    PROMTOOL,
    AMTOOL,
    LUA,
    DISTRIBUTION,
    ACTIONLINT,
    CODEOWNERS,
    TEKTON_CHECK,
    FLUX_CHECK,
    KATIB_CHECK,
    TRAINING_OPERATOR,
    *FLUX,
)
