package main

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/client-go/kubernetes/scheme"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"
	"sigs.k8s.io/karpenter/pkg/controllers/provisioning"
	"sigs.k8s.io/karpenter/pkg/controllers/state"
	"sigs.k8s.io/karpenter/pkg/operator/options"
	nodeutils "sigs.k8s.io/karpenter/pkg/utils/node"
)

// decide asks Karpenter's Provisioner once; what it panics with is the result's error.
func decide(given *scenario, known catalogues) (made result) {
	defer func() {
		if problem := recover(); problem != nil {
			made = result{Error: fmt.Sprint(problem)}
		}
	}()
	made, err := decideOrFail(given, known)
	if err != nil {
		return result{Error: err.Error()}
	}
	return made
}

func decideOrFail(given *scenario, known catalogues) (result, error) {
	ctx := options.ToContext(context.Background(), given.Options.karpenters())
	held := heldBy(given.objects())
	clock := clocktesting.NewFakeClock(given.time())
	offers := &provider{common: known.types(given.InstanceTypes), byPool: map[string][]*cloudprovider.InstanceType{}}
	for name, own := range given.InstanceTypesByNodePool {
		offers.byPool[name] = known.types(own)
	}
	cluster := state.NewCluster(clock, held, offers)
	if err := hydrate(ctx, cluster, given, held); err != nil {
		return result{}, err
	}
	provisioner := provisioning.NewProvisioner(held, nobody{}, offers, cluster, clock, nil)
	waiting, err := nodeutils.GetProvisionablePods(ctx, held)
	if err != nil {
		return result{}, err
	}
	moving, err := cluster.DeepCopyNodes().Deleting().CurrentlyReschedulablePods(ctx, held, clock, nobody{})
	if err != nil {
		return result{}, err
	}
	ignored := map[string]string{}
	for _, pod := range waiting {
		if err := provisioner.Validate(ctx, pod); err != nil {
			ignored[pod.Name] = err.Error()
		}
	}
	found, err := provisioner.Schedule(ctx)
	if err != nil {
		return result{}, err
	}
	return resultOf(found, append(waiting, moving...), ignored), nil
}

func (o scenarioOptions) karpenters() *options.Options {
	made := &options.Options{
		CPURequests:       1000,
		BatchMaxDuration:  10 * time.Second,
		BatchIdleDuration: time.Second,
		PreferencePolicy:  options.PreferencePolicyRespect,
		MinValuesPolicy:   options.MinValuesPolicyStrict,
		IgnoreDRARequests: true,
		FeatureGates:      options.DefaultFeatureGates(),
	}
	if o.PreferencePolicy != "" {
		made.PreferencePolicy = options.PreferencePolicy(o.PreferencePolicy)
	}
	if o.MinValuesPolicy != "" {
		made.MinValuesPolicy = options.MinValuesPolicy(o.MinValuesPolicy)
	}
	if on, given := o.FeatureGates["ReservedCapacity"]; given {
		made.FeatureGates.ReservedCapacity = on
	}
	return made
}

// heldBy is a client of an API server that holds these objects, with the indexes that Karpenter's operator makes.
func heldBy(objects []client.Object) client.Client {
	return fake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(objects...).
		WithIndex(&corev1.Pod{}, "spec.nodeName", func(each client.Object) []string {
			return []string{each.(*corev1.Pod).Spec.NodeName}
		}).
		WithIndex(&corev1.Node{}, "spec.providerID", func(each client.Object) []string {
			return []string{each.(*corev1.Node).Spec.ProviderID}
		}).
		WithIndex(&storagev1.VolumeAttachment{}, "spec.nodeName", func(each client.Object) []string {
			return []string{each.(*storagev1.VolumeAttachment).Spec.NodeName}
		}).
		WithIndex(&v1.NodeClaim{}, "status.providerID", func(each client.Object) []string {
			return []string{each.(*v1.NodeClaim).Status.ProviderID}
		}).
		Build()
}

// hydrate tells the cluster state what its informers would.
func hydrate(ctx context.Context, cluster *state.Cluster, given *scenario, held client.Client) error {
	for _, each := range given.Nodes {
		if each.NodeClaim != nil {
			cluster.UpdateNodeClaim(each.NodeClaim.DeepCopy())
		}
	}
	for _, each := range given.Nodes {
		if each.Node != nil {
			if err := cluster.UpdateNode(ctx, each.Node.DeepCopy()); err != nil {
				return err
			}
		}
	}
	pods := &corev1.PodList{}
	if err := held.List(ctx, pods); err != nil {
		return err
	}
	for i := range pods.Items {
		// A pod bound to a node that is not there is no error of ours: the informer would try again.
		_ = cluster.UpdatePod(ctx, &pods.Items[i])
	}
	for _, each := range given.DaemonSets {
		if err := cluster.UpdateDaemonSet(ctx, each); err != nil {
			return err
		}
	}
	for _, each := range given.Nodes {
		id := each.providerID()
		if each.MarkedForDeletion {
			cluster.MarkForDeletion(id)
		}
		if each.Nominated {
			cluster.NominateNodeForPod(ctx, id)
		}
	}
	return nil
}

// providerID is the one by which the cluster state knows the node.
func (n *node) providerID() string {
	if n.NodeClaim != nil && n.NodeClaim.Status.ProviderID != "" {
		return n.NodeClaim.Status.ProviderID
	}
	if n.Node.Spec.ProviderID != "" {
		return n.Node.Spec.ProviderID
	}
	return n.Node.Name
}
