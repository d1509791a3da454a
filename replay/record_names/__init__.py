"""Finding the entries of a record that are about few of its pods, without decoding all the others.

`postings` says which entries name which pod, node or workload; `named_entries` gives those entries. An index is a
cache: it changes how soon an answer is there, and nothing else. Imports the engine and `projections`.
"""
