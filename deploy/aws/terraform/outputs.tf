output "node_role_name" {
  description = "For spec.role of the EC2NodeClasses"
  value       = aws_iam_role.node.name
}

output "controller_role_arn" {
  description = "For the ServiceAccount's annotation, with IRSA"
  value       = aws_iam_role.controller.arn
}

output "interruption_queue_name" {
  description = "For settings.interruptionQueue"
  value       = aws_sqs_queue.interruptions.name
}
