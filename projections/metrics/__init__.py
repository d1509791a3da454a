"""Karpenter's metrics: counters and histograms of the record, gauges of the state.

A metric is a `Family` of samples; how it is served is up to `adapters`. Imports the engine and `projections.status`.
"""
