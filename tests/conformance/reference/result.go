package main

import (
	"cmp"
	"fmt"
	"math"
	"regexp"
	"slices"
	"sort"

	corev1 "k8s.io/api/core/v1"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"
	"sigs.k8s.io/karpenter/pkg/controllers/provisioning/scheduling"
	core "sigs.k8s.io/karpenter/pkg/scheduling"
)

// result is the `result` of docs/plan.md, section 2; `labels` of a claim are those of the NodeClaim made of it.
type result struct {
	NewNodeClaims []claim           `json:"newNodeClaims"`
	ExistingNodes []existing        `json:"existingNodes"`
	Errors        map[string]string `json:"errors"`
	Deferred      []string          `json:"deferred,omitempty"`
	Ignored       map[string]string `json:"ignored,omitempty"`
	Unprocessed   []string          `json:"unprocessed,omitempty"`
	Error         string            `json:"error,omitempty"`
}

type claim struct {
	NodePool             string                 `json:"nodePool"`
	Pods                 []string               `json:"pods"`
	InstanceTypes        []string               `json:"instanceTypes"`
	Requirements         map[string]requirement `json:"requirements"`
	Requests             map[string]string      `json:"requests"`
	CheapestPrice        float64                `json:"cheapestPrice"`
	CheapestInstanceType string                 `json:"cheapestInstanceType"`
	LaunchCapacityTypes  []string               `json:"launchCapacityTypes"`
	MinValuesRelaxed     bool                   `json:"minValuesRelaxed,omitempty"`
	Labels               map[string]string      `json:"labels"`
}

type existing struct {
	Name string   `json:"name"`
	Pods []string `json:"pods"`
}

type requirement struct {
	Operator  string   `json:"operator"`
	Values    []string `json:"values,omitempty"`
	MinValues *int     `json:"minValues,omitempty"`
	Gte       string   `json:"gte,omitempty"`
	Lte       string   `json:"lte,omitempty"`
}

var unlisted = []string{corev1.LabelHostname, v1.NodeRegisteredLabelKey, v1.NodeInitializedLabelKey}

func resultOf(found scheduling.Results, asked []*corev1.Pod, ignored map[string]string) result {
	made := result{NewNodeClaims: []claim{}, ExistingNodes: []existing{}, Errors: map[string]string{}, Ignored: ignored}
	seen := map[string]bool{}
	for _, each := range found.NewNodeClaims {
		made.NewNodeClaims = append(made.NewNodeClaims, claimOf(each))
		note(seen, each.Pods)
	}
	slices.SortFunc(made.NewNodeClaims, func(a, b claim) int {
		return cmp.Or(cmp.Compare(a.NodePool, b.NodePool), cmp.Compare(a.Pods[0], b.Pods[0]))
	})
	for _, each := range found.ExistingNodes {
		if len(each.Pods) > 0 {
			made.ExistingNodes = append(made.ExistingNodes, existing{each.Name(), namesOf(each.Pods)})
			note(seen, each.Pods)
		}
	}
	slices.SortFunc(made.ExistingNodes, func(a, b existing) int { return cmp.Compare(a.Name, b.Name) })
	for pod, err := range found.PodErrors {
		made.Errors[pod.Name] = err.Error()
		if scheduling.IsReservedOfferingError(err) {
			made.Deferred = append(made.Deferred, pod.Name)
		}
	}
	sort.Strings(made.Deferred)
	for _, pod := range asked {
		if !seen[pod.Name] && made.Errors[pod.Name] == "" && ignored[pod.Name] == "" {
			made.Unprocessed = append(made.Unprocessed, pod.Name)
		}
	}
	sort.Strings(made.Unprocessed)
	return made
}

func note(seen map[string]bool, pods []*corev1.Pod) {
	for _, pod := range pods {
		seen[pod.Name] = true
	}
}

func namesOf(pods []*corev1.Pod) []string {
	names := []string{}
	for _, pod := range pods {
		names = append(names, pod.Name)
	}
	sort.Strings(names)
	return names
}

func claimOf(given *scheduling.NodeClaim) claim {
	types := slices.Clone(given.InstanceTypeOptions)
	prices := map[string]float64{}
	capacityTypes := map[string]bool{}
	for _, each := range types {
		prices[each.Name] = math.MaxFloat64
		for _, offer := range each.Offerings.Available().Compatible(given.Requirements) {
			prices[each.Name] = min(prices[each.Name], offer.Price)
			capacityTypes[offer.CapacityType()] = true
		}
	}
	slices.SortFunc(types, func(a, b *cloudprovider.InstanceType) int {
		return cmp.Or(cmp.Compare(prices[a.Name], prices[b.Name]), cmp.Compare(a.Name, b.Name))
	})
	made := claim{
		NodePool: given.NodePoolName, Pods: namesOf(given.Pods), Requirements: requirementsOf(given.Requirements),
		Requests: requestsOf(given.Spec.Resources.Requests), CheapestInstanceType: types[0].Name,
		CheapestPrice:       prices[types[0].Name],
		MinValuesRelaxed:    given.Annotations[v1.NodeClaimMinValuesRelaxedAnnotationKey] == "true",
		LaunchCapacityTypes: []string{},
	}
	for _, each := range types {
		made.InstanceTypes = append(made.InstanceTypes, each.Name)
	}
	for name := range capacityTypes {
		made.LaunchCapacityTypes = append(made.LaunchCapacityTypes, name)
	}
	sort.Strings(made.LaunchCapacityTypes)
	made.Labels = given.ToNodeClaim().Labels // last: it narrows the requirements
	return made
}

func requestsOf(given corev1.ResourceList) map[string]string {
	made := map[string]string{}
	for name, quantity := range given {
		if name == corev1.ResourceCPU {
			made[string(name)] = fmt.Sprintf("%dm", quantity.MilliValue())
		} else {
			made[string(name)] = fmt.Sprint(quantity.Value())
		}
	}
	return made
}

// Bounds are shown in a requirement's text alone.
var lower, upper = regexp.MustCompile(` >=(-?\d+)`), regexp.MustCompile(` <=(-?\d+)`)

func requirementsOf(given core.Requirements) map[string]requirement {
	made := map[string]requirement{}
	for key, each := range given {
		if slices.Contains(unlisted, key) {
			continue
		}
		values := each.Values()
		sort.Strings(values)
		one := requirement{Operator: string(each.Operator()), Values: values, MinValues: each.MinValues}
		if found := lower.FindStringSubmatch(each.String()); found != nil {
			one.Gte = found[1]
		}
		if found := upper.FindStringSubmatch(each.String()); found != nil {
			one.Lte = found[1]
		}
		made[key] = one
	}
	return made
}
