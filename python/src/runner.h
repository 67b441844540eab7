// Runs work with the GIL released so that Ctrl-C is seen while it lasts: on the calling thread what does not
// wait, away from it what may.
#pragma once

#include <functional>

namespace penstock::python {

// Runs `work` on a worker thread and waits for it with the GIL released, looking for signals every 100 ms. If
// one raises (Ctrl-C), `cancel` is called, `work` is waited for, and the Python error is thrown. `work` must
// not touch Python without taking the GIL; what it calls there may run work of its own, 100 deep at most
// (E-run-depth). The same worker serves successive calls of a thread, so that its OpenMP team is kept; a
// process that was forked makes its own.
void RunInterruptibly(const std::function<void()>& work, const std::function<void()>& cancel);

// Runs `work` on the calling thread, with the GIL released: for work that may take long but does not wait,
// and that asks `interrupted` every now and then. That looks for signals every 100 ms; once one has raised
// (Ctrl-C), or the interpreter is about to end, it says yes, `work` returns, and the Python error is thrown.
// Handing over to another thread and back costs several times what a small program does.
//
// Work within other work, and work of a process that was forked, goes to a worker as by RunInterruptibly: the
// OpenMP team of a thread is lost in a child process.
void RunHere(const std::function<void(const std::function<bool()>& interrupted)>& work);

// At the interpreter's end, from its main thread with the GIL held: daemon threads that run something still
// are cancelled and never enter Python again, which would end them within C++.
void LeaveRunsBehind();

}  // namespace penstock::python
