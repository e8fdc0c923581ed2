"""Rules about valid objects that the platform would refuse, waste, or treat unexpectedly."""

from __future__ import annotations

from gangplan.rules.model import ERROR, WARNING, Rule

SPOT_IN_PROD = Rule(
    "spot-in-prod",
    WARNING,
    "A run on a production cluster uses spot nodes.",
    why=(
        "Spot nodes cost less because the provider can take them back at any time. Work that others wait "
        "for then takes as long as the market wants. A run with priority low says that it can wait, and "
        "is not reported."
    ),
    fix="Leave out capacity: spot, or write priority: low.",
    waivable=True,
)

CHECKPOINT_MISSING = Rule(
    "checkpoint-missing",
    WARNING,
    "A run that may take longer than 24 hours saves no checkpoints.",
    why=(
        "Over several days, a node fails, a more urgent run preempts this one, or its timeout ends it, "
        "and all of its GPU-hours are lost. The limit is that of a plain run (24 hours; longer runs need "
        "extendedTimeout or the profile large). If the run mounts a claim that it can write, or has a "
        "bucket, its program may save there on its own, so the finding is only a note."
    ),
    fix=(
        "Add checkpoint: {to: CLAIM}, and make the program save to CHECKPOINT_DIR every "
        "CHECKPOINT_INTERVAL steps."
    ),
    waivable=True,
)

WEIGHT_OMITTED = Rule(
    "weight-omitted",
    WARNING,
    "A team states no weight, and the teams next to it use much larger ones.",
    why=(
        "An omitted weight is 1 (as in Kueue). Next to 32, 32 and 16, that is 1/81 of what is shared, and "
        "nobody chose it. gangplan reports it when 1 is less than half of the smallest stated weight "
        "that it competes with."
    ),
    fix="Give the team a weight; write 1 if that is what you mean.",
    waivable=True,
)

IMAGE_NOT_FIPS = Rule(
    "image-not-fips",
    WARNING,
    "The cluster runs in FIPS mode, and the image is not built for it.",
    why=(
        "In FIPS mode only validated cryptography may be used. The libraries of another image are not "
        "validated, and some of their ciphers and hashes fail at run time. On clusters with the pack "
        "images, the policy image-fips refuses it instead."
    ),
    fix="Use an image that the catalog marks with fips: true.",
    waivable=True,
)

PROXY_ADDRESS_UNKNOWN = Rule(
    "proxy-address-unknown",
    WARNING,
    "Network policies cannot open the proxy, because only its name is known.",
    why=(
        "A NetworkPolicy can only allow addresses and pods. Runs that ask for the internet get the "
        "proxy's name (HTTP_PROXY, HTTPS_PROXY). If gangplan does not know its address, their own policy "
        "denies it, and every request hangs until it times out."
    ),
    fix="Add the proxy's own addresses: proxy: {addresses: [10.1.2.3/32], ...}.",
    waivable=True,
)

DNS_OPENSHIFT = Rule(
    "dns-openshift",
    ERROR,
    "On OpenShift, the pods named in dns never answer.",
    why=(
        "OpenShift's DNS operator runs DNS in openshift-dns, in pods that listen on 5353; the Service in front "
        "of them listens on 53 (openshift/cluster-dns-operator, assets/dns). A NetworkPolicy is compared with "
        "the pods' own port, so one that allows 53 matches nothing, and no pod of a run can look up a name: the "
        "launcher waits for its workers until it gives up."
    ),
    fix="Remove dns: gangplan knows where DNS is on OpenShift. Addresses of a cache on the nodes may stay.",
)

PROXY_CLOSED = Rule(
    "proxy-closed",
    WARNING,
    "The program is set to use a proxy that its network policies deny.",
    why=(
        "HTTP_PROXY, HTTPS_PROXY and ALL_PROXY send every request of curl, Python and Go to the proxy. "
        "The run's network policies allow only what network.egress names; every other request hangs "
        "until it times out, even those to stores that are allowed."
    ),
    fix=("In network.egress, name an endpoint whose addresses include the proxy, or remove the variable."),
    waivable=True,
)

CLAIM_ZONE = Rule(
    "claim-zone",
    ERROR,
    "A claim is made in one zone, and the run's pods are in another.",
    why=(
        "A zonal disk carries a node affinity, and the scheduler places its pods nowhere else. With a "
        "node selector for another zone, no node is left, so the run is admitted, holds its quota and "
        "stays Pending."
    ),
    fix="Use a pool in the zone of the storage class, or a class without a zone.",
)

MONITORING_LABEL_ENFORCED = Rule(
    "monitoring-label-enforced",
    WARNING,
    "OpenShift narrows the alert rules to a namespace that contains no runs.",
    why=(
        "User-workload monitoring adds the label namespace, with the namespace of the rule itself, to "
        "everything that a PrometheusRule reads, unless its configuration lists that namespace in "
        "namespacesWithoutLabelEnforcement. Runs live in the namespaces of their teams, so none of "
        "gangplan's rules match anything, without an error anywhere."
    ),
    fix=(
        "List the namespace in user-workload-monitoring-config, then write monitoring: {allNamespaces: true}."
    ),
    waivable=True,
)

MONITORING_MOVED = Rule(
    "monitoring-moved",
    WARNING,
    "A label moves a team's namespace to the platform's own Prometheus.",
    why=(
        "On OpenShift the label openshift.io/cluster-monitoring is for platform components. With it, "
        "user-workload monitoring ignores the namespace, so the team loses the metrics of its own runs, "
        "and the platform's Prometheus carries the load."
    ),
    fix="Remove the label from the overlay's patch.",
    waivable=True,
)

ADMITTED_ELSEWHERE = Rule(
    "admitted-elsewhere",
    WARNING,
    "Kueue would admit the run to a pool other than the planned one.",
    why=(
        "Kueue takes the queue's first flavor that has room and whose node labels the pods do not "
        "contradict. Pods for a pool without labels contradict none, so a CPU run whose pool has too "
        "little quota silently goes to GPU nodes and spends their quota."
    ),
    fix="Give each pool a label of its own.",
    waivable=True,
)
