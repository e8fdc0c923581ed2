// Command flux-check reads and judges objects as Flux's controllers do (kustomize-controller v1.9.4). It reads JSON:
// "objects" are decoded strictly into the types of Flux's API, and "checks" are health checks of a Kustomization
// with an object each, evaluated by Flux's own evaluator (fluxcd/pkg runtime/cel). It prints what is said of each.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/kustomize"
	"github.com/fluxcd/pkg/runtime/cel"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

type check struct {
	Check  kustomize.CustomHealthCheck `json:"check"`
	Object json.RawMessage             `json:"object"`
}

type questions struct {
	Objects []json.RawMessage `json:"objects"`
	Checks  []check           `json:"checks"`
}

func decoded(raw json.RawMessage) string {
	var head struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
	}
	if err := json.Unmarshal(raw, &head); err != nil {
		return err.Error()
	}
	targets := map[string]any{
		kustomizev1.GroupVersion.String() + "/Kustomization": &kustomizev1.Kustomization{},
		sourcev1.GroupVersion.String() + "/GitRepository":    &sourcev1.GitRepository{},
		sourcev1.GroupVersion.String() + "/OCIRepository":    &sourcev1.OCIRepository{},
	}
	target := targets[head.APIVersion+"/"+head.Kind]
	if target == nil {
		return fmt.Sprintf("no kind %s of %s", head.Kind, head.APIVersion)
	}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(target); err != nil {
		return err.Error()
	}
	return ""
}

func judged(one check) string {
	evaluator, err := cel.NewStatusEvaluator(&one.Check.HealthCheckExpressions)
	if err != nil {
		return "error: " + err.Error()
	}
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON(one.Object); err != nil {
		return "error: " + err.Error()
	}
	result, err := evaluator.Evaluate(context.Background(), object)
	if err != nil {
		return "error: " + err.Error()
	}
	return string(result.Status)
}

func main() {
	var asked questions
	if err := json.NewDecoder(os.Stdin).Decode(&asked); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	answers := struct {
		Objects []string `json:"objects"`
		Checks  []string `json:"checks"`
	}{[]string{}, []string{}}
	for _, one := range asked.Objects {
		answers.Objects = append(answers.Objects, decoded(one))
	}
	for _, one := range asked.Checks {
		answers.Checks = append(answers.Checks, judged(one))
	}
	if err := json.NewEncoder(os.Stdout).Encode(answers); err != nil {
		os.Exit(2)
	}
}
