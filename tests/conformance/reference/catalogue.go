package main

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"

	corev1 "k8s.io/api/core/v1"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"
	"sigs.k8s.io/karpenter/pkg/scheduling"
)

type catalogues map[string][]instanceType

type source struct {
	Catalogue    string         `json:"catalogue"`
	Names        []string       `json:"names"`
	Zones        []string       `json:"zones"`
	Patches      []patch        `json:"patches"`
	Reservations []reservation  `json:"reservations"`
	Inline       []instanceType `json:"inline"`
}

type patch struct {
	Types         []string `json:"types"`
	Zones         []string `json:"zones"`
	CapacityTypes []string `json:"capacityTypes"`
	Set           struct {
		Available   *bool    `json:"available"`
		Price       *float64 `json:"price"`
		PriceFactor *float64 `json:"priceFactor"`
	} `json:"set"`
}

type reservation struct {
	Type      string  `json:"type"`
	Zone      string  `json:"zone"`
	ID        string  `json:"id"`
	Capacity  int     `json:"capacity"`
	Price     float64 `json:"price"`
	Available *bool   `json:"available"`
}

type instanceType struct {
	Name     string              `json:"name"`
	Capacity corev1.ResourceList `json:"capacity"`
	Overhead struct {
		KubeReserved      corev1.ResourceList `json:"kubeReserved"`
		SystemReserved    corev1.ResourceList `json:"systemReserved"`
		EvictionThreshold corev1.ResourceList `json:"evictionThreshold"`
	} `json:"overhead"`
	Requirements map[string][]string `json:"requirements"`
	Offerings    []offering          `json:"offerings"`
}

type offering struct {
	Zone                string  `json:"zone"`
	ZoneID              string  `json:"zoneId"`
	CapacityType        string  `json:"capacityType"`
	Price               float64 `json:"price"`
	Available           *bool   `json:"available"`
	ReservationID       string  `json:"reservationId"`
	ReservationCapacity int     `json:"reservationCapacity"`
}

func readCatalogues(path string) (catalogues, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	document := struct {
		Catalogues catalogues `json:"catalogues"`
	}{}
	if err := json.Unmarshal(data, &document); err != nil {
		return nil, fmt.Errorf("%s, %w", path, err)
	}
	return document.Catalogues, nil
}

// types are the instance types of a SOURCE: picked, restricted to zones, patched, reservations appended.
func (c catalogues) types(given source) []*cloudprovider.InstanceType {
	picked := []instanceType{}
	if given.Names == nil {
		picked = append(picked, c[given.Catalogue]...)
	}
	for _, name := range given.Names {
		at := slices.IndexFunc(c[given.Catalogue], func(each instanceType) bool { return each.Name == name })
		picked = append(picked, c[given.Catalogue][at])
	}
	made := []*cloudprovider.InstanceType{}
	for _, each := range append(picked, given.Inline...) {
		each = each.copied()
		if given.Zones != nil {
			each.restrict(given.Zones)
		}
		for _, change := range given.Patches {
			each.patch(change)
		}
		for _, reserved := range given.Reservations {
			if reserved.Type == each.Name {
				each.reserve(reserved)
			}
		}
		made = append(made, each.karpenters())
	}
	return made
}

func (t instanceType) copied() instanceType {
	t.Offerings = slices.Clone(t.Offerings)
	requirements := map[string][]string{}
	for key, values := range t.Requirements {
		requirements[key] = slices.Clone(values)
	}
	t.Requirements = requirements
	return t
}

func (t *instanceType) restrict(zones []string) {
	t.Offerings = slices.DeleteFunc(t.Offerings, func(each offering) bool { return !slices.Contains(zones, each.Zone) })
	ids := []string{}
	for _, each := range t.Offerings {
		ids = append(ids, each.ZoneID)
	}
	for key, allowed := range map[string][]string{corev1.LabelTopologyZone: zones, labelZoneID: ids} {
		if values, given := t.Requirements[key]; given {
			t.Requirements[key] = slices.DeleteFunc(values, func(each string) bool { return !slices.Contains(allowed, each) })
		}
	}
}

