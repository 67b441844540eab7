// Runs long work away from the thread that holds Python, so that Ctrl-C is seen while it lasts.
#pragma once

#include <functional>

namespace penstock::python {

// Runs `work` on a worker thread and waits for it with the GIL released, looking for signals every 100 ms. If
// one raises (Ctrl-C), `cancel` is called, `work` is waited for, and the Python error is thrown. `work` must
// not touch Python without taking the GIL; what it calls there may run work of its own, 100 deep at most
// (E-run-depth). The same worker serves successive calls of a thread, so that its OpenMP team is kept; a
// process that was forked makes its own.
void RunInterruptibly(const std::function<void()>& work, const std::function<void()>& cancel);

// At the interpreter's end, from its main thread with the GIL held: daemon threads that run something still
// are cancelled and never enter Python again, which would end them within C++.
void LeaveRunsBehind();

}  // namespace penstock::python
