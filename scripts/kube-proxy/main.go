// Prints what a user can set of this kube-proxy, as one JSON object: its flags, configuration fields and feature gates.
package main

import (
	"encoding/json"
	"os"
	"reflect"
	"sort"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	cliflag "k8s.io/component-base/cli/flag"
	"k8s.io/component-base/logs"
	_ "k8s.io/component-base/logs/json/register" // the flags of the JSON format
	"k8s.io/component-base/version/verflag"
	"k8s.io/kube-proxy/config/v1alpha1"
	"k8s.io/kubernetes/cmd/kube-proxy/app"
)

type flag struct {
	Name       string `json:"name"`
	Type       string `json:"type"`
	Default    string `json:"default"`
	Deprecated bool   `json:"deprecated,omitempty"`
}

type gate struct {
	Name    string `json:"name"`
	Stage   string `json:"stage"`
	Default bool   `json:"default"`
	Locked  bool   `json:"locked"`
}

// prepared does to the command what k8s.io/component-base/cli.Run does before it runs it.
func prepared(command *cobra.Command) *pflag.FlagSet {
	command.SetGlobalNormalizationFunc(cliflag.WordSepNormalizeFunc)
	logs.AddFlags(command.PersistentFlags(), logs.SkipLoggingConfigurationFlags())
	verflag.AddFlags(command.PersistentFlags())
	command.InitDefaultHelpFlag()
	all := pflag.NewFlagSet("all", pflag.ContinueOnError)
	all.AddFlagSet(command.Flags())
	return all
}

func flags() []flag {
	found := []flag{}
	prepared(app.NewProxyCommand()).VisitAll(func(f *pflag.Flag) {
		found = append(found, flag{f.Name, f.Value.Type(), f.DefValue, f.Deprecated != ""})
	})
	return found
}

// fields lists the leaves of a struct by their JSON names; a type that decodes itself is a leaf.
func fields(t reflect.Type, prefix string) []string {
	found := []string{}
	for i := 0; i < t.NumField(); i++ {
		field := t.Field(i)
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name == "kind" || name == "apiVersion" {
			continue
		}
		inner := field.Type
		_, decodes := reflect.New(inner).Interface().(json.Unmarshaler)
		if inner.Kind() != reflect.Struct || decodes {
			found = append(found, prefix+name)
		} else if strings.Contains(options, "inline") || name == "" {
			found = append(found, fields(inner, prefix)...)
		} else {
			found = append(found, fields(inner, prefix+name+".")...)
		}
	}
	return found
}

func gates() []gate {
	found := []gate{}
	for name, spec := range utilfeature.DefaultMutableFeatureGate.GetAll() {
		stage := strings.ToLower(string(spec.PreRelease))
		if stage == "" {
			stage = "stable"
		}
		found = append(found, gate{string(name), stage, spec.Default, spec.LockToDefault})
	}
	sort.Slice(found, func(i, j int) bool { return found[i].Name < found[j].Name })
	return found
}

func main() {
	encoder := json.NewEncoder(os.Stdout)
	encoder.Encode(map[string]any{
		"flags":        flags(),
		"fields":       fields(reflect.TypeOf(v1alpha1.KubeProxyConfiguration{}), ""),
		"featureGates": gates(),
	})
}
