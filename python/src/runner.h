// Runs work with the GIL released, and reacts to Ctrl-C while it runs: RunHere on the calling thread, for
// work that does not wait; RunInterruptibly on a worker thread, for work that may wait.
#pragma once

#include <functional>

namespace penstock::python {

// Runs `work` on a worker thread, waits for it with the GIL released, and checks for signals every 100 ms. If
// a signal handler raises (Ctrl-C), calls `cancel`, again every 100 ms until `work` has ended, and throws the
// Python error.
//
// `work` must acquire the GIL before it uses Python. Python code that it calls may call this function again,
// at most 100 levels deep; beyond that, it throws StateError E-run-depth. Throws StateError E-run-late once
// the interpreter is about to end. The last worker that became idle is used first, so successive calls of one
// thread keep the same OpenMP team. A forked process creates its own workers.
void RunInterruptibly(const std::function<void()>& work, const std::function<void()>& cancel);

// Runs `work` on the calling thread, with the GIL released. Use it for work that may take long but does not
// wait: a switch to another thread and back costs several times as much as a run of a small program.
//
// `work` must call `interrupted` regularly, and return soon after it has returned true. `interrupted` checks
// for signals every 100 ms; it returns true once a signal handler has raised (Ctrl-C) or the interpreter is
// about to end. The Python error is thrown after `work` has returned. Errors: E-run-late, as
// RunInterruptibly.
//
// Work inside other work, and work of a forked process, runs on a worker as in RunInterruptibly, because a
// forked process loses the OpenMP team of its thread.
void RunHere(const std::function<void(const std::function<bool()>& interrupted)>& work);

// Call it at the interpreter's end, from its main thread with the GIL held. Cancels the runs of daemon
// threads; these threads never enter Python again, because Python would end them inside C++. Waits for them
// for at most 5 s.
void LeaveRunsBehind();

}  // namespace penstock::python
