"""`kerf run`: the controller in, or beside, a real cluster."""

from __future__ import annotations

from typing import Annotated, Literal

from cyclopts import Group, Parameter

from kerf.adapters.cli.parameters import Kubeconfig, SettingsFrom, kubeconfig_of_environment
from kerf.adapters.manager.flags import Flags

_NONE = Flags()
_SETTINGS = Group("Settings", help="Karpenter's. Each is an environment variable too: METRICS_PORT for --metrics-port.")


def run(
    *,
    mode: Annotated[
        Literal["control", "observe"],
        Parameter(
            env_var="KERF_MODE",
            help="control: kerf acts, and holds Karpenter's Lease. observe: it only reads, beside a Karpenter.",
        ),
    ] = "control",
    provider: Annotated[
        Literal["kwok", "aws"], Parameter(env_var="KERF_PROVIDER", help="Where nodes come from.")
    ] = "kwok",
    store: Annotated[
        str,
        Parameter(env_var="KERF_STORE", help="Where the record is kept: sqlite:///absolute/path or postgresql://…"),
    ],
    kubeconfig: Kubeconfig = None,
    context: Annotated[str | None, Parameter(help="The kubeconfig's context, if not its current one.")] = None,
    nominate: Annotated[bool, Parameter(help="Write planned nodes' names into pending pods (KEP-5278).")] = True,
    settings_from: SettingsFrom = None,
    settings: Annotated[Flags, Parameter(name="*", group=_SETTINGS)] = _NONE,
) -> int:
    """Run the controller on a Kubernetes cluster until it is told to stop (SIGTERM, Ctrl-C).

    It waits for the Lease, reads the record, watches the cluster and acts. Its log
    has Karpenter's lines, as JSON. All that it saw and decided is in the record:
    `kerf log`, `kerf explain`, `kerf verify`. In observe mode it takes no Lease
    and writes nothing to the cluster; `kerf observe report` compares what it
    decided with what Karpenter did.

    For example:

        kerf run --provider kwok --store sqlite:///var/lib/kerf/record.kerf
            --kubeconfig ~/.kube/config
    """
    import asyncio
    import os

    from kerf.adapters.cli.render.lines import print_error
    from kerf.adapters.cli.render.notes import print_gate_notes
    from kerf.adapters.manager.config_maps import environment_with
    from kerf.adapters.manager.manager import ManagerConfig, run_manager
    from kerf.adapters.manager.settings import read_settings
    from kerf.adapters.store.open import require_url

    require_url(store)
    environment, notes = environment_with(settings_from, os.environ)
    for note in notes:
        print_error(f"{settings_from}: {note}")
    options = read_settings(settings, environment)
    print_gate_notes(options.notes)
    config = ManagerConfig(
        observe=mode == "observe",
        provider=provider,
        store=store,
        kubeconfig=kubeconfig or kubeconfig_of_environment(),
        context=context,
        nominate=nominate,
        options=options,
    )
    asyncio.run(run_manager(config))
    return 0
