"""All commands: their names, where they are, and their line in `kerf --help`. Imports nothing of them."""

from __future__ import annotations

from typing import NamedTuple

DESCRIPTION = "An event-sourced Kubernetes node autoscaler: every decision can be replayed, explained and tried again."
STANDARD_INPUT = "/dev/stdin"
"""What "-" stands for where a command reads a file."""
_HERE = "kerf.adapters.cli.commands"


class Command(NamedTuple):
    """`path` is "module:function" or "module:app"; `summary` is the first paragraph of its help. An app has
    `subcommands`. One that `reads_input` takes "-" for standard input where it takes a file."""

    name: str
    path: str
    summary: str
    subcommands: tuple[str, ...] = ()
    reads_input: bool = False


COMMANDS: tuple[Command, ...] = (
    Command(
        "demo",
        f"{_HERE}.demo:demo",
        "Show what kerf does: five pods get the right node, an empty node goes, a spot interruption is survived.",
    ),
    Command(
        "simulate",
        f"{_HERE}.simulate:simulate",
        "Run kerf on your manifests: what would it launch, when, for how much, and why not?",
        reads_input=True,
    ),
    Command(
        "plan",
        f"{_HERE}.plan:plan",
        "Decide once for each scenario: which pods go where, and which nodes are launched for the rest.",
        reads_input=True,
    ),
    Command(
        "disrupt",
        f"{_HERE}.disrupt:disrupt",
        "Decide once for each cluster: which nodes go, what replaces them, and why the others stay.",
        reads_input=True,
    ),
    Command(
        "run",
        f"{_HERE}.run:run",
        "Run the controller on a Kubernetes cluster until it is told to stop (SIGTERM, Ctrl-C).",
    ),
    Command(
        "observe",
        f"{_HERE}.observe:observe",
        "Compare what kerf decided in observe mode with what Karpenter did.",
        ("report",),
    ),
    Command(
        "import",
        f"{_HERE}.import_history:import_history",
        "Make a record of Karpenter's log, so that log, story and explain work on it.",
    ),
    Command(
        "capture",
        f"{_HERE}.capture:capture",
        "Write a live cluster as it is into a bundle, for status, whatif and the other commands that read records.",
    ),
    Command(
        "doctor",
        f"{_HERE}.doctor:doctor",
        "Check whether everything is there that `kerf run` needs, with the same flags; nothing is changed.",
    ),
    Command(
        "validate",
        f"{_HERE}.validate:validate",
        "Check manifests: everything that is wrong, with a code, the field, and what to write instead.",
        reads_input=True,
    ),
    Command(
        "convert",
        f"{_HERE}.convert:convert",
        "Write v1beta1 NodePools and EC2NodeClasses as v1, as Karpenter 1.0's own conversion did.",
        reads_input=True,
    ),
    Command(
        "status",
        f"{_HERE}.record.status:status",
        "Show what an on-call person asks first: what waits and why, what the nodes do, what is under way.",
    ),
    Command(
        "diff",
        f"{_HERE}.record.diff:diff",
        "Show what is different between two moments: objects, nodes, pods, price.",
    ),
    Command(
        "ui",
        f"{_HERE}.record.ui:ui",
        "Show a record on a page of this machine: nodes and pods through time, with the reason for everything.",
    ),
    Command("log", f"{_HERE}.record.log:log", "Tell what happened, in order."),
    Command("at", f"{_HERE}.record.at:at", "Show the state at a position or a time."),
    Command(
        "explain",
        f"{_HERE}.record.explain:explain",
        "Explain why anything that has a name is as it is, or a decision.",
    ),
    Command(
        "story",
        f"{_HERE}.record.story:story",
        "Tell the story of anything that has a name: what happened to it, why, and what came of it.",
    ),
    Command(
        "cost",
        f"{_HERE}.figures.cost:cost",
        "Show what the nodes cost, by NodePool, workload, type, zone, hour or reason.",
    ),
    Command(
        "evictions",
        f"{_HERE}.figures.evictions:evictions",
        "Show which pods had to leave their nodes, by workload, NodePool, reason or hour.",
    ),
    Command(
        "churn",
        f"{_HERE}.figures.churn:churn",
        "Show how nodes came and went, and which go round in circles.",
    ),
    Command(
        "capacity",
        f"{_HERE}.figures.capacity:capacity",
        "Show which capacity the cloud refused, by offering, type, zone, reason or hour.",
    ),
    Command(
        "sql", f"{_HERE}.figures.sql:sql", "Ask records in SQL: claims, pods, evictions, costs and more as tables."
    ),
    Command(
        "export", f"{_HERE}.figures.export:export", "Write the tables of records as Parquet or CSV, for other programs."
    ),
    Command(
        "whatif",
        f"{_HERE}.record.whatif:whatif",
        "Make the next decision after a moment again, with something changed.",
    ),
    Command(
        "replay",
        f"{_HERE}.record.replay:replay",
        "Run the recorded workload again in a model, under another configuration.",
    ),
    Command(
        "sweep",
        f"{_HERE}.figures.sweep:sweep",
        "Model many configurations over many records, and rank them by cost and disruption.",
    ),
    Command(
        "check",
        f"{_HERE}.record.check:check",
        "Hold records, or a simulation of your manifests, against a policy.",
        reads_input=True,
    ),
    Command(
        "verify", f"{_HERE}.record.verify:verify", "Decide every recorded decision again, and compare byte for byte."
    ),
    Command(
        "bundle",
        f"{_HERE}.bundle:bundle",
        "Make, inspect and sign bundles: a record as one file to hand on.",
        ("export", "names", "inspect", "generate-key", "sign", "verify-signature", "golden"),
    ),
    Command(
        "completion",
        f"{_HERE}.completion:completion",
        "Print the script by which a shell completes commands, flags, and names out of a record.",
    ),
    Command("store", f"{_HERE}.store:store", "Records as such: make one smaller.", ("prune",)),
)

GROUPS: dict[str, tuple[str, ...]] = {
    "Begin": ("demo", "simulate", "plan", "disrupt", "completion"),
    "Manifests": ("validate", "convert"),
    "Records: what happened, and why": ("status", "ui", "log", "story", "explain", "at", "diff"),
    "Records: how much, and how often": ("cost", "evictions", "churn", "capacity", "sql", "export"),
    "Records: what if": ("whatif", "replay", "sweep"),
    "Records: proofs and files": ("check", "verify", "bundle", "store", "import", "capture"),
    "In a cluster": ("run", "doctor", "observe"),
}
"""The boxes of `kerf --help`, in their order. Each command is in one of them."""
