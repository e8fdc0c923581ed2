// Command tekton-check judges objects as Tekton's webhooks do: strict decoding, their defaults, their validation
// (tektoncd/pipeline v1.9.0 and tektoncd/triggers v0.35.0, cmd/webhook/main.go, and
// knative.dev/pkg/webhook/resourcesemantics). It reads a JSON list of objects, and prints what is said of each;
// nothing where it is accepted.
//
// With "events", it reads objects, secrets and webhooks, and prints what the listener among the objects creates for
// each webhook: pkg/sink answers it, with the core interceptors (cmd/eventlistenersink and cmd/interceptors).
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"

	v1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	"github.com/tektoncd/triggers/pkg/apis/triggers/contexts"
	"github.com/tektoncd/triggers/pkg/apis/triggers/v1alpha1"
	triggers "github.com/tektoncd/triggers/pkg/apis/triggers/v1beta1"
	listersalpha "github.com/tektoncd/triggers/pkg/client/listers/triggers/v1alpha1"
	listers "github.com/tektoncd/triggers/pkg/client/listers/triggers/v1beta1"
	"github.com/tektoncd/triggers/pkg/interceptors/server"
	"github.com/tektoncd/triggers/pkg/sink"
	"go.uber.org/zap"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"knative.dev/pkg/apis"
)

type crd interface {
	apis.Defaultable
	apis.Validatable
}

func kind(name string) crd {
	switch name {
	case "tekton.dev/v1 Task":
		return &v1.Task{}
	case "tekton.dev/v1 Pipeline":
		return &v1.Pipeline{}
	case "tekton.dev/v1 PipelineRun":
		return &v1.PipelineRun{}
	case "triggers.tekton.dev/v1beta1 EventListener":
		return &triggers.EventListener{}
	case "triggers.tekton.dev/v1beta1 TriggerBinding":
		return &triggers.TriggerBinding{}
	case "triggers.tekton.dev/v1beta1 TriggerTemplate":
		return &triggers.TriggerTemplate{}
	}
	return nil
}

// admit returns the object as the API server keeps it.
func admit(raw json.RawMessage) (crd, error) {
	var head metav1.TypeMeta
	if err := json.Unmarshal(raw, &head); err != nil {
		return nil, err
	}
	object := kind(head.APIVersion + " " + head.Kind)
	if object == nil {
		return nil, fmt.Errorf("no kind %s of %s", head.Kind, head.APIVersion)
	}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(object); err != nil {
		return nil, err
	}
	ctx := contexts.WithUpgradeViaDefaulting(apis.WithinCreate(context.Background()))
	object.SetDefaults(ctx)
	if err := object.Validate(ctx); err != nil {
		return nil, err
	}
	return object, nil
}

func judge(objects []json.RawMessage) []string {
	answers := make([]string, 0, len(objects))
	for _, one := range objects {
		answer := ""
		if _, err := admit(one); err != nil {
			answer = err.Error()
		}
		answers = append(answers, answer)
	}
	return answers
}

// world is what the listener finds in its cluster; secrets are called NAMESPACE/NAME/KEY.
type world struct {
	Objects []json.RawMessage `json:"objects"`
	Secrets map[string]string `json:"secrets"`
	Events  []struct {
		Headers map[string]string `json:"headers"`
		Body    string            `json:"body"`
	} `json:"events"`
}

func (w world) Get(_ context.Context, namespace string, ref *triggers.SecretRef) ([]byte, error) {
	name := strings.Join([]string{namespace, ref.SecretName, ref.SecretKey}, "/")
	if found, ok := w.Secrets[name]; ok {
		return []byte(found), nil
	}
	return nil, fmt.Errorf("no secret %s", name)
}

// core answers requests to the core interceptors without a network.
type core struct{ *server.Server }

func (c core) RoundTrip(request *http.Request) (*http.Response, error) {
	answer := httptest.NewRecorder()
	c.ServeHTTP(answer, request)
	return answer.Result(), nil
}

type kinds struct {
	discovery.ServerResourcesInterface
}

