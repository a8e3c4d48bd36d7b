"""A device without a GPU: what is queued runs when an adversary says so, and is checked."""
