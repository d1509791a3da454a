"""Read models: each folds the record's entries, or looks at one state, and says something to people or tools.

`timeline` is kerf's own story; `kubernetes_events`, `metrics`, `status` and `karpenter_logs` say what Karpenter says,
in its words; `cost` and `karpenter_comparison` are reports; `prose` puts coded reasons into words.

Imports the engine alone. Whoever shows or writes a read model (the CLI, the controller) imports it.
"""
