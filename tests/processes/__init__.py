"""What processes share: memory, a lock that survives its holder, sleep, and who is alive."""
