"""Every code that the engine can record has its sentence, and no sentence is for a code that does not exist."""

from __future__ import annotations

import ast
import string
from pathlib import Path

import pytest

from kerf.engine.lifecycle.reasons import LifecycleCode
from kerf.engine.model.disruption_reasons import DisruptionCode, DisruptionReason, DriftReason
from kerf.engine.model.reasons import Reason, ReasonCode
from kerf.engine.record.claim_events import CLAIM_EVENTS
from kerf.engine.record.entry_types import NAME_OF
from kerf.engine.scheduling.explain.relaxed_preferences import RelaxationKind
from kerf.engine.scheduling.explain.tracer import Cut
from kerf.engine.scheduling.explain.type_filters import FilterKind
from kerf.engine.scheduling.reasons import SchedulingCode
from kerf.projections.prose.amounts import count, dollars, duration, moment
from kerf.projections.prose.explanation_codes import BudgetUseCode, ChangeCode, ExplanationCode
from kerf.projections.prose.funnels import cut_sentence
from kerf.projections.prose.reasons import requirement_words, sentence
from kerf.projections.timeline import event as events

TOLD_IN = (
    "timeline.py", "changed_objects.py", "changed_workloads.py", "entry_events.py", "disruption_events.py",
    "drift_events.py", "taint_events.py",
)  # fmt: skip
REPLAY = Path(events.__file__).resolve().parents[2] / "replay"
LISTS: tuple[type[ReasonCode], ...] = (DisruptionReason, DriftReason, DisruptionCode, LifecycleCode)
CODES = {code.value for codes in LISTS for code in codes}


def literal(node: ast.expr | None) -> str | None:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None


def replay_modules() -> list[ast.AST]:
    return [ast.parse(path.read_text()) for path in sorted(REPLAY.rglob("*.py")) if "scenarios" not in path.parts]


def test_explanations_take_their_codes_from_the_lists() -> None:
    nodes = [node for tree in replay_modules() for node in ast.walk(tree) if isinstance(node, ast.Call) and node.args]
    literals = [node.args[0] for node in nodes if isinstance(node.func, ast.Name) and node.func.id == "Reason"]
    assert not [node.value for node in literals if isinstance(node, ast.Constant)]


@pytest.mark.parametrize("codes", [ExplanationCode, ChangeCode, BudgetUseCode])
def test_every_code_of_replay_is_given_by_it(codes: type[ReasonCode]) -> None:
    nodes = [node for tree in replay_modules() for node in ast.walk(tree) if isinstance(node, ast.Attribute)]
    used = {node.attr for node in nodes if isinstance(node.value, ast.Name) and node.value.id == codes.__name__}
    claims = {NAME_OF[kind].removeprefix("claim.") for kind in CLAIM_EVENTS}
    assert {code.name for code in codes if code.value not in claims} <= used


def test_replay_has_no_second_sentence_for_a_code_of_the_engine() -> None:
    assert not {code.value for code in ExplanationCode} & CODES


@pytest.mark.parametrize("code", list(SchedulingCode))
def test_every_code_of_scheduling_has_its_sentence(code: SchedulingCode) -> None:
    fields = "requirement key operator problem keys types features taints ports resources limit requirements offerings "
    fields += "rule domains claim claims allowed drivers request wanted devices left selectors launches node budgets"
    fields += " zones nodes where places"
    params: dict[str, str | int | float | list[str]] = dict.fromkeys(fields.split(), "7")
    said = sentence(Reason(code.value, {**params, "incoming": "x", "existing": "y", "node_pool": "p"}))
    assert "{" not in said
    assert not said.endswith("}"), "a code without a sentence shows its parameters"
    assert said.startswith("NodePool p: ")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("cpu Exists <=16", "cpu at most 16"),
        ("cpu Exists >=4", "cpu at least 4"),
        ("cpu Exists >=4 <=16 minValues 2", "cpu at least 4 and at most 16 minValues 2"),
        ("gpu Exists", "gpu Exists"),
        ("zone In [a b]", "zone In [a b]"),
        ("gpu DoesNotExist", "gpu DoesNotExist"),
    ],
)
def test_bounds_are_said_in_words(text: str, words: str) -> None:
    """S-14 is the engine's form; a reader gets words, wherever a requirement is shown."""
    assert requirement_words(text) == words
    assert cut_sentence(Cut("requirement", 3, "cpu", text)) == f"not {words}"
    conflict = Reason("requirements-conflict", {"node_pool": "p", "incoming": [text], "existing": ["x In [y]"]})
    assert sentence(conflict) == f"NodePool p: the pod asks for {words}, here is x In [y]"


