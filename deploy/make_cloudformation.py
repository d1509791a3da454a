"""Writes deploy/iam/control.json into the CloudFormation template: CloudFormation cannot read a file beside it."""

from __future__ import annotations

import re
from pathlib import Path

HERE = Path(__file__).resolve().parent
TEMPLATE, POLICY = HERE / "aws" / "cloudformation.yaml", HERE / "iam" / "control.json"
_TEXT = re.compile(r"(?<=          - \|\n)(.*?)(?=^          - PARTITION:)", re.DOTALL | re.MULTILINE)


def with_policy(template: str, policy: str) -> str:
    """The template with the policy's text as what Fn::Sub replaces in."""
    text = "".join(f"            {line}\n" for line in policy.splitlines())
    made, found = _TEXT.subn(lambda _: text, template)
    assert found == 1, "the template has no place for the policy"
    return made


if __name__ == "__main__":
    TEMPLATE.write_text(with_policy(TEMPLATE.read_text(), POLICY.read_text()))
