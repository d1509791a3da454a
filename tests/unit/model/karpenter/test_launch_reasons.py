"""Karpenter's names for why EC2 refuses a launch (A-299 to A-313)."""

import pytest

from kerf.engine.model.karpenter.launch_reasons import NO_SPOT_ROLE, launch_reason


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(f"{NO_SPOT_ROLE}: no", "SpotSLRCreationFailed", id="A-300"),
        pytest.param("UnauthorizedOperation: no", "Unauthorized", id="A-301"),
        pytest.param("AuthFailure: Not authorized for images: [ami-1]", "AMIAuthorizationFailure", id="A-301 image"),
        pytest.param(
            "InvalidParameter: sg and subnet belong to different networks", "SecurityGroupSubnetVPCMismatch", id="A-302"
        ),
        pytest.param("x: Value for iamInstanceProfile.name is invalid", "InstanceProfileNameInvalid", id="A-303"),
        pytest.param("InvalidLaunchTemplateId.NotFound: x", "LaunchTemplateNotFound", id="A-304"),
        pytest.param("x: User data is limited to 16384 bytes", "UserDataSizeLimitExceeded", id="A-305"),
        pytest.param("InvalidAMIID.NotFound: x", "AMINotFound", id="A-306"),
        pytest.param("InvalidAMIID.Malformed: x", "InvalidAMIID", id="A-306 malformed"),
        pytest.param("RequestLimitExceeded: x", "RequestLimitExceeded", id="A-307"),
        pytest.param("InternalError: x", "InternalError", id="A-307 internal"),
        pytest.param("x: not eligible for Free Tier", "FreeTierIneligible", id="A-308"),
        pytest.param("MaxFleetCountExceeded: x", "FleetQuotaExceeded", id="A-309"),
        pytest.param("PendingVerification: x", "AccountPendingVerification", id="A-310"),
        pytest.param("MaxSpotInstanceCountExceeded: x", "SpotQuotaExceeded", id="A-311"),
        pytest.param("VcpuLimitExceeded: x", "VCPULimitExceeded", id="A-311 vcpu"),
        pytest.param("InsufficientFreeAddressesInSubnet: x", "InsufficientFreeAddressesInSubnet", id="A-312"),
        pytest.param("InsufficientInstanceCapacity: x", "LaunchFailed", id="A-313"),
        pytest.param("", "LaunchFailed", id="A-313 empty"),
    ],
)
def test_a299_an_error_has_the_reason_of_the_first_part_that_matches(text: str, expected: str) -> None:
    assert launch_reason(text) == expected
