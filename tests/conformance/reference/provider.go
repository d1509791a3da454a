package main

import (
	"context"

	"github.com/awslabs/operatorpkg/status"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"
	"sigs.k8s.io/karpenter/pkg/events"
)

const (
	group                = "karpenter.k8s.aws"
	labelReservationID   = group + "/capacity-reservation-id"
	labelReservationType = group + "/capacity-reservation-type"
	labelZoneID          = "topology.k8s.aws/zone-id"
	defaultReservation   = "default"
)

// registerLabels makes known what Karpenter's provider for AWS registers (docs/plan.md, section 1.3).
func registerLabels() {
	for _, name := range []string{
		"capacity-reservation-id", "capacity-reservation-type", "capacity-reservation-interruptible",
		"instance-hypervisor", "instance-encryption-in-transit-supported", "nitro-sandbox", "instance-category",
		"instance-capability-flex", "instance-family", "instance-generation", "instance-size", "instance-local-nvme",
		"instance-cpu", "instance-cpu-manufacturer", "instance-cpu-sustained-clock-speed-mhz", "instance-memory",
		"instance-ebs-bandwidth", "instance-network-bandwidth", "instance-gpu-name", "instance-gpu-manufacturer",
		"instance-gpu-count", "instance-gpu-memory", "instance-accelerator-name", "instance-accelerator-manufacturer",
		"instance-accelerator-count", "instance-tenancy", "placement-group-id", "placement-group-partition",
	} {
		v1.WellKnownLabels.Insert(group + "/" + name)
	}
	v1.WellKnownLabels.Insert(labelZoneID)
	v1.RestrictedLabelDomains.Insert(group)
	v1.NormalizedLabels["topology.ebs.csi.aws.com/zone"] = corev1.LabelTopologyZone
	cloudprovider.ReservationIDLabel = labelReservationID
	cloudprovider.ReservedCapacityLabels.Insert(labelReservationID, labelReservationType)
	scheme.Scheme.AddKnownTypeWithName(schema.GroupVersionKind{Group: group, Version: "v1", Kind: "EC2NodeClass"}, &nodeClass{})
}

// nodeClass is there for its kind alone.
type nodeClass struct {
	metav1.TypeMeta
	metav1.ObjectMeta
}

func (n *nodeClass) DeepCopyObject() runtime.Object     { made := *n; return &made }
func (n *nodeClass) GetConditions() []status.Condition  { return nil }
func (n *nodeClass) SetConditions(_ []status.Condition) {}
func (n *nodeClass) StatusConditions(_ ...status.ForOption) status.ConditionSet {
	return status.NewReadyConditions().For(n)
}

// provider offers a scenario's instance types; it launches nothing.
type provider struct {
	cloudprovider.CloudProvider
	common []*cloudprovider.InstanceType
	byPool map[string][]*cloudprovider.InstanceType
}

func (p *provider) GetInstanceTypes(_ context.Context, pool *v1.NodePool) ([]*cloudprovider.InstanceType, error) {
	if own, given := p.byPool[pool.Name]; given {
		return own, nil
	}
	return p.common, nil
}

func (p *provider) GetSupportedNodeClasses() []status.Object { return []status.Object{&nodeClass{}} }

func (p *provider) Name() string { return "scenario" }

// nobody listens to events.
type nobody struct{}

func (nobody) Publish(...events.Event) {}
