module gangplan.dev/lab

go 1.24.0

require k8s.io/kubernetes v1.34.4

require github.com/JeffAshton/win_pdh v0.0.0-20161109143554-76bb4ee9f0ab // indirect

require github.com/Microsoft/go-winio v0.6.2 // indirect

require github.com/blang/semver/v4 v4.0.0 // indirect

require github.com/container-storage-interface/spec v1.9.0 // indirect

require github.com/coreos/go-oidc v2.3.0+incompatible // indirect

require github.com/coreos/go-systemd/v22 v22.5.0 // indirect

require github.com/cyphar/filepath-securejoin v0.4.1 // indirect

require github.com/distribution/reference v0.6.0 // indirect

require github.com/docker/go-units v0.5.0 // indirect

require github.com/emicklei/go-restful/v3 v3.12.2 // indirect

require github.com/fsnotify/fsnotify v1.9.0 // indirect

require github.com/go-logr/logr v1.4.2 // indirect

require github.com/go-openapi/jsonreference v0.20.2 // indirect

require github.com/godbus/dbus/v5 v5.1.0 // indirect

require github.com/gogo/protobuf v1.3.2 // indirect

require github.com/google/cadvisor v0.52.1 // indirect

require github.com/google/cel-go v0.26.0 // indirect

require github.com/google/gnostic-models v0.7.0 // indirect

require github.com/google/go-cmp v0.7.0 // indirect

require github.com/google/uuid v1.6.0 // indirect

require github.com/libopenstorage/openstorage v1.0.0 // indirect

require github.com/lithammer/dedent v1.1.0 // indirect

require github.com/moby/sys/userns v0.1.0 // indirect

require github.com/munnerz/goautoneg v0.0.0-20191010083416-a7dc8b61c822 // indirect

require github.com/opencontainers/cgroups v0.0.1 // indirect

require github.com/opencontainers/selinux v1.11.1 // indirect

require github.com/pmezard/go-difflib v1.0.0 // indirect

require github.com/prometheus/client_golang v1.22.0 // indirect

require github.com/prometheus/client_model v0.6.1 // indirect

require github.com/prometheus/common v0.62.0 // indirect

require github.com/robfig/cron/v3 v3.0.1 // indirect

require github.com/spf13/cobra v1.9.1

require github.com/spf13/pflag v1.0.6 // indirect

require go.etcd.io/etcd/api/v3 v3.6.4 // indirect

require go.etcd.io/etcd/client/pkg/v3 v3.6.4 // indirect

require go.etcd.io/etcd/client/v3 v3.6.4 // indirect

require go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp v0.58.0 // indirect

require go.opentelemetry.io/otel v1.35.0 // indirect

require go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc v1.34.0 // indirect

require go.opentelemetry.io/otel/metric v1.35.0 // indirect

require go.opentelemetry.io/otel/sdk v1.34.0 // indirect

require go.opentelemetry.io/otel/trace v1.35.0 // indirect

require go.opentelemetry.io/proto/otlp v1.5.0 // indirect

require go.uber.org/zap v1.27.0 // indirect

require go.yaml.in/yaml/v2 v2.4.2 // indirect

require golang.org/x/crypto v0.36.0 // indirect

require golang.org/x/net v0.38.0 // indirect

require golang.org/x/oauth2 v0.27.0 // indirect

require golang.org/x/sync v0.12.0 // indirect

require golang.org/x/sys v0.31.0 // indirect

require golang.org/x/term v0.30.0 // indirect

require golang.org/x/time v0.9.0 // indirect

require golang.org/x/tools v0.26.0 // indirect

require google.golang.org/genproto/googleapis/rpc v0.0.0-20250303144028-a0af3efb3deb // indirect

require google.golang.org/grpc v1.72.1 // indirect

require google.golang.org/protobuf v1.36.5 // indirect

require gopkg.in/evanphx/json-patch.v4 v4.12.0 // indirect

require gopkg.in/go-jose/go-jose.v2 v2.6.3 // indirect

require k8s.io/klog/v2 v2.130.1 // indirect

require k8s.io/kube-openapi v0.0.0-20250710124328-f3f2b991d03b // indirect

require k8s.io/utils v0.0.0-20250604170112-4c0f3b243397 // indirect

require sigs.k8s.io/json v0.0.0-20241014173422-cfa47c3a1cc8 // indirect

require sigs.k8s.io/randfill v1.0.0 // indirect

require sigs.k8s.io/structured-merge-diff/v6 v6.3.0 // indirect

require sigs.k8s.io/yaml v1.6.0 // indirect

require cel.dev/expr v0.24.0 // indirect

require github.com/Azure/go-ansiterm v0.0.0-20230124172434-306776ec8161 // indirect

require github.com/MakeNowJust/heredoc v1.0.0 // indirect

require github.com/NYTimes/gziphandler v1.1.1 // indirect

