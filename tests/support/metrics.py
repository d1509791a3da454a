"""What a scrape of the metrics would give, for a record or a state."""

from __future__ import annotations

from prometheus_client.parser import text_string_to_metric_families

from kerf.adapters.manager.metrics.exposition import exposition
from kerf.engine.state.state import Facts, State
from kerf.projections.metrics.cluster_gauges import cluster_gauges
from kerf.projections.metrics.counters import RecordCounters
from tests.support.world import World

Samples = dict[str, dict[tuple[tuple[str, str], ...], float]]


def scraped(text: bytes) -> Samples:
    """Sample name → labels → value, as Prometheus reads it."""
    found: Samples = {}
    for family in text_string_to_metric_families(text.decode()):
        for sample in family.samples:
            found.setdefault(sample.name, {})[tuple(sorted(sample.labels.items()))] = sample.value
    return found


def counters(world: World) -> RecordCounters:
    """What has counted all of the record."""
    metrics = RecordCounters(State(Facts(), world.runtime.state.indexes.blobs), "aws")
    for entry in world.store.entries:
        metrics.apply(entry)
    return metrics


def counted(world: World) -> Samples:
    return scraped(exposition(counters(world).families()))


def gauges(world: World) -> Samples:
    """The gauges of now."""
    return scraped(exposition(cluster_gauges(world.runtime.state, counters(world), world.now)))


def value(found: Samples, sample: str, /, **labels: str) -> float:
    wanted = set(labels.items())
    return sum(amount for key, amount in found.get(sample, {}).items() if wanted <= set(key))
