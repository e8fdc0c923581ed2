// Command mpi-operator runs the controller of the MPI operator as its own command does (mpi-operator v0.8.2,
// cmd/mpi-operator/app/server.go), without the election of a leader and without the fixed port 8080.
package main

import (
	"context"
	"flag"
	"net/http"
	"os"
	"os/signal"
	"syscall"

	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"

	"github.com/kubeflow/mpi-operator/cmd/mpi-operator/app/options"
	clientset "github.com/kubeflow/mpi-operator/pkg/client/clientset/versioned"
	ownscheme "github.com/kubeflow/mpi-operator/pkg/client/clientset/versioned/scheme"
	own "github.com/kubeflow/mpi-operator/pkg/client/informers/externalversions"
	"github.com/kubeflow/mpi-operator/pkg/controller"
)

func main() {
	kubeconfig := flag.String("kubeconfig", "", "path of the kubeconfig")
	health := flag.String("health", "127.0.0.1:8080", "where /readyz answers")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *kubeconfig, *health); err != nil {
		klog.Fatal(err)
	}
}

func run(ctx context.Context, kubeconfig, health string) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	config.QPS, config.Burst = 200, 400
	kube, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	jobs, err := clientset.NewForConfig(config)
	if err != nil {
		return err
	}
	if err := ownscheme.AddToScheme(scheme.Scheme); err != nil {
		return err
	}
	option := options.NewServerOption()
	option.ControllerRateLimit, option.ControllerBurst = 100, 200
	theirs, ours := informers.NewSharedInformerFactory(kube, 0), own.NewSharedInformerFactory(jobs, 0)
	core := theirs.Core().V1()
	one, err := controller.NewMPIJobController(
		ctx, kube, jobs, nil, nil,
		core.ConfigMaps(), core.Secrets(), core.Services(), theirs.Batch().V1().Jobs(), core.Pods(),
		theirs.Scheduling().V1().PriorityClasses(), ours.Kubeflow().V2beta1().MPIJobs(), option,
	)
	if err != nil {
		return err
	}
	theirs.Start(ctx.Done())
	ours.Start(ctx.Done())
	mux := http.NewServeMux()
	mux.HandleFunc("/readyz", func(answer http.ResponseWriter, _ *http.Request) { answer.WriteHeader(http.StatusOK) })
	go func() { klog.Fatal((&http.Server{Addr: health, Handler: mux}).ListenAndServe()) }()
	return one.Run(4, ctx.Done())
}
