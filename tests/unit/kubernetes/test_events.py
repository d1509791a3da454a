"""Events: repetition, floods, and what is written (L-435)."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from kerf.adapters.kubernetes import events
from kerf.adapters.kubernetes.events import SPAM_BURST, EventRecorder, Happening, Subject
from tests.support.servers.fake_kubernetes import FakeApi, serving

pytestmark = pytest.mark.real_time

PATH = "/api/v1/namespaces/default/events"
NODE = Subject("v1", "Node", "n1", "", "u1")


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def happening(about: Subject = NODE, reason: str = "Blocked", text: str = "no", **more: Any) -> Happening:
    return Happening(about, "Normal", reason, text, more.pop("key", (about.uid, text)), 120_000, **more)


async def written(*steps: Any, api: FakeApi | None = None) -> list[tuple[str, str, Any]]:
    """Method, path and body of each request; a number among the steps lets so many seconds pass."""
    api, clock = api or FakeApi(), Clock()
    api.answers.setdefault(f"POST {PATH}", [(201, {})])

    async def uid(claim: str) -> str:
        return f"uid-of-{claim}"

    async with serving(api) as session:
        recorder = EventRecorder(session, uid, host="me", clock=clock)
        task = asyncio.create_task(recorder.run())
        for step in steps:
            if isinstance(step, Happening):
                recorder.tell([step])
                await recorder.settle()
            elif isinstance(step, list):
                await recorder.repeat(step)
                await recorder.settle()
            else:
                clock.now += step
        task.cancel()
    return [(method, path, body) for method, path, _, body in api.asked]


@pytest.mark.asyncio(loop_scope="function")
async def test_an_event_says_what_the_references_would() -> None:
    ((method, path, body),) = await written(happening(text="a budget"))
    assert (method, path) == ("POST", PATH)
    assert body["involvedObject"] == {"apiVersion": "v1", "kind": "Node", "name": "n1", "uid": "u1"}
    assert (body["type"], body["reason"], body["message"], body["count"]) == ("Normal", "Blocked", "a budget", 1)
    assert (body["source"], body["reportingComponent"]) == ({"component": "karpenter"}, "karpenter")
    assert body["metadata"]["name"].startswith("n1.")


@pytest.mark.asyncio(loop_scope="function")
async def test_the_uid_of_a_nodeclaim_is_asked_for() -> None:
    ((_, _, body),) = await written(happening(Subject("karpenter.sh/v1", "NodeClaim", "default-x")))
    assert body["involvedObject"]["uid"] == "uid-of-default-x"


@pytest.mark.asyncio(loop_scope="function")
async def test_the_same_reason_and_key_is_one_event_within_its_window() -> None:
    """L-435: neither kind nor text count, but the key does."""
    one, other = happening(text="a", key=("k",)), happening(text="b", key=("k",))
    assert len(await written(one, other, happening(key=("l",)))) == 2
    assert len(await written(one, 119.0, other)) == 1
    assert len(await written(one, 120.0, other)) == 2


@pytest.mark.asyncio(loop_scope="function")
async def test_d169_the_reason_counts_in_lower_case() -> None:
    assert len(await written(happening(key=("k",)), happening(reason="BLOCKED", key=("k",)))) == 1
    assert len(await written(happening(key=("k",)), happening(reason="Other", key=("k",)))) == 2


@pytest.mark.asyncio(loop_scope="function")
async def test_d169_what_was_said_already_takes_no_part_of_a_rate() -> None:
    """De-duplication comes first: with thirty repeats before them nobody else's nomination was told."""
    pods = [Subject("v1", "Pod", f"p{index}", "default", f"u{index}") for index in range(10)]
    first, *rest = (happening(pod, "Nominated", limit="nominated") for pod in pods)
    assert len(await written(*[first] * 30, *rest)) == 10


@pytest.mark.asyncio(loop_scope="function")
async def test_the_same_words_after_the_window_raise_the_count() -> None:
    api = FakeApi()
    requests = await written(happening(), 121.0, happening(), api=api)
    assert [method for method, _, _ in requests] == ["POST", "PATCH", "POST"]  # the fake has no such Event: made anew
    assert requests[1][1].startswith(f"{PATH}/n1.")
    assert requests[1][2]["count"] == 2


@pytest.mark.asyncio(loop_scope="function")
async def test_an_object_may_not_flood() -> None:
    """client-go's spam filter: 25 at once, then one every five minutes."""
    many = [happening(text=str(index)) for index in range(SPAM_BURST + 10)]
    assert len(await written(*many)) == SPAM_BURST
    assert len(await written(*many, 300.0, happening(text="later"), happening(text="more"))) == SPAM_BURST + 1