require github.com/antlr4-go/antlr/v4 v4.13.0 // indirect

require github.com/beorn7/perks v1.0.1 // indirect

require github.com/cenkalti/backoff/v4 v4.3.0 // indirect

require github.com/cespare/xxhash/v2 v2.3.0 // indirect

require github.com/chai2010/gettext-go v1.0.2 // indirect

require github.com/containerd/containerd/api v1.8.0 // indirect

require github.com/containerd/errdefs v1.0.0 // indirect

require github.com/containerd/errdefs/pkg v0.3.0 // indirect

require github.com/containerd/log v0.1.0 // indirect

require github.com/containerd/ttrpc v1.2.6 // indirect

require github.com/containerd/typeurl/v2 v2.2.2 // indirect

require github.com/coreos/go-semver v0.3.1 // indirect

require github.com/davecgh/go-spew v1.1.1 // indirect

require github.com/euank/go-kmsg-parser v2.0.0+incompatible // indirect

require github.com/exponent-io/jsonpath v0.0.0-20210407135951-1de76d718b3f // indirect

require github.com/fatih/camelcase v1.0.0 // indirect

require github.com/felixge/httpsnoop v1.0.4 // indirect

require github.com/fxamacker/cbor/v2 v2.9.0 // indirect

require github.com/go-errors/errors v1.4.2 // indirect

require github.com/go-logr/stdr v1.2.2 // indirect

require github.com/go-logr/zapr v1.3.0 // indirect

require github.com/go-openapi/jsonpointer v0.21.0 // indirect

require github.com/go-openapi/swag v0.23.0 // indirect

require github.com/golang/protobuf v1.5.4 // indirect

require github.com/google/btree v1.1.3 // indirect

require github.com/gorilla/websocket v1.5.4-0.20250319132907-e064f32e3674 // indirect

require github.com/gregjones/httpcache v0.0.0-20190611155906-901d90724c79 // indirect

require github.com/grpc-ecosystem/go-grpc-prometheus v1.2.0 // indirect

require github.com/grpc-ecosystem/grpc-gateway/v2 v2.26.3 // indirect

require github.com/inconshreveable/mousetrap v1.1.0 // indirect

require github.com/jonboulle/clockwork v0.5.0 // indirect

require github.com/josharian/intern v1.0.0 // indirect

require github.com/json-iterator/go v1.1.12 // indirect

require github.com/karrick/godirwalk v1.17.0 // indirect

require github.com/kylelemons/godebug v1.1.0 // indirect

require github.com/liggitt/tabwriter v0.0.0-20181228230101-89fcab3d43de // indirect

require github.com/mailru/easyjson v0.7.7 // indirect

require github.com/mistifyio/go-zfs v2.1.2-0.20190413222219-f784269be439+incompatible // indirect

require github.com/mitchellh/go-wordwrap v1.0.1 // indirect

require github.com/moby/spdystream v0.5.0 // indirect

require github.com/moby/sys/mountinfo v0.7.2 // indirect

require github.com/moby/term v0.5.0 // indirect

require github.com/modern-go/concurrent v0.0.0-20180306012644-bacd9c7ef1dd // indirect

require github.com/modern-go/reflect2 v1.0.3-0.20250322232337-35a7c28c31ee // indirect

require github.com/mohae/deepcopy v0.0.0-20170929034955-c48cc78d4826 // indirect

require github.com/monochromegane/go-gitignore v0.0.0-20200626010858-205db1a8cc00 // indirect

require github.com/mxk/go-flowrate v0.0.0-20140419014527-cca7078d478f // indirect

require github.com/opencontainers/go-digest v1.0.0 // indirect

require github.com/opencontainers/image-spec v1.1.1 // indirect

require github.com/opencontainers/runtime-spec v1.2.0 // indirect

require github.com/peterbourgon/diskv v2.0.1+incompatible // indirect

require github.com/pkg/errors v0.9.1 // indirect

require github.com/pquerna/cachecontrol v0.1.0 // indirect

require github.com/prometheus/procfs v0.15.1 // indirect

require github.com/russross/blackfriday/v2 v2.1.0 // indirect

require github.com/sirupsen/logrus v1.9.3 // indirect

require github.com/stoewer/go-strcase v1.3.0 // indirect

require github.com/x448/float16 v0.8.4 // indirect

require github.com/xlab/treeprint v1.2.0 // indirect

require go.opentelemetry.io/auto/sdk v1.1.0 // indirect

require go.opentelemetry.io/contrib/instrumentation/google.golang.org/grpc/otelgrpc v0.60.0 // indirect

require go.opentelemetry.io/otel/exporters/otlp/otlptrace v1.34.0 // indirect

require go.uber.org/multierr v1.11.0 // indirect

require go.yaml.in/yaml/v3 v3.0.4 // indirect

require golang.org/x/exp v0.0.0-20240719175910-8a7402abbf56 // indirect

