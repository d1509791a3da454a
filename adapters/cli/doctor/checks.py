"""All checks of `kerf doctor`, in their order."""

from __future__ import annotations

import asyncio
from pathlib import Path

from kerf.adapters.cli.doctor.cluster import check_cluster
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
    if provider == "aws":
        findings += await asyncio.to_thread(_check_account, mode, options)
    try:
        session = await connect(kubeconfig, context, qps=options.qps, burst=options.burst)
    except NoCluster as error:
        return [*findings, Finding("api server", BAD, str(error))]
    try:
        async for finding in check_cluster(session, mode, provider, options):
            findings.append(finding)
    except (ClusterError, Unreachable) as error:
        findings.append(Finding("api server", BAD, str(error)))
    finally:
        await session.close()
    return findings


def _check_account(mode: str, options: Options) -> list[Finding]:
    """Imports boto3 only where it is used."""
    from kerf.adapters.cli.doctor.aws_account import check_account

    return check_account(options.aws, observe=mode == "observe")
