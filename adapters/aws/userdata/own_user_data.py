"""What is wrong with the user data of an EC2NodeClass, whatever the cluster and the claim are (A-63, A-131). Pure."""

from __future__ import annotations

import base64

from kerf.adapters.aws.userdata.boot import Boot
from kerf.adapters.aws.userdata.user_data import user_data
from kerf.engine.errors import InputError
from kerf.engine.model.karpenter.ec2nodeclasses import EC2NodeClass
from kerf.engine.model.manifests.violations import Violation

LONGEST = 16_384
"""Bytes of user data that EC2 takes, before they are written as base64 (A-261)."""


def user_data_problem(node_class: EC2NodeClass) -> Violation | None:
    """Why no node can boot with the user data of a class; None if nothing is known against it. The message holds
    nothing of the user data, in which passwords may stand."""
    spec = node_class.spec
    boot = Boot(
        family=node_class.ami_family,
        cluster="",
        endpoint="",
        ca_bundle="",
        max_pods=0,
        custom=spec.user_data,
        raid0=spec.instance_store_policy == "RAID0",
    )
    try:
        size = len(base64.b64decode(user_data(boot)))
    except InputError as error:
        return Violation(error.code, error.where, error.message, error.hint)
    if size <= LONGEST:
        return None
    # What kerf adds of cluster and node makes it longer still: this much is certain.
    message = f"the user data has {size} bytes with the least that kerf adds, and EC2 takes {LONGEST}"
    return Violation("KERF521", "spec.userData", message, "Load what is long from elsewhere when the node boots")
