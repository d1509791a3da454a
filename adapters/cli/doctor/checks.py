"""All checks of `kerf doctor`, in their order."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path
from typing import Any

from kerf.adapters.cli.doctor.cluster import check_cluster, node_class_objects
from kerf.adapters.cli.doctor.finding import BAD, Finding
from kerf.adapters.cli.doctor.record import check_record
from kerf.adapters.kubernetes.errors import ClusterError, NoCluster, Unreachable
from kerf.adapters.kubernetes.session import connect
from kerf.adapters.manager.settings import Options


async def check_all(
    mode: str, provider: str, store: str, kubeconfig: Path | None, context: str | None, options: Options
) -> list[Finding]:
    """What keeps kerf from running, or should be looked at. `store` is the record's URL, "" to leave it out."""
    findings = check_record(store) if store else []
    node_classes: list[dict[str, Any]] = []
    try:
        session = await connect(kubeconfig, context, qps=options.qps, burst=options.burst)
    except NoCluster as error:
        findings.append(Finding("api server", BAD, str(error)))
    else:
        try:
            async for finding in check_cluster(session, mode, provider, options):
                findings.append(finding)
            if provider == "aws":
                with suppress(ClusterError):  # that they are not served is a finding already
                    node_classes = await node_class_objects(session, provider)
        except (ClusterError, Unreachable) as error:
            findings.append(Finding("api server", BAD, str(error)))
        finally:
            await session.close()
    if provider == "aws":
        findings += await asyncio.to_thread(_check_account, mode, options, node_classes)
    return findings


def _check_account(mode: str, options: Options, node_classes: list[dict[str, Any]]) -> list[Finding]:
    """Imports boto3 only where it is used."""
    from kerf.adapters.cli.doctor.aws_account import check_account

    return check_account(options.aws, node_classes, observe=mode == "observe")
