"""Requests that are not about groups, forwarded to the cluster's brokers: clients see nodes alone."""
