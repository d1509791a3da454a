"""Coded reasons in words. The record keeps codes; words are chosen here, as late as possible.

Imports the engine, which has the codes and, for scheduling, their sentences.
"""
