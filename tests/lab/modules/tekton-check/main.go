// Command tekton-check judges objects as Tekton's webhook does: strict decoding, its defaults, its validation
// (tektoncd/pipeline v1.9.0, cmd/webhook/main.go and knative.dev/pkg/webhook/resourcesemantics). It reads a JSON
// list of objects, and prints what is said of each; nothing where it is accepted.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"

	v1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	"knative.dev/pkg/apis"
)

type crd interface {
	apis.Defaultable
	apis.Validatable
}

func kind(name string) crd {
	switch name {
	case "Task":
		return &v1.Task{}
	case "Pipeline":
		return &v1.Pipeline{}
	case "PipelineRun":
		return &v1.PipelineRun{}
	}
	return nil
}

func judge(raw json.RawMessage) string {
	var head struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
	}
	if err := json.Unmarshal(raw, &head); err != nil {
		return err.Error()
	}
	object := kind(head.Kind)
	if object == nil || head.APIVersion != "tekton.dev/v1" {
		return fmt.Sprintf("no kind %s of %s", head.Kind, head.APIVersion)
	}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(object); err != nil {
		return err.Error()
	}
	ctx := apis.WithinCreate(context.Background())
	object.SetDefaults(ctx)
	if err := object.Validate(ctx); err != nil {
		return err.Error()
	}
	return ""
}

func main() {
	var objects []json.RawMessage
	if err := json.NewDecoder(os.Stdin).Decode(&objects); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	answers := make([]string, 0, len(objects))
	for _, one := range objects {
		answers = append(answers, judge(one))
	}
	if err := json.NewEncoder(os.Stdout).Encode(answers); err != nil {
		os.Exit(2)
	}
}
