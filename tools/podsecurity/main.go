// podsecurity tells how pods break the `restricted` Pod Security Standard, by the rules the API server itself uses.
//
// Standard input: a JSON list of pods, or of their templates (metadata and spec). Standard output: a JSON list of
// {"pod": NAME, "check": ID, "detail": TEXT}, empty when nothing is broken. Exit 2 when the input cannot be read.
package main

import (
	"encoding/json"
	"fmt"
	"os"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
)

type violation struct {
	Pod    string `json:"pod"`
	Check  string `json:"check"`
	Detail string `json:"detail"`
}

func main() {
	found, err := run()
	if err == nil {
		err = json.NewEncoder(os.Stdout).Encode(found)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "podsecurity:", err)
		os.Exit(2)
	}
}

func run() ([]violation, error) {
	var pods []corev1.PodTemplateSpec
	if err := json.NewDecoder(os.Stdin).Decode(&pods); err != nil {
		return nil, err
	}
	latest := api.LevelVersion{Level: api.LevelRestricted, Version: api.LatestVersion()}
	evaluator, err := policy.NewEvaluator(policy.DefaultChecks())
	if err != nil {
		return nil, err
	}
	found := []violation{}
	for _, pod := range pods {
		for _, result := range evaluator.EvaluatePod(latest, &pod.ObjectMeta, &pod.Spec) {
			if !result.Allowed {
				found = append(found, violation{pod.Name, result.ForbiddenReason, result.ForbiddenDetail})
			}
		}
	}
	return found, nil
}
