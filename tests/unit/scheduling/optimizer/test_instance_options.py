"""What pods could be put on: options of NodePools that are alike, and of those that are not."""

from __future__ import annotations

from kerf.engine.model import labels as lbl
from kerf.engine.model.instance_types import Catalogue, Offering
from kerf.engine.model.kubernetes.pods import Taint
from kerf.engine.scheduling.optimizer.instance_options import InstanceOptions
from tests.support.scenarios.problems import Workloads, instance_type, pool, problem, shape, spec


def test_nodepools_that_are_alike_share_rooms_and_no_other_does() -> None:
    """The larger type is the cheaper one on demand, and the dearer one as spot. A taint keeps the DaemonSet off."""
    prices = {"a-large": (4, 0.2, 0.3), "b-small": (2, 0.3, 0.1)}
    catalogue = Catalogue(
        tuple(
            instance_type(name, cores, offerings=(Offering("z1", lbl.ON_DEMAND, dear), Offering("z1", lbl.SPOT, spot)))
            for name, (cores, dear, spot) in prices.items()
        )
    )
    on_demand, spot = (spec(lbl.CAPACITY_TYPE, "In", each) for each in (lbl.ON_DEMAND, lbl.SPOT))
    pools = (
        pool("one", on_demand),
        pool("other", on_demand, labels={"team": "other"}, weight=3),
        pool("spot", spot),
        pool("tainted", on_demand, taints=(Taint("t", "NoSchedule"),)),
    )
    asked = problem(Workloads().add("pod", 1, shape(100)), catalogue, *pools, daemons=[shape(500)])
    options = InstanceOptions(asked)

    def fronts(name: str) -> list[str]:
        number = options.numbers[name]
        narrowed = options.templates[number].base
        return [catalogue.types[option.type_number].name for option in options.front(number, narrowed)]

    one, other, tainted = (options.numbers[name] for name in ("one", "other", "tainted"))
    assert options.room(one, 0) is options.room(other, 0)
    assert (options.room(one, 0), options.room(tainted, 0)) == ((3500, 109), (4000, 110))
    assert fronts("one") == fronts("other") == fronts("tainted") == ["a-large"]
    assert fronts("spot") == ["b-small", "a-large"]
    assert options.front(other, options.templates[other].base)[0].template == other
