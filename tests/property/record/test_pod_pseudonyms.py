"""Pods keep both of their orders under pseudonyms: as text, and by the numbers at their ends."""

from __future__ import annotations

from collections.abc import Collection

from hypothesis import example, given
from hypothesis import strategies as st

from kerf.adapters.store.pseudonyms.record import Pseudonyms
from kerf.engine.model.karpenter.capacity_buffers import CapacityBuffer, virtual_name
from kerf.engine.model.ordinals import base_and_ordinal

PARTS = st.sampled_from(
    [
        "web",
        "db",
        "1",
        "2",
        "10",
        "12",
        "0",
        "00",
        "6d",
        "6dx",
        "2948",
        "2948234",
        "29482345",
        "2948x",
        "a.1",
        "1.a",
        "",
    ]
)
NAMES = st.lists(PARTS, min_size=1, max_size=4).map("-".join).filter(bool)


def settled(pods: set[str], buffers: Collection[str] = ()) -> Pseudonyms:
    names = Pseudonyms(b"key")
    for kind, texts in (("pod", pods), ("buffer", buffers)):
        for text in texts:
            names.name(kind, text)
    names.settle()
    return names


@given(st.sets(NAMES, max_size=12))
@example({"web-2", "web-10", "web-1-a", "web-15a", "web--3", "web", "web-6d4c-5sgdn", "web-6d4c-29482", "web-x"})
def test_s208_pods_keep_their_order_as_text_and_by_their_numbers(pods: set[str]) -> None:
    names = settled(pods)
    shown = {pod: names.name("pod", pod) for pod in pods}
    assert len(set(shown.values())) == len(pods)
    assert sorted(pods) == sorted(pods, key=shown.__getitem__)
    assert sorted(pods, key=base_and_ordinal) == sorted(pods, key=lambda pod: base_and_ordinal(shown[pod]))


@given(st.sets(NAMES, max_size=6), st.sets(st.sampled_from(["a", "room", "web-2", "web-10"]), min_size=1))
def test_s179_pods_keep_their_place_among_virtual_pods(pods: set[str], buffers: set[str]) -> None:
    """Deciders name the virtual pods of a buffer after the buffer."""
    virtual = {
        virtual_name(CapacityBuffer("u", "n", buffer), number): buffer for buffer in buffers for number in (0, 9)
    }
    names = settled({*pods, *virtual}, buffers)
    shown = {pod: names.name("pod", pod) for pod in (*pods, *virtual)}
    for name, buffer in virtual.items():
        number = name.rpartition("-")[2]
        assert shown[name] == virtual_name(CapacityBuffer("u", "n", names.name("buffer", buffer)), number)
    assert sorted(shown) == sorted(shown, key=shown.__getitem__)
    assert sorted(shown, key=base_and_ordinal) == sorted(shown, key=lambda pod: base_and_ordinal(shown[pod]))


def test_the_number_stays_and_the_name_before_it_does_not() -> None:
    names = settled({"shop-7", "shop-12", "shop"})
    plain = names.name("pod", "shop")
    assert "shop" not in plain
    assert [names.name("pod", pod) for pod in ("shop-7", "shop-12")] == [f"{plain}-7", f"{plain}-12"]


def test_of_a_longer_number_no_more_stays_than_puts_it_among_the_others() -> None:
    names = settled({"job-123456789012", "job-1"})
    shown = names.name("pod", "job-123456789012")
    assert "1234" in shown
    assert "12345" not in shown
