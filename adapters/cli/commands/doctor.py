"""`kerf doctor`: whether a cluster, and the place of the record, are as `kerf run` needs them."""

from __future__ import annotations

from typing import Annotated, Literal

from cyclopts import Parameter

from kerf.adapters.cli.parameters import Json, Kubeconfig, SettingsFrom, kubeconfig_of_environment
from kerf.adapters.manager.flags import Flags

_FLAGS = Flags()


def doctor(
    *,
    mode: Annotated[Literal["control", "observe"], Parameter(env_var="KERF_MODE")] = "control",
    provider: Annotated[Literal["kwok", "aws"], Parameter(env_var="KERF_PROVIDER")] = "kwok",
    store: Annotated[str, Parameter(env_var="KERF_STORE")] = "",
    kubeconfig: Kubeconfig = None,
    context: str | None = None,
    settings_from: SettingsFrom = None,
    settings: Annotated[Flags, Parameter(name="*", group="Settings")] = _FLAGS,
    json: Json = False,
) -> int:
    """Check whether everything is there that `kerf run` needs, with the same flags; nothing is changed.

    Checked are the API server and its version, this clock against its clock, the
    rights of whoever asks, the custom resources, the NodeClasses that NodePools
    name, who holds the Lease, whether the record can be written, and with
    `--provider aws` each right in the account, with what stops without it. Exit
    codes: 0 all is well, 1 something keeps kerf from running.

    For example:

        kubectl exec deploy/kerf -- kerf doctor

    Parameters
    ----------
    mode
        The mode in which kerf will run: observe needs fewer rights.
    provider
        Where nodes will come from.
    store
        The record's URL, if that is to be looked at.
    context
        The kubeconfig's context, if not its current one.
    json
        Print the findings as JSON.
    """
    import asyncio
    import os

    from kerf.adapters.cli.boundary import reader_may_leave
    from kerf.adapters.cli.doctor.checks import check_all
    from kerf.adapters.cli.doctor.finding import BAD
    from kerf.adapters.cli.render.findings import findings_text
    from kerf.adapters.cli.render.lines import print_error
    from kerf.adapters.cli.render.notes import print_gate_notes
    from kerf.adapters.cli.render.output import Printer, emit_json
    from kerf.adapters.manager.config_maps import environment_with
    from kerf.adapters.manager.settings import read_settings

    environment, notes = environment_with(settings_from, os.environ)
    for note in notes:
        print_error(f"{settings_from}: {note}")
    options = read_settings(settings, environment)
    print_gate_notes(options.notes)
    kubeconfig = kubeconfig or kubeconfig_of_environment()
    findings = asyncio.run(check_all(mode, provider, store, kubeconfig, context, options))
    with reader_may_leave():
        if json:
            emit_json(findings)
        else:
            findings_text(Printer(), findings)
    return int(any(finding.level == BAD for finding in findings))
