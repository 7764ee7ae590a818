// SPDX-License-Identifier: Apache-2.0

// decode FILE...: each YAML document, decoded strictly into its published Go type: a field that is unknown, repeated or in another
// case is an error (yaml.UnmarshalStrict alone ignores case). Built once for each version of k8s.io/api by tests/fetch kubernetes.
// Exit status 1 if a document has an error.
package main

import (
	"errors"
	"fmt"
	"os"
	"regexp"

	apps "k8s.io/api/apps/v1"
	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	policy "k8s.io/api/policy/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

// types has a new object of each kind that the project uses.
var types = map[meta.TypeMeta]func() any{
	{APIVersion: "v1", Kind: "Namespace"}:                       func() any { return new(core.Namespace) },
	{APIVersion: "v1", Kind: "ConfigMap"}:                       func() any { return new(core.ConfigMap) },
	{APIVersion: "v1", Kind: "Service"}:                         func() any { return new(core.Service) },
	{APIVersion: "apps/v1", Kind: "DaemonSet"}:                  func() any { return new(apps.DaemonSet) },
	{APIVersion: "apps/v1", Kind: "StatefulSet"}:                func() any { return new(apps.StatefulSet) },
	{APIVersion: "batch/v1", Kind: "Job"}:                       func() any { return new(batch.Job) },
	{APIVersion: "policy/v1", Kind: "PodDisruptionBudget"}:      func() any { return new(policy.PodDisruptionBudget) },
	{APIVersion: "networking.k8s.io/v1", Kind: "NetworkPolicy"}: func() any { return new(networking.NetworkPolicy) },
}

// content is a line that is neither empty nor a comment: a template whose part is off leaves only comments.
var content = regexp.MustCompile(`(?m)^[^#\s]`)

func decode(document []byte) error {
	var kind meta.TypeMeta
	if err := yaml.Unmarshal(document, &kind); err != nil {
		return err
	}
	object, known := types[kind]
	if !known {
		return fmt.Errorf("apiVersion %q, kind %q has no type here", kind.APIVersion, kind.Kind)
	}
	text, err := yaml.YAMLToJSONStrict(document)
	if err != nil {
		return err
	}
	wrong, err := json.UnmarshalStrict(text, object())
	return errors.Join(append(wrong, err)...)
}

func main() {
	decoded, status := 0, 0
	for _, path := range os.Args[1:] {
		text, err := os.ReadFile(path)
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		for _, document := range regexp.MustCompile(`(?m)^---\s*$`).Split(string(text), -1) {
			if !content.MatchString(document) {
				continue
			}
			if err := decode([]byte(document)); err != nil {
				fmt.Printf("%s: %v\n", path, err)
				status = 1
			}
			decoded++
		}
	}
	fmt.Printf("%d documents\n", decoded)
	os.Exit(status)
}
