"""`kerf ui`: the explorer, a page on which a record is seen."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from kerf.adapters.cli.completion import candidates
from kerf.adapters.cli.parameters import RECORD, Kubeconfig, Until, kubeconfig_of_environment, when


def ui(
    record: Annotated[str, Parameter(help=RECORD, completer=candidates.records, env_var="KERF_STORE")] = "",
    /,
    *,
    port: Annotated[int, Parameter(help="The port on 127.0.0.1; 0 for any that is free.")] = 0,
    open: Annotated[bool, Parameter(negative="", help="Open the page in the browser.")] = False,
    cluster: Annotated[
        bool, Parameter(negative="", help="Show the record of the kerf that runs in a cluster, live.")
    ] = False,
    namespace: Annotated[str, Parameter(help="With --cluster: the namespace that kerf runs in.")] = "kerf",
    tokens: Annotated[
        Literal["link", "cluster"],
        Parameter(help="Whose token is taken: the printed link's, or whomever the API server lets read."),
    ] = "link",
    kubeconfig: Kubeconfig = None,
    context: Annotated[str | None, Parameter(help="The kubeconfig's context, if not its current one.")] = None,
    export: Annotated[Path | None, Parameter(help="Write the page as files into this new folder instead.")] = None,
    from_: Annotated[str, Parameter(name="--from"), when("With --export: begin there")] = "start",
    until: Until = "end",
) -> None:
    """Show a record on a page of this machine: nodes and pods through time, with the reason for everything.

    The link that it prints has a token; nobody without it can read. The page loads
    nothing from the internet, and nothing can be changed on it. Ctrl-C ends it.
    With --cluster it forwards the port of the explorer in your cluster (a flag of
    the chart) and sends your kubeconfig's token. --tokens cluster is for that one.
    With --export it writes the page of an incident as files, which a browser opens
    from disk: to attach to a post-mortem.

    For example:

        kerf ui record.kerf --open
        kerf ui incident.kerfb --port 8080
        kerf ui --cluster --context prod
        kerf ui incident.kerfb --export page --from 10:00 --until 10:30
    """
    import os

    from kerf.engine.errors import InputError, extra_hint

    named = record and not (cluster and record == os.environ.get("KERF_STORE"))
    if bool(named) == cluster:
        raise InputError("name a record, or give --cluster", hint="kerf ui record.kerf", code="KERF200")
    if cluster and export is not None:
        raise InputError("--export writes the page of a record, not of a cluster", hint="Name a record", code="KERF200")
    if export is None and (from_, until) != ("start", "end"):
        hint = "Give --export FOLDER with them; the page itself shows any part of the record"
        raise InputError("--from and --until are of an exported page", hint=hint, code="KERF200")
    try:
        from kerf.adapters.web.serve import serve
    except ImportError as error:
        raise InputError(
            f"the explorer needs another package ({error})",
            hint=extra_hint("ui"),
            code="KERF861",
        ) from error
    if export is not None:
        from kerf.adapters.web.export.folder import export as write_page

        return write_page(record, export, from_, until)
    if not cluster and tokens == "link":
        return serve(record, port, open_page=open)
    kubeconfig = kubeconfig or kubeconfig_of_environment()
    if not cluster:
        from kerf.adapters.web.cluster.in_cluster import serve_in_cluster

        return serve_in_cluster(record, port, kubeconfig, context)
    from kerf.adapters.web.cluster.forwarding import Cluster, serve_forwarded

    return serve_forwarded(Cluster(kubeconfig, context, namespace), port, open_page=open)
