package main

import (
	"encoding/json"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"
)

const kept = "kerf.test/kept" // the client refuses objects that are being deleted and have no finalizer

type scenario struct {
	Name                    string                          `json:"name"`
	Now                     metav1.Time                     `json:"now"`
	InstanceTypes           source                          `json:"instanceTypes"`
	InstanceTypesByNodePool map[string]source               `json:"instanceTypesByNodePool"`
	NodePools               []*v1.NodePool                  `json:"nodePools"`
	Nodes                   []*node                         `json:"nodes"`
	DaemonSets              []*appsv1.DaemonSet             `json:"daemonSets"`
	Pods                    []*corev1.Pod                   `json:"pods"`
	PVCs                    []*corev1.PersistentVolumeClaim `json:"pvcs"`
	PVs                     []*corev1.PersistentVolume      `json:"pvs"`
	StorageClasses          []*storagev1.StorageClass       `json:"storageClasses"`
	CSINodes                []*storagev1.CSINode            `json:"csiNodes"`
	PDBs                    []*policyv1.PodDisruptionBudget `json:"pdbs"`
	Namespaces              []*corev1.Namespace             `json:"namespaces"`
	Options                 scenarioOptions                 `json:"options"`
}

type node struct {
	Node              *corev1.Node  `json:"node"`
	NodeClaim         *v1.NodeClaim `json:"nodeClaim"`
	Pods              []*corev1.Pod `json:"pods"`
	MarkedForDeletion bool          `json:"markedForDeletion"`
	Nominated         bool          `json:"nominated"`
}

type scenarioOptions struct {
	PreferencePolicy string          `json:"preferencePolicy"`
	MinValuesPolicy  string          `json:"minValuesPolicy"`
	FeatureGates     map[string]bool `json:"featureGates"`
}

// readScenario reads one scenario and applies the defaults of docs/plan.md, section 1.1.
func readScenario(line []byte) (*scenario, error) {
	made := &scenario{}
	if err := json.Unmarshal(line, made); err != nil {
		return nil, err
	}
	for _, pool := range made.NodePools {
		if len(pool.Status.Conditions) == 0 {
			for _, kind := range []string{v1.ConditionTypeValidationSucceeded, v1.ConditionTypeNodeClassReady} {
				pool.StatusConditions().SetTrue(kind) // and it is Ready with them
			}
		}
	}
	for _, pod := range made.Pods {
		defaultPod(pod, made.Now)
		if pod.Status.Phase == "" {
			pod.Status.Phase = corev1.PodPending
			if pod.Status.Conditions == nil {
				pod.Status.Conditions = []corev1.PodCondition{
					{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable},
				}
			}
		}
	}
	for _, each := range made.Nodes {
		if each.Node != nil {
			for _, pod := range each.Pods {
				defaultPod(pod, made.Now)
				defaultBound(pod, each.Node.Name)
			}
		}
	}
	for _, each := range made.DaemonSets {
		inDefault(each)
		defaultSpec(&each.Spec.Template.Spec)
	}
	for _, each := range made.PVCs {
		inDefault(each)
	}
	for _, each := range made.PDBs {
		inDefault(each)
	}
	made.addDefaultNamespace()
	return made, nil
}

func (s *scenario) addDefaultNamespace() {
	for _, each := range s.Namespaces {
		if each.Name == metav1.NamespaceDefault {
			return
		}
	}
	labels := map[string]string{corev1.LabelMetadataName: metav1.NamespaceDefault}
	s.Namespaces = append(s.Namespaces, &corev1.Namespace{
		ObjectMeta: metav1.ObjectMeta{Name: metav1.NamespaceDefault, Labels: labels},
	})
}

func inDefault(object client.Object) {
	if object.GetNamespace() == "" {
		object.SetNamespace(metav1.NamespaceDefault)
	}
}

func defaultPod(pod *corev1.Pod, now metav1.Time) {
	inDefault(pod)
	if pod.CreationTimestamp.IsZero() {
		pod.CreationTimestamp = now
	}
	if pod.UID == "" {
		pod.UID = types.UID(pod.Namespace + "/" + pod.Name)
	}
	defaultSpec(&pod.Spec)
}

func defaultBound(pod *corev1.Pod, name string) {
	pod.Spec.NodeName = name
	if pod.Status.Phase == "" {
		pod.Status.Phase = corev1.PodRunning
	}
	if pod.Status.Conditions == nil {
		pod.Status.Conditions = []corev1.PodCondition{
			{Type: corev1.PodScheduled, Status: corev1.ConditionTrue},
			{Type: corev1.PodReady, Status: corev1.ConditionTrue},
		}
	}
	if pod.Status.StartTime == nil {
		pod.Status.StartTime = &pod.CreationTimestamp
	}
}

func defaultSpec(spec *corev1.PodSpec) {
	for _, containers := range [][]corev1.Container{spec.Containers, spec.InitContainers} {
		for i := range containers {
			each := &containers[i]
			for name, quantity := range each.Resources.Limits {
				if each.Resources.Requests == nil {
					each.Resources.Requests = corev1.ResourceList{}
				}
				if _, given := each.Resources.Requests[name]; !given {
					each.Resources.Requests[name] = quantity
				}
			}
			for j := range each.Ports {
				if each.Ports[j].Protocol == "" {
					each.Ports[j].Protocol = corev1.ProtocolTCP
				}
			}
		}
	}
}

// objects are all that the API server would hold.
func (s *scenario) objects() []client.Object {
	made := []client.Object{}
	for _, each := range s.Nodes {
		if each.NodeClaim != nil {
			made = append(made, each.NodeClaim)
		}
		if each.Node != nil {
			made = append(made, each.Node)
			made = add(made, each.Pods)
		}
	}
	made = add(made, s.NodePools)
	made = add(made, s.DaemonSets)
	made = add(made, s.Pods)
	made = add(made, s.PVCs)
	made = add(made, s.PVs)
	made = add(made, s.StorageClasses)
	made = add(made, s.CSINodes)
	made = add(made, s.PDBs)
	made = add(made, s.Namespaces)
	for _, each := range made {
		if each.GetDeletionTimestamp() != nil && len(each.GetFinalizers()) == 0 {
			each.SetFinalizers([]string{kept})
		}
	}
	return made
}

func add[T client.Object](all []client.Object, more []T) []client.Object {
	for _, each := range more {
		all = append(all, each)
	}
	return all
}

func (s *scenario) time() time.Time { return s.Now.Time }
