---- MODULE Bugs ----
EXTENDS ReplayBufferProperties
====