func (t *instanceType) patch(change patch) {
	if change.Types != nil && !slices.Contains(change.Types, t.Name) {
		return
	}
	for i := range t.Offerings {
		each := &t.Offerings[i]
		if change.Zones != nil && !slices.Contains(change.Zones, each.Zone) ||
			change.CapacityTypes != nil && !slices.Contains(change.CapacityTypes, each.CapacityType) {
			continue
		}
		if change.Set.Available != nil {
			each.Available = change.Set.Available
		}
		if change.Set.Price != nil {
			each.Price = *change.Set.Price
		}
		if change.Set.PriceFactor != nil {
			each.Price *= *change.Set.PriceFactor
		}
	}
}

func (t *instanceType) reserve(given reservation) {
	zoneID := ""
	for _, each := range t.Offerings {
		if each.Zone == given.Zone && zoneID == "" {
			zoneID = each.ZoneID
		}
	}
	t.Offerings = append(t.Offerings, offering{
		Zone: given.Zone, ZoneID: zoneID, CapacityType: v1.CapacityTypeReserved, Price: given.Price,
		Available: given.Available, ReservationID: given.ID, ReservationCapacity: given.Capacity,
	})
	for key, value := range map[string]string{
		v1.CapacityTypeLabelKey: v1.CapacityTypeReserved, labelReservationID: given.ID, labelReservationType: defaultReservation,
	} {
		if !slices.Contains(t.Requirements[key], value) {
			t.Requirements[key] = append(t.Requirements[key], value)
		}
	}
}

func (t *instanceType) karpenters() *cloudprovider.InstanceType {
	requirements := scheduling.NewRequirements()
	for key, values := range t.Requirements {
		requirements.Add(inOrAbsent(key, values...))
	}
	for _, key := range []string{labelReservationID, labelReservationType} {
		if _, given := t.Requirements[key]; !given {
			requirements.Add(inOrAbsent(key))
		}
	}
	made := &cloudprovider.InstanceType{
		Name:         t.Name,
		Requirements: requirements,
		Capacity:     t.Capacity.DeepCopy(),
		Overhead: &cloudprovider.InstanceTypeOverhead{
			KubeReserved: t.Overhead.KubeReserved, SystemReserved: t.Overhead.SystemReserved,
			EvictionThreshold: t.Overhead.EvictionThreshold,
		},
	}
	for _, each := range t.Offerings {
		made.Offerings = append(made.Offerings, each.karpenters())
	}
	return made
}

func (o offering) karpenters() *cloudprovider.Offering {
	requirements := scheduling.NewRequirements(
		inOrAbsent(corev1.LabelTopologyZone, o.Zone),
		inOrAbsent(v1.CapacityTypeLabelKey, o.CapacityType),
	)
	if o.ZoneID != "" {
		requirements.Add(inOrAbsent(labelZoneID, o.ZoneID))
	}
	if o.ReservationID != "" {
		requirements.Add(inOrAbsent(labelReservationID, o.ReservationID), inOrAbsent(labelReservationType, defaultReservation))
	} else {
		requirements.Add(inOrAbsent(labelReservationID), inOrAbsent(labelReservationType))
	}
	return &cloudprovider.Offering{
		Requirements: requirements, Price: o.Price, Available: o.Available == nil || *o.Available,
		ReservationCapacity: o.ReservationCapacity,
	}
}

func inOrAbsent(key string, values ...string) *scheduling.Requirement {
	if len(values) == 0 {
		return scheduling.NewRequirement(key, corev1.NodeSelectorOpDoesNotExist)
	}
	return scheduling.NewRequirement(key, corev1.NodeSelectorOpIn, values...)
}
