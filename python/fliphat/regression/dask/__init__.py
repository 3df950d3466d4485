"""A fit over a dask array: rows stay with the workers, integer sums come back, noise is added here, once.

Each iteration sends the public estimate to the workers, which sum the clipped gradients of their blocks in
integers; a tree of additions, on the workers as well, leaves one vector of sums for the client.

**The noise is never a Dask task.** A scheduler runs tasks again when it likes: when a worker is lost, when
its result was dropped, when two workers race for it. Run again, a noise step would release the same rows
under fresh noise, at twice the cost. So tasks are pure functions up to the integer sums, and what draws noise
is a plain call in the client's process, made once for each iteration, on sums that are complete.

What fails before the first iteration's sums are complete has drawn no noise and spent nothing. What fails
later has drawn some: the estimates so far are dropped unseen, so nothing was released, but workers were sent
them. The exception then carries a note that says so.

Keys of tasks are random: Dask shows keys in logs and dashboards, and its own would be hashes of the targets.

| file | what it holds |
|---|---|
| `arrays` | dask arrays, looked at for their structure only |
| `blocks` | what a worker does with its block of rows: pure functions without noise |
| `cluster` | tasks, and whichever scheduler runs them |
| `fit` | one fit: sums from the workers, noise in this process |
"""
