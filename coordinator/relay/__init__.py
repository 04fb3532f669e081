"""What is not about groups is passed on to the brokers of the cluster, with nodes in the brokers' place."""
