"""A virtual cluster, cloud and clock with fault injection, and the driver that runs turns in virtual time.

`build` makes a world of documents, `driver` runs it. `cluster` holds the API server and its controllers, `scheduler`
binds pods, `cloud` sells instances, `timeline` makes things happen at their times, `documents` reads what
`kubectl apply` would. `faults` says what goes wrong; all chance comes from `seeded_random`.

Implements ports of `engine.runtime`. Imports the engine's model, record and ports, no decider.
"""
