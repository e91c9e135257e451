// cyclonus tells what traffic NetworkPolicies let through, by the evaluator of github.com/mattfenwick/cyclonus: what its
// `analyze --mode query-traffic` asks, as JSON instead of tables.
//
// Standard input: {"policies": [NetworkPolicy...], "traffic": [matcher.Traffic...]}. Standard output: a JSON list with
// {"ingress": BOOL, "egress": BOOL} for each traffic, in order. Exit 2 when the input cannot be read.
package main

import (
	"encoding/json"
	"fmt"
	"os"

	"github.com/mattfenwick/cyclonus/pkg/matcher"
	networkingv1 "k8s.io/api/networking/v1"
)

type question struct {
	Policies []*networkingv1.NetworkPolicy `json:"policies"`
	Traffic  []*matcher.Traffic            `json:"traffic"`
}

type verdict struct {
	Ingress bool `json:"ingress"`
	Egress  bool `json:"egress"`
}

func main() {
	verdicts, err := run()
	if err == nil {
		err = json.NewEncoder(os.Stdout).Encode(verdicts)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "cyclonus:", err)
		os.Exit(2)
	}
}

func run() ([]verdict, error) {
	var asked question
	decoder := json.NewDecoder(os.Stdin)
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&asked); err != nil {
		return nil, err
	}
	policies := matcher.BuildNetworkPolicies(false, asked.Policies)
	verdicts := []verdict{}
	for _, traffic := range asked.Traffic {
		result := policies.IsTrafficAllowed(traffic)
		verdicts = append(verdicts, verdict{result.Ingress.IsAllowed(), result.Egress.IsAllowed()})
	}
	return verdicts, nil
}
