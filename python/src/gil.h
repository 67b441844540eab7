// Releasing Python's GIL so that the end of the interpreter cannot abort the process.
#pragma once

#include <Python.h>
#include <cxxabi.h>
#include <unistd.h>

namespace penstock::python {

// Releases the GIL for its lifetime.
//
//   const GilReleased others;       // the calling thread holds the GIL
//   queue.Push(std::move(batch));   // other Python threads run meanwhile
//
// Once the interpreter ends, CPython before 3.14 ends a daemon thread that asks for the GIL by pthread_exit,
// which unwinds the stack. The destructor of py::gil_scoped_release must not throw, so the process aborts
// there; further up, Python objects would be released without the GIL. Here such a thread stops for good, as
// in CPython 3.14.
class GilReleased {
 public:
  GilReleased() : state_(PyEval_SaveThread()) {}
  ~GilReleased() noexcept(false) {
    try {
      PyEval_RestoreThread(state_);
    } catch (const abi::__forced_unwind&) {
      while (true) pause();
    }
  }
  GilReleased(const GilReleased&) = delete;
  GilReleased& operator=(const GilReleased&) = delete;

 private:
  PyThreadState* state_;
};

}  // namespace penstock::python