require golang.org/x/text v0.23.0 // indirect

require google.golang.org/genproto/googleapis/api v0.0.0-20250303144028-a0af3efb3deb // indirect

require gopkg.in/inf.v0 v0.9.1 // indirect

require gopkg.in/natefinch/lumberjack.v2 v2.2.1 // indirect

require gopkg.in/yaml.v3 v3.0.1 // indirect

require sigs.k8s.io/apiserver-network-proxy/konnectivity-client v0.31.2 // indirect

require sigs.k8s.io/kustomize/api v0.20.1 // indirect

require sigs.k8s.io/kustomize/kustomize/v5 v5.7.1 // indirect

require (
	k8s.io/client-go v0.34.4
	k8s.io/component-base v0.34.4
	k8s.io/kubectl v0.0.0
	sigs.k8s.io/kustomize/kyaml v0.20.1 // indirect
)

require (
	k8s.io/api v0.34.4 // indirect
	k8s.io/apiextensions-apiserver v0.0.0 // indirect
	k8s.io/apimachinery v0.34.4 // indirect
	k8s.io/apiserver v0.34.4 // indirect
	k8s.io/cli-runtime v0.34.4 // indirect
	k8s.io/cloud-provider v0.34.4 // indirect
	k8s.io/cluster-bootstrap v0.0.0 // indirect
	k8s.io/component-helpers v0.34.4 // indirect
	k8s.io/controller-manager v0.34.4 // indirect
	k8s.io/cri-api v0.34.4 // indirect
	k8s.io/cri-client v0.0.0 // indirect
	k8s.io/csi-translation-lib v0.0.0 // indirect
	k8s.io/dynamic-resource-allocation v0.0.0 // indirect
	k8s.io/endpointslice v0.0.0 // indirect
	k8s.io/externaljwt v0.0.0 // indirect
	k8s.io/kms v0.34.4 // indirect
	k8s.io/kube-aggregator v0.0.0 // indirect
	k8s.io/kube-controller-manager v0.0.0 // indirect
	k8s.io/kube-scheduler v0.0.0 // indirect
	k8s.io/kubelet v0.34.4 // indirect
	k8s.io/metrics v0.34.4 // indirect
	k8s.io/mount-utils v0.0.0 // indirect
	k8s.io/pod-security-admission v0.0.0 // indirect
)

replace k8s.io/api => k8s.io/api v0.34.4

replace k8s.io/apiextensions-apiserver => k8s.io/apiextensions-apiserver v0.34.4

replace k8s.io/apimachinery => k8s.io/apimachinery v0.34.4

replace k8s.io/apiserver => k8s.io/apiserver v0.34.4

replace k8s.io/cli-runtime => k8s.io/cli-runtime v0.34.4

replace k8s.io/client-go => k8s.io/client-go v0.34.4

replace k8s.io/cloud-provider => k8s.io/cloud-provider v0.34.4

replace k8s.io/cluster-bootstrap => k8s.io/cluster-bootstrap v0.34.4

replace k8s.io/code-generator => k8s.io/code-generator v0.34.4

replace k8s.io/component-base => k8s.io/component-base v0.34.4

replace k8s.io/component-helpers => k8s.io/component-helpers v0.34.4

replace k8s.io/controller-manager => k8s.io/controller-manager v0.34.4

replace k8s.io/cri-api => k8s.io/cri-api v0.34.4

replace k8s.io/cri-client => k8s.io/cri-client v0.34.4

replace k8s.io/csi-translation-lib => k8s.io/csi-translation-lib v0.34.4

replace k8s.io/dynamic-resource-allocation => k8s.io/dynamic-resource-allocation v0.34.4

replace k8s.io/endpointslice => k8s.io/endpointslice v0.34.4

replace k8s.io/externaljwt => k8s.io/externaljwt v0.34.4

replace k8s.io/kms => k8s.io/kms v0.34.4

replace k8s.io/kube-aggregator => k8s.io/kube-aggregator v0.34.4

replace k8s.io/kube-controller-manager => k8s.io/kube-controller-manager v0.34.4

replace k8s.io/kube-proxy => k8s.io/kube-proxy v0.34.4

replace k8s.io/kube-scheduler => k8s.io/kube-scheduler v0.34.4

replace k8s.io/kubectl => k8s.io/kubectl v0.34.4

replace k8s.io/kubelet => k8s.io/kubelet v0.34.4

replace k8s.io/metrics => k8s.io/metrics v0.34.4

replace k8s.io/mount-utils => k8s.io/mount-utils v0.34.4

replace k8s.io/pod-security-admission => k8s.io/pod-security-admission v0.34.4

replace k8s.io/sample-apiserver => k8s.io/sample-apiserver v0.34.4

replace k8s.io/sample-cli-plugin => k8s.io/sample-cli-plugin v0.34.4

replace k8s.io/sample-controller => k8s.io/sample-controller v0.34.4
