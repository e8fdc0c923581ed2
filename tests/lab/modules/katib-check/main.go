// Command katib-check judges an Experiment as Katib's webhooks do: strict decoding, their defaults, their validation
// (kubeflow/katib v0.19.0, pkg/webhook/v1beta1/experiment). It reads the Experiment and the values of trials from
// JSON, and prints what is wrong, and the objects that Katib would create for these trials, named trial-0, trial-1 ...
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"

	configv1beta1 "github.com/kubeflow/katib/pkg/apis/config/v1beta1"
	common "github.com/kubeflow/katib/pkg/apis/controller/common/v1beta1"
	experiments "github.com/kubeflow/katib/pkg/apis/controller/experiments/v1beta1"
	"github.com/kubeflow/katib/pkg/controller.v1beta1/experiment/manifest"
	"github.com/kubeflow/katib/pkg/webhook/v1beta1/experiment/validator"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// installed knows every algorithm and collector, as a cluster with Katib's own configuration does.
type installed struct{ manifest.Generator }

func (installed) GetSuggestionConfigData(string) (configv1beta1.SuggestionConfig, error) {
	return configv1beta1.SuggestionConfig{}, nil
}

func (installed) GetEarlyStoppingConfigData(string) (configv1beta1.EarlyStoppingConfig, error) {
	return configv1beta1.EarlyStoppingConfig{}, nil
}

func (installed) GetMetricsCollectorConfigData(common.CollectorKind) (configv1beta1.MetricsCollectorConfig, error) {
	return configv1beta1.MetricsCollectorConfig{}, nil
}

type question struct {
	Experiment json.RawMessage     `json:"experiment"`
	Trials     []map[string]string `json:"trials"`
}

type answer struct {
	Errors []string                     `json:"errors"`
	Trials []*unstructured.Unstructured `json:"trials"`
}

func judge(asked question) (answer, error) {
	found := answer{Errors: []string{}, Trials: []*unstructured.Unstructured{}}
	experiment := &experiments.Experiment{}
	decoder := json.NewDecoder(bytes.NewReader(asked.Experiment))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(experiment); err != nil {
		return found, err
	}
	experiment.SetDefault()
	generator := installed{manifest.New(nil)}
	for _, one := range validator.New(generator).ValidateExperiment(experiment, nil) {
		found.Errors = append(found.Errors, one.Error())
	}
	for number, values := range asked.Trials {
		assignments := []common.ParameterAssignment{}
		for name, value := range values {
			assignments = append(assignments, common.ParameterAssignment{Name: name, Value: value})
		}
		name := fmt.Sprintf("trial-%d", number)
		trial, err := generator.GetRunSpecWithHyperParameters(experiment, name, experiment.Namespace, assignments)
		if err != nil {
			return found, err
		}
		found.Trials = append(found.Trials, trial)
	}
	return found, nil
}

func main() {
	var asked question
	err := json.NewDecoder(os.Stdin).Decode(&asked)
	if err == nil {
		var found answer
		if found, err = judge(asked); err == nil {
			err = json.NewEncoder(os.Stdout).Encode(found)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
}
