"""What `kerf doctor --provider aws` checks in the account. It changes nothing: it calls DescribeCluster and
GetQueueUrl, and makes dry runs."""

from __future__ import annotations

from botocore.exceptions import BotoCoreError

from kerf.adapters.aws.account import NoRegion, eks_cluster, probe, region
from kerf.adapters.aws.session import AwsError, Clients, ReadingClients, call
from kerf.adapters.cli.doctor.finding import BAD, NOTE, OK, Finding
from kerf.adapters.manager.settings import AwsOptions

READS = (
    "capacity_reservations", "images", "instance_status", "instance_type_offerings", "instance_types", "instances",
    "launch_templates", "placement_groups", "security_groups", "spot_price_history", "subnets",
)  # fmt: skip
"""What kerf describes in EC2 (A-390)."""
DENIED = ("UnauthorizedOperation", "AccessDenied")
_POLICY = "docs/install.md has the policy that kerf's role needs"


def check_account(options: AwsOptions, *, observe: bool) -> list[Finding]:
    """The findings of the account. Blocks while AWS answers."""
    if not options.cluster:
        return [Finding("aws", BAD, "CLUSTER_NAME is not set", "It is in the tags of all that kerf makes")]
    try:
        where = region()
        clients = ReadingClients(where)
        probe(clients)
    except NoRegion as error:
        return [Finding("aws", BAD, str(error))]
    except (AwsError, BotoCoreError) as error:
        hint = "Its credentials come from the pod's service account, the environment, or ~/.aws"
        return [Finding("aws", BAD, f"EC2 does not let kerf in: {error}", hint)]
    findings = [Finding("aws", OK, f"EC2 answers in {where}"), _reads(clients), _cluster(clients, options)]
    return findings if observe else [*findings, _queue(clients, options)]


def _reads(clients: Clients) -> Finding:
    missing = []
    for what in READS:
        try:
            call(getattr(clients.ec2, f"describe_{what}"), DryRun=True)
        except AwsError as error:
            if error.aws_code in DENIED:
                missing.append("ec2:Describe" + what.title().replace("_", ""))
    if missing:
        return Finding("aws rights", BAD, f"not allowed: {', '.join(missing)}", _POLICY)
    return Finding("aws rights", OK, f"all {len(READS)} kinds that kerf looks at in EC2 may be described")


def _cluster(clients: Clients, options: AwsOptions) -> Finding:
    try:
        known = eks_cluster(clients, options.cluster)
    except AwsError as error:
        text = f"EKS does not tell of {options.cluster}: {error}"
        if options.endpoint:
            return Finding("eks", NOTE, text, "Classes of AL2023 are not ready without the services' CIDR")
        return Finding("eks", BAD, text, "Allow eks:DescribeCluster, or give CLUSTER_ENDPOINT")
    return Finding("eks", OK, f"{options.cluster} {known.version} at {options.endpoint or known.endpoint}")


def _queue(clients: Clients, options: AwsOptions) -> Finding:
    if not options.interruption_queue:
        return Finding("queue", NOTE, "INTERRUPTION_QUEUE is not set: kerf does not hear of interruptions")
    try:
        call(clients.sqs.get_queue_url, QueueName=options.interruption_queue)
    except AwsError as error:
        return Finding("queue", BAD, f"{options.interruption_queue}: {error}", _POLICY)
    return Finding("queue", OK, f"{options.interruption_queue} is there")