func (kinds) ServerResourcesForGroupVersion(version string) (*metav1.APIResourceList, error) {
	if version != "tekton.dev/v1" {
		return nil, fmt.Errorf("no %s", version)
	}
	runs := metav1.APIResource{Name: "pipelineruns", Kind: "PipelineRun", Namespaced: true}
	return &metav1.APIResourceList{GroupVersion: version, APIResources: []metav1.APIResource{runs}}, nil
}

func (w world) listener() (sink.Sink, error) {
	store := func() cache.Indexer {
		return cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	}
	all, bindings, templates, clustered := store(), store(), store(), store()
	found := sink.Sink{}
	for _, raw := range w.Objects {
		object, err := admit(raw)
		if err != nil {
			return found, err
		}
		switch one := object.(type) {
		case *triggers.EventListener:
			found.EventListenerName, found.EventListenerNamespace = one.Name, one.Namespace
			err = all.Add(one)
		case *triggers.TriggerBinding:
			err = bindings.Add(one)
		case *triggers.TriggerTemplate:
			err = templates.Add(one)
		}
		if err != nil {
			return found, err
		}
	}
	for _, name := range []string{"cel", "github", "gitlab"} {
		one := &v1alpha1.ClusterInterceptor{ObjectMeta: metav1.ObjectMeta{Name: name}}
		one.Spec.ClientConfig.URL = apis.HTTP("core").ResolveReference(&apis.URL{Path: name})
		if err := clustered.Add(one); err != nil {
			return found, err
		}
	}
	recorder, err := sink.NewRecorder()
	if err != nil {
		return found, err
	}
	answering, err := server.NewWithCoreInterceptors(w, zap.NewNop().Sugar())
	if err != nil {
		return found, err
	}
	found.HTTPClient = &http.Client{Transport: core{answering}}
	found.DiscoveryClient, found.Recorder = kinds{}, recorder
	found.Logger, found.EventRecorder = zap.NewNop().Sugar(), record.NewFakeRecorder(100)
	found.PayloadValidation, found.WGProcessTriggers = true, &sync.WaitGroup{}
	found.EventListenerLister = listers.NewEventListenerLister(all)
	found.TriggerLister = listers.NewTriggerLister(store())
	found.TriggerBindingLister = listers.NewTriggerBindingLister(bindings)
	found.TriggerTemplateLister = listers.NewTriggerTemplateLister(templates)
	found.ClusterTriggerBindingLister = listers.NewClusterTriggerBindingLister(store())
	found.ClusterInterceptorLister = listersalpha.NewClusterInterceptorLister(clustered)
	return found, nil
}

func (w world) created() ([][]runtime.Object, error) {
	listener, err := w.listener()
	if err != nil {
		return nil, err
	}
	answers := [][]runtime.Object{}
	for _, event := range w.Events {
		made, lock := []runtime.Object{}, sync.Mutex{}
		client := fake.NewSimpleDynamicClient(runtime.NewScheme())
		client.PrependReactor("create", "*", func(action testing.Action) (bool, runtime.Object, error) {
			object := action.(testing.CreateAction).GetObject()
			lock.Lock()
			defer lock.Unlock()
			made = append(made, object)
			return true, object, nil
		})
		listener.DynamicClient = client
		request := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(event.Body))
		for name, value := range event.Headers {
			request.Header.Set(name, value)
		}
		answer := httptest.NewRecorder()
		listener.IsValidPayload(http.HandlerFunc(listener.HandleEvent)).ServeHTTP(answer, request)
		listener.WGProcessTriggers.Wait()
		if answer.Code != http.StatusAccepted {
			return nil, errors.New(answer.Body.String())
		}
		answers = append(answers, made)
	}
	return answers, nil
}

func answer() (any, error) {
	decoder := json.NewDecoder(os.Stdin)
	if len(os.Args) > 1 && os.Args[1] == "events" {
		var given world
		if err := decoder.Decode(&given); err != nil {
			return nil, err
		}
		return given.created()
	}
	var objects []json.RawMessage
	if err := decoder.Decode(&objects); err != nil {
		return nil, err
	}
	return judge(objects), nil
}

func main() {
	answers, err := answer()
	if err == nil {
		err = json.NewEncoder(os.Stdout).Encode(answers)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
}
