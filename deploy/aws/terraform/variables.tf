variable "cluster_name" {
  description = "The EKS cluster"
  type        = string
}

variable "namespace" {
  description = "The namespace of kerf's ServiceAccount"
  type        = string
  default     = "kerf"
}

variable "service_account" {
  description = "The name of kerf's ServiceAccount"
  type        = string
  default     = "kerf"
}

variable "oidc_provider" {
  description = "The cluster's OIDC provider without https://, for IRSA; empty for EKS Pod Identity"
  type        = string
  default     = ""
}
