# What kerf needs in an AWS account for one EKS cluster: the role of its nodes, its own role, the queue of interruptions
# and the rules that fill it. docs/eks.md says what to do before and after.
#
#   module "kerf" {
#     source       = "…/deploy/aws/terraform"
#     cluster_name = "prod"
#   }

terraform {
  required_version = ">= 1.5"
  required_providers {
    aws = {
      source  = "hashicorp/aws"
      version = ">= 5.72"
    }
  }
}

data "aws_caller_identity" "current" {}
data "aws_partition" "current" {}
data "aws_region" "current" {}

locals {
  partition = data.aws_partition.current.partition
  account   = data.aws_caller_identity.current.account_id
  irsa      = var.oidc_provider != ""

  events = {
    spot-interruption        = { source = "aws.ec2", detail_type = "EC2 Spot Instance Interruption Warning" }
    rebalance                = { source = "aws.ec2", detail_type = "EC2 Instance Rebalance Recommendation" }
    state-change             = { source = "aws.ec2", detail_type = "EC2 Instance State-change Notification" }
    reservation-interruption = { source = "aws.ec2", detail_type = "EC2 Capacity Reservation Instance Interruption Warning" }
    scheduled-change         = { source = "aws.health", detail_type = "AWS Health Event" }
  }
}

# ── the nodes ──

resource "aws_iam_role" "node" {
  name = "kerf-node-${var.cluster_name}"
  assume_role_policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Effect    = "Allow"
      Principal = { Service = "ec2.${data.aws_partition.current.dns_suffix}" }
      Action    = "sts:AssumeRole"
    }]
  })
}

resource "aws_iam_role_policy_attachment" "node" {
  for_each = toset([
    "AmazonEKSWorkerNodePolicy",
    "AmazonEKS_CNI_Policy",
    "AmazonEC2ContainerRegistryPullOnly",
    "AmazonSSMManagedInstanceCore",
  ])
  role       = aws_iam_role.node.name
  policy_arn = "arn:${local.partition}:iam::aws:policy/${each.value}"
}

resource "aws_eks_access_entry" "node" {
  cluster_name  = var.cluster_name
  principal_arn = aws_iam_role.node.arn
  type          = "EC2_LINUX"
}

# ── the controller ──

resource "aws_iam_policy" "controller" {
  name = "kerf-${var.cluster_name}"
  policy = templatefile("${path.module}/../../iam/control.json", {
    PARTITION    = local.partition
    REGION       = data.aws_region.current.name
    ACCOUNT_ID   = local.account
    CLUSTER_NAME = var.cluster_name
    NODE_ROLE    = aws_iam_role.node.name
    QUEUE        = aws_sqs_queue.interruptions.name
  })
}

resource "aws_iam_role" "controller" {
  name = "kerf-${var.cluster_name}"
  assume_role_policy = local.irsa ? jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Effect    = "Allow"
      Principal = { Federated = "arn:${local.partition}:iam::${local.account}:oidc-provider/${var.oidc_provider}" }
      Action    = "sts:AssumeRoleWithWebIdentity"
      Condition = {
        StringEquals = {
          "${var.oidc_provider}:aud" = "sts.amazonaws.com"
          "${var.oidc_provider}:sub" = "system:serviceaccount:${var.namespace}:${var.service_account}"
        }
      }
    }]
    }) : jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Effect    = "Allow"
      Principal = { Service = "pods.eks.amazonaws.com" }
      Action    = ["sts:AssumeRole", "sts:TagSession"]
    }]
  })
}

resource "aws_iam_role_policy_attachment" "controller" {
  role       = aws_iam_role.controller.name
  policy_arn = aws_iam_policy.controller.arn
}

resource "aws_eks_pod_identity_association" "controller" {
  count           = local.irsa ? 0 : 1
  cluster_name    = var.cluster_name
  namespace       = var.namespace
  service_account = var.service_account
  role_arn        = aws_iam_role.controller.arn
}

# ── interruptions ──

resource "aws_sqs_queue" "interruptions" {
  name                      = var.cluster_name
  message_retention_seconds = 300
  sqs_managed_sse_enabled   = true
}

resource "aws_sqs_queue_policy" "interruptions" {
  queue_url = aws_sqs_queue.interruptions.url
  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [
      {
        Sid       = "EventsSend"
        Effect    = "Allow"
        Principal = { Service = "events.amazonaws.com" }
        Action    = "sqs:SendMessage"
        Resource  = aws_sqs_queue.interruptions.arn
        Condition = { ArnEquals = { "aws:SourceArn" = [for rule in aws_cloudwatch_event_rule.interruptions : rule.arn] } }
      },
      {
        Sid       = "OnlyEncrypted"
        Effect    = "Deny"
        Principal = "*"
        Action    = "sqs:*"
        Resource  = aws_sqs_queue.interruptions.arn
        Condition = { Bool = { "aws:SecureTransport" = "false" } }
      },
    ]
  })
}

resource "aws_cloudwatch_event_rule" "interruptions" {
  for_each      = local.events
  name_prefix   = "kerf-${each.key}-"
  event_pattern = jsonencode({ source = [each.value.source], "detail-type" = [each.value.detail_type] })
}

resource "aws_cloudwatch_event_target" "interruptions" {
  for_each = aws_cloudwatch_event_rule.interruptions
  rule     = each.value.name
  arn      = aws_sqs_queue.interruptions.arn
}
