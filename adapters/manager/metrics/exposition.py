"""Metric families as the text that Prometheus scrapes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
    SummaryMetricFamily,
)
from prometheus_client.registry import Collector

from kerf.projections.metrics.families import COUNTER, GAUGE, HISTOGRAM, Family

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


def exposition(families: Iterable[Family]) -> bytes:
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Made([_metric(family) for family in families]))
    return generate_latest(registry)


class _Made(Collector):
    def __init__(self, metrics: list[Metric]) -> None:
        self._metrics = metrics

    def collect(self) -> Iterator[Metric]:
        yield from self._metrics


def _metric(family: Family) -> Metric:
    if family.kind in (COUNTER, GAUGE):
        kind = CounterMetricFamily if family.kind == COUNTER else GaugeMetricFamily
        metric = kind(family.name, family.help, labels=family.labels)
        for values, amount in family.samples.items():
            metric.add_metric(values, amount)
        return metric
    if family.kind == HISTOGRAM:
        histogram = HistogramMetricFamily(family.name, family.help, labels=family.labels)
        for values, distribution in family.distributions.items():
            buckets = [(f"{bound:g}", float(count)) for bound, count in distribution.cumulative()]
            histogram.add_metric(values, [*buckets, ("+Inf", float(distribution.count))], distribution.sum)
        return histogram
    summary = SummaryMetricFamily(family.name, family.help, labels=family.labels)
    for values, distribution in family.distributions.items():
        summary.add_metric(values, distribution.count, distribution.sum)
    return summary
