"""The APIs of a node. One module per family; each has `register(services) -> dict[api_key, Handler]`."""
