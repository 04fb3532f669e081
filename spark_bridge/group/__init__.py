"""The driver-side worker: membership, the batch in flight, and where each partition goes on."""
