"""Messages of the kubelet, the runtime, the scheduler, the API server and their controllers.

Sources: Kubernetes v1.33.13 to v1.36.1 (pkg/kubelet/{eviction,images,kuberuntime,nodeshutdown,cm},
pkg/scheduler/framework/plugins, pkg/volume, staging k8s.io/apiserver pkg/admission); containerd v1.7
(remotes/docker, images) and runc v1.2, which put the error of the registry or of execve into the kubelet's
message. `kubectl describe` and events contain the same texts. The first sign of a line counts: narrower ones
come first.
"""

from __future__ import annotations

from gangplan.diagnose.signs import Sign

_IMAGE = r"(?i)pull|image|resolve reference|unpack"

CLUSTER_SIGNS = (
    Sign("deactivated", "The workload is deactivated"),  # Kueue v0.15 to v0.19, pkg/controller/core
    # Pulling images.
    Sign("image-architecture", "no match for platform in manifest"),
    Sign("image-architecture", "no matching manifest for"),
    Sign("image-disk", "no space left on device", r"(?i)extract layer|pull|unpack|snapshot"),
    Sign("image-name", "couldn't parse image"),
    Sign("image-name", "InvalidImageName"),
    Sign("image-name", "invalid reference format"),
    Sign("image-forbidden", "pull access denied"),
    Sign("image-forbidden", "insufficient_scope: authorization failed"),
    Sign("image-forbidden", "401 Unauthorized", _IMAGE),
    Sign("image-forbidden", "403 Forbidden", _IMAGE),
    Sign("image-forbidden", "no basic auth credentials"),
    Sign("image-forbidden", "unauthorized: ", _IMAGE),
    Sign("image-forbidden", "denied: ", r"(?i)failed to pull|pull image|resolve reference"),
    Sign("registry-unreachable", "toomanyrequests"),
    Sign("registry-unreachable", "429 Too Many Requests", _IMAGE),
    Sign("registry-unreachable", "x509: ", _IMAGE),
    Sign("registry-unreachable", "no such host", _IMAGE),
    Sign("registry-unreachable", "i/o timeout", _IMAGE),
    Sign("registry-unreachable", "TLS handshake timeout", _IMAGE),
    Sign("registry-unreachable", "connection refused", r"(?i)failed to pull|resolve reference|ErrImagePull"),
    Sign("registry-unreachable", "server gave HTTP response to HTTPS client"),
    Sign(
        "registry-unreachable",
        "context deadline exceeded",
        r"(?i)failed to pull|resolve reference|ErrImagePull",
    ),
    Sign("image-not-found", "manifest unknown"),
    Sign("image-not-found", "name unknown: "),
    Sign("image-not-found", "repository does not exist"),
    Sign("image-not-found", ": not found", r"(?i)failed to pull|resolve reference|ErrImagePull"),
    Sign("image-not-found", "ErrImageNeverPull"),
    Sign("image-pull", "Failed to pull image"),
    Sign("image-pull", "Back-off pulling image"),
    # Columns of `kubectl get pods`, and reasons of events, without the registry's words.
    Sign("image-pull", "ImagePullBackOff"),
    Sign("image-pull", "ErrImagePull"),
    # Making and starting containers.
    Sign("image-root", "container has runAsNonRoot"),
    Sign(
        "launch-scripts-missing",
        'configmap "gangplan-launch-',
        r'configmap "(?P<what>gangplan-launch-[0-9a-f]{8})" not found',
    ),
    Sign("config-missing", "secret ", r'secrets? "(?P<what>[^"]+)" not found'),
    Sign("config-missing", "configmap ", r'configmaps? "(?P<what>[^"]+)" not found'),
    Sign(
        "config-missing", "couldn't find key ", r"couldn't find key (?P<what>\S+ in (?:Secret|ConfigMap) \S+)"
    ),
    Sign("config-missing", "references non-existent secret key: "),
    Sign("program-missing", "executable file not found in $PATH", r'exec: "(?P<what>[^"]+)"'),
    Sign("folder-missing", "chdir to cwd", r'cwd \("(?P<what>[^"]+)"\)'),
    Sign(
        "program-missing",
        ": no such file or directory: unknown",
        r'(?:stat|exec|exec:) "?(?P<what>[^":]+)"?:',
    ),
    Sign("program-architecture", "exec format error"),
    Sign("program-not-executable", ": permission denied: unknown", r'exec:? "?(?P<what>[^":]+)"?:'),
    # Volumes and networks of pods.
    Sign("mount-failed", "Multi-Attach error"),
    Sign("mount-failed", "MountVolume."),
    Sign("mount-failed", "Unable to attach or mount volumes"),
    Sign("mount-failed", "AttachVolume.Attach failed"),
    Sign("pod-network", "FailedCreatePodSandBox"),
    Sign("pod-network", "failed to create pod sandbox"),
    Sign("pod-network", "Failed to create pod sandbox"),
    # Evictions and losses.
    Sign(
        "evicted-disk",
        "exceeds the total limit of containers",
        r"total limit of containers (?P<limit>\S+?)\.?(?:\s|$)",
    ),
    Sign("evicted-disk", "exceeded its local ephemeral storage limit", r'storage limit "(?P<limit>[^"]+)"'),
    Sign(
        "evicted-disk",
        "Usage of EmptyDir volume",
        r'volume "(?P<what>[^"]+)" exceeds the limit "(?P<limit>[^"]+)"',
    ),
    Sign("evicted-disk", "The node was low on resource: ephemeral-storage"),
    Sign("evicted-disk", "The node had condition: [DiskPressure]"),
    Sign("evicted-memory", "The node was low on resource: memory"),
    Sign("evicted-memory", "The node had condition: [MemoryPressure]"),
    Sign("evicted-memory", "System OOM encountered"),
    Sign(
        "out-of-memory",
        "OOMKilled",
        r"OOMKilled(?:.{,40}requested memory: (?P<limit>[\d.]+ ?\w+))?(?:.{,40}max usage: (?P<more>[\d.]+ ?\w+))?",
        is_sure=True,
    ),
    Sign("out-of-memory", "OOM Killed", r"(?:exit code (?P<code>\d+)\W+)?OOM Killed", is_sure=True),
    Sign(
        "out-of-memory",
        "exceeded memory limit",
        r"exceeded memory limit(?:\W{,3}(?P<limit>\d[\d.]* ?[KMGTkmgt]i?B?))?",
        is_sure=True,
    ),
    Sign("out-of-memory", "Memory cgroup out of memory: Killed process"),
    Sign("out-of-memory", "oom-kill:constraint=CONSTRAINT_MEMCG"),
    Sign("preempted", "Preempted to accommodate a workload"),
    # Kueue's events in the output of kubectl, which a run may have overcome since.
    Sign("quota-never", "couldn't assign flavors to pod set", r"maximum capacity", is_mild=True),
    Sign("quota-wait", "couldn't assign flavors to pod set", r"more needed", is_mild=True),
    Sign("not-ready-in-time", "Exceeded the PodsReady timeout"),
    # What programs print that save on SIGTERM.
    Sign("preempted", "empted at ", r"(?i)pre-?empted at (?P<what>(?:epoch|step) \d+(?:/\d+)?)"),
    Sign("gpu-allocation", "Allocate failed due to"),
    Sign("gpu-allocation", "UnexpectedAdmissionError"),
    Sign("node-lost", "in response to imminent node shutdown"),
    Sign("node-lost", "Pod was rejected as the node is shutting down"),
    Sign("node-lost", "Node is not ready"),
    Sign("node-lost", "TaintManagerEviction"),
    Sign("deadline", "active on the node longer than the specified deadline"),
    Sign("deadline", "Job was active longer than specified deadline"),
    Sign("deadline", "TrainJob exceeded its active deadline"),
    # Refusals of the API server.
    Sign(
        "object-quota",
        "exceeded quota: ",
        r"exceeded quota: (?P<what>[^,]+), requested: (?P<more>[^ ]+), used: [^ ]+, limited: (?P<limit>\S+)",
    ),
    Sign("pods-refused", "violates PodSecurity", r'violates PodSecurity "(?P<what>[^"]+)"'),
    Sign("pods-refused", "denied request: ", r"(?i)policy ['\"](?P<what>[^'\"]+)['\"]"),
    Sign("pods-refused", "denied the request: ", r'admission webhook "(?P<what>[^"]+)"'),
    Sign("pods-refused", "unable to validate against any security context constraint"),
    Sign("webhook-down", "failed calling webhook", r'webhook "(?P<what>[^"]+)"'),
    Sign("account-missing", "error looking up service account", r"service account (?P<what>\S+?):"),
    Sign("account-missing", 'serviceaccount "', r'serviceaccount "(?P<what>[^"]+)" not found'),
    # Messages of the scheduler.
    Sign(
        "volume-pending",
        'persistentvolumeclaim "',
        r'persistentvolumeclaim "(?P<what>[^"]+)" (?:not found|is being deleted)',
    ),
    Sign("volume-pending", "unbound immediate PersistentVolumeClaims"),
    Sign("volume-zone", "volume node affinity conflict"),
    # Kubernetes 1.34 (pkg/scheduler/framework/plugins/volumebinding).
    Sign("volume-zone", "didn't match PersistentVolume's node affinity"),
    Sign(
        "no-gpu", "Insufficient ", r"Insufficient (?P<what>[\w.-]+/[\w.-]*gpu\w*|nvidia\.com/mig-[\w.-]*\w)"
    ),
    Sign("no-gpu", "OutOf", r"OutOf(?P<what>[\w.-]+/[\w.-]*gpu\w*)"),
    # Programs call other things insufficient.
    Sign(
        "no-room",
        "Insufficient ",
        r"(?:\d |^)Insufficient (?P<what>(?:cpu|memory|pods|ephemeral-storage|hugepages-\w+|[\w.-]+/[\w.-]*\w)\b)",
    ),
    Sign("no-room", "OutOf", r"OutOf(?P<what>cpu|memory|pods|ephemeral-storage|[\w.-]+/[\w.-]*\w)"),
    Sign("no-room", "Too many pods", r"nodes are available"),
    Sign("no-matching-node", "didn't match Pod's node affinity/selector"),
    Sign("no-matching-node", "had untolerated taint"),
    Sign("no-matching-node", "node(s) were unschedulable"),
    # Columns of `kubectl get pods`, and reasons whose messages have no sign of their own.
    Sign("config-missing", "CreateContainerConfigError"),
    Sign("program-missing", "CreateContainerError"),
    Sign("program-missing", "RunContainerError"),
    Sign("node-lost", "ContainerStatusUnknown"),
)
