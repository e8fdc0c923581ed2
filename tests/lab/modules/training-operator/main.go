// Command training-operator runs the controllers of the training operator as its own command does
// (training-operator v1.9.3, cmd/training-operator.v1/main.go), without webhooks, metrics and the MPIJob of v1,
// whose kind the MPI operator has.
package main

import (
	"flag"
	"fmt"

	"go.uber.org/zap/zapcore"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metrics "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	own "github.com/kubeflow/training-operator/pkg/apis/kubeflow.org/v1"
	"github.com/kubeflow/training-operator/pkg/config"
	"github.com/kubeflow/training-operator/pkg/controller.v1"
	"github.com/kubeflow/training-operator/pkg/controller.v1/common"
)

var kinds = []string{own.PyTorchJobKind, own.TFJobKind, own.XGBoostJobKind, own.JAXJobKind, own.PaddleJobKind}

func main() {
	// The library under the controllers has registered --kubeconfig.
	health := flag.String("health", "127.0.0.1:8081", "where /readyz answers")
	flag.Parse()
	ctrl.SetLogger(zap.New(zap.Level(zapcore.WarnLevel)))
	if err := run(flag.Lookup("kubeconfig").Value.String(), *health); err != nil {
		klog.Fatal(err)
	}
}

func run(kubeconfig, health string) error {
	access, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	access.QPS, access.Burst = 200, 400
	config.Config.PyTorchInitContainerImage = config.PyTorchInitContainerImageDefault
	config.Config.PyTorchInitContainerTemplateFile = config.PyTorchInitContainerTemplateFileDefault
	config.Config.PyTorchInitContainerMaxTries = config.PyTorchInitContainerMaxTriesDefault
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, own.AddToScheme} {
		if err := add(scheme); err != nil {
			return err
		}
	}
	manager, err := ctrl.NewManager(access, ctrl.Options{
		Scheme: scheme, Metrics: metrics.Options{BindAddress: "0"}, HealthProbeBindAddress: health,
	})
	if err != nil {
		return err
	}
	if err := manager.AddReadyzCheck("readyz", healthz.Ping); err != nil {
		return err
	}
	for _, kind := range kinds {
		setup := controller_v1.SupportedSchemeReconciler[kind]
		if err := setup(manager, common.GenNonGangSchedulerSetupFunc(), 2); err != nil {
			return fmt.Errorf("%s: %w", kind, err)
		}
	}
	return manager.Start(ctrl.SetupSignalHandler())
}
