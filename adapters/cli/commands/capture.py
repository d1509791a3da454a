"""`kerf capture`: a live cluster as a bundle."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from kerf.adapters.cli.parameters import Json, kubeconfig_of_environment


def capture(
    file: Path,
    /,
    *,
    kubeconfig: Annotated[Path | None, Parameter(help="Default: KUBECONFIG, else ~/.kube/config.")] = None,
    context: str | None = None,
    types: Path | None = None,
    ask_ec2: Annotated[bool, Parameter(negative="")] = False,
    feature_gates: str = "",
    json: Json = False,
) -> None:
    """Write a live cluster as it is into a bundle, for status, whatif and the other commands that read records.

    Nothing is installed, and nothing is written to the cluster: kerf lists the
    objects that it decides on, once. The bundle also holds what kerf would decide
    next in this cluster, as in observe mode. It is partial: it says what a list of
    objects does not tell.

    For example:

        kerf capture now.kerfb
        kerf status now.kerfb
        kerf whatif now.kerfb --set nodepool/default.spec.limits.cpu=100
        kerf capture now.kerfb --context prod --ask-ec2

    Parameters
    ----------
    file
        The bundle to write. A file that is there stays.
    context
        The kubeconfig's context, if not its current one.
    types
        A file with the instance types and their prices, in KWOK's format.
    ask_ec2
        Ask EC2 for types and prices, with this shell's AWS credentials; else those of kerf's tables are taken.
    feature_gates
        The gates that Karpenter has, such as NodeOverlay=true,SpotToSpotConsolidation=true.
    json
        Print what was captured as JSON.
    """
    from kerf.adapters.cli.capture.capture import capture_cluster
    from kerf.adapters.cli.capture.text import capture_text
    from kerf.adapters.cli.render.lines import print_text
    from kerf.adapters.cli.render.notes import print_gate_notes
    from kerf.adapters.cli.render.output import emit_json
    from kerf.adapters.manager.flags import Flags
    from kerf.adapters.manager.settings import read_settings
    from kerf.projections.json_times import with_times

    options = read_settings(Flags(feature_gates=feature_gates or None), {})
    print_gate_notes(options.notes)
    captured = capture_cluster(
        file,
        options.engine,
        kubeconfig=kubeconfig or kubeconfig_of_environment(),
        context=context,
        types=types,
        ask_ec2=ask_ec2,
    )
    if json:
        emit_json(with_times(captured))
    else:
        print_text("\n".join(capture_text(captured)))