@pytest.mark.asyncio(loop_scope="function")
async def test_nominations_share_a_rate() -> None:
    """L-437: ten at once, five a second."""
    pods = [Subject("v1", "Pod", f"p{index}", "default", f"u{index}") for index in range(30)]
    many = [happening(pod, "Nominated", limit="nominated") for pod in pods]
    assert len(await written(*many[:20])) == 10
    assert len(await written(*many[:20], 1.0, *many[20:])) == 15


@pytest.mark.asyncio(loop_scope="function")
async def test_a_refused_event_is_lost_and_the_next_is_written() -> None:
    api = FakeApi()
    api.answers[f"POST {PATH}"] = [(403, {"message": "no"}), (201, {})]
    assert len(await written(happening(text="a"), happening(text="b"), api=api)) == 2


@pytest.mark.asyncio(loop_scope="function")
async def test_l435_what_lasts_is_told_again_by_patching_the_same_event(monkeypatch: pytest.MonkeyPatch) -> None:
    """The API server forgets an Event after an hour; a patch keeps it for another."""
    monkeypatch.setattr(events, "REPEATS_EVERY", 0.0)
    first = await written(happening())
    name = first[0][2]["metadata"]["name"]
    api = FakeApi()
    api.answers[f"PATCH {PATH}/{name}"] = [(200, {"count": 2}), (200, {"count": 3})]
    requests = await written(happening(), 300.0, [happening()], 1_500.0, [happening()], 1_500.0, [happening()], api=api)
    assert [method for method, _, _ in requests] == ["POST", "PATCH", "PATCH"]
    assert {path for method, path, _ in requests if method == "PATCH"} == {f"{PATH}/{name}"}
    assert [body["count"] for method, _, body in requests if method == "PATCH"] == [2, 3]


@pytest.mark.asyncio(loop_scope="function")
async def test_ev16_l435_what_lasts_and_is_not_as_it_was_is_told_with_the_next_look(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """ "10 pods are waiting" stood there for half an hour, when all but one had left. Not within its window, though."""
    monkeypatch.setattr(events, "REPEATS_EVERY", 0.0)
    ten, one = (happening(text=f"{pods} pods are waiting", key=("u1",)) for pods in (10, 1))
    requests = await written(ten, 60.0, [one], 60.0, [one], 300.0, [one])
    assert [(method, body["message"]) for method, _, body in requests] == [
        ("POST", "10 pods are waiting"),
        ("POST", "1 pods are waiting"),
    ]
    early, late = (happening(text=f"again at {at}", key=("k",), lasting="again") for at in (1, 2))
    assert len(await written(early, 300.0, [late])) == 1, "only the time that it names is another"


@pytest.mark.asyncio(loop_scope="function")
async def test_l435_an_event_that_names_another_time_is_the_same_event() -> None:
    """When what the cloud refused is tried again changes every three minutes, for hours."""
    early, late = (happening(text=f"no; again at {at}", key=("k",), lasting="no") for at in (1, 2))
    ((_, _, body),) = await written(early)
    api = FakeApi()
    api.answers[f"PATCH {PATH}/{body['metadata']['name']}"] = [(200, {"count": 2})]
    requests = await written(early, 300.0, late, api=api)
    assert [method for method, _, _ in requests] == ["POST", "PATCH"]
    assert [body["message"] for _, _, body in requests] == ["no; again at 1", "no; again at 2"]


@pytest.mark.asyncio(loop_scope="function")
async def test_l435_a_new_process_goes_on_with_the_event_of_the_one_before() -> None:
    first = await written(happening())
    name = first[0][2]["metadata"]["name"]
    api = FakeApi()
    api.answers[f"POST {PATH}"] = [(409, {"message": "exists"})]
    api.answers[f"PATCH {PATH}/{name}"] = [(200, {"count": 7})]
    requests = await written(happening(), 121.0, happening(), api=api)
    assert [method for method, _, _ in requests] == ["POST", "PATCH", "PATCH"]
    assert "count" not in requests[1][2], "how often it was told is not known yet"
    assert requests[2][2]["count"] == 8


@pytest.mark.asyncio(loop_scope="function")
async def test_what_lasts_is_told_at_most_ten_times_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []

    async def paused(seconds: float) -> None:
        pauses.append(seconds)

    class Sleepless:
        sleep, Queue, CancelledError = staticmethod(paused), asyncio.Queue, asyncio.CancelledError
        QueueFull = asyncio.QueueFull

    monkeypatch.setattr(events, "asyncio", Sleepless)
    await written([happening(text=str(index)) for index in range(15)])
    assert pauses == [0.1] * 15