def test_every_claim_event_has_its_sentence() -> None:
    assert {NAME_OF[kind].replace(".", "-") for kind in CLAIM_EVENTS} <= events.SENTENCES.keys()


def test_every_event_that_the_timeline_tells_has_its_sentence() -> None:
    trees = [ast.parse((Path(events.__file__).parent / f).read_text()) for f in TOLD_IN]
    nodes = [node for tree in trees for node in ast.walk(tree)]
    literals = {n.value for n in nodes if isinstance(n, ast.Constant) and isinstance(n.value, str)}
    claims = {NAME_OF[kind].replace(".", "-") for kind in CLAIM_EVENTS}
    unused = {code for code in events.SENTENCES if code not in literals | claims}
    assert unused == {"node-gone", "nodepool-gone", "nodeclass-gone"}, "these are made from the kind"


def test_a_parameter_that_the_record_lacks_is_left_out() -> None:
    assert sentence(Reason("no-nodepool")) == "its NodePool is not there"
    assert sentence(Reason("instance-vanished")) == "its instance is gone, and kerf did not end it"


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("nothing-cheaper", "nothing cheaper"),
        ("several-replacements", "needs several nodes"),
        ("moved-lately", "pods came lately"),
        ("empty", "nothing that needs a place runs on it"),
    ],
)
def test_without_its_numbers_a_reason_is_told_in_few_words(code: str, said: str) -> None:
    """Of a node's latest verdict a state keeps the code alone. "None is cheaper than /h" said nothing."""
    assert sentence(Reason(code)) == said


def test_pods_are_counted_in_the_right_number() -> None:
    assert sentence(Reason("waiting-for-pods", {"pods": 1})) == "1 pod still to leave"


def test_a_code_of_another_version_shows_as_itself() -> None:
    assert sentence(Reason("moon-phase", {"phase": "full"})) == "moon-phase {'phase': 'full'}"


def test_sentences_hold_no_other_fields_than_plain_names() -> None:
    lists: tuple[type[ReasonCode], ...] = (*LISTS, SchedulingCode, FilterKind, RelaxationKind)
    sentences = [code.sentence for codes in lists for code in codes]
    for template in (*sentences, *(kind.change for kind in FilterKind)):
        assert all(name is None or name.isidentifier() for _, name, _, _ in string.Formatter().parse(template))


@pytest.mark.parametrize(
    ("milliseconds", "said"),
    [
        (0, "0s"), (340, "340ms"), (1_000, "1s"), (12_500, "12.5s"), (60_000, "1m"), (61_000, "1m1s"),
        (3_600_000, "1h"), (5_400_000, "1h30m"), (90_000_000, "1d1h"), (-12_500, "-12.5s"), (59_999, "59.999s"),
    ],
)  # fmt: skip
def test_durations(milliseconds: int, said: str) -> None:
    assert duration(milliseconds) == said


def test_figures() -> None:
    assert (count(1, "pod"), count(1_200, "pod")) == ("1 pod", "1,200 pods")
    assert moment(1_700_000_000_007) == "2023-11-14T22:13:20.007Z"
    assert dollars(0.09612) == "$0.0961"


def test_disruption_names_pods_and_prices() -> None:
    """D-30, D-98: lists read as lists, limits as money."""
    budget = Reason("pod-budget-exhausted", {"pod": "default/a", "budgets": ["default/keep"]})
    assert sentence(budget) == "pod default/a may not be evicted: PodDisruptionBudget default/keep allows none"
    dear = Reason("nothing-cheaper", {"limit": 0.096})
    assert sentence(dear) == "its pods need a node, and none is cheaper than $0.0960/h"


@pytest.mark.parametrize(
    ("detail", "said"),
    [
        ("unknown", "its NodeClaim was deleted (the API server does not say by whom)"),
        ("", "its NodeClaim was deleted (the API server does not say by whom)"),
        ("node deleted", "its Node was deleted (the API server does not say by whom)"),
        ("anna", "its NodeClaim was deleted by anna"),
    ],
)
def test_a_deletion_by_nobody_known_says_what_was_deleted(detail: str, said: str) -> None:
    assert sentence(Reason("deleted", {"detail": detail})) == said


def test_a_move_of_empty_nodes_does_not_say_for_how_long() -> None:
    assert sentence(Reason("empty")) == "nothing that needs a place runs on it"
    assert sentence(Reason("empty", {"quiet": 60_000})) == "nothing that needs a place has run on it for 1m"


def test_a_plan_that_stops_at_the_second_node_tells_no_exact_number() -> None:
    said = sentence(Reason.of(DisruptionCode.SEVERAL_REPLACEMENTS, count=2))
    assert said == "its pods would need at least 2 nodes instead"
