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
// At the interpreter's end, CPython before 3.14 ends a daemon thread that requests the GIL with pthread_exit,
// which unwinds the stack. The destructor of py::gil_scoped_release must not throw, so the process would
// abort there; further up the stack, Python objects would be released without the GIL. With this class such a
// thread stops forever, as in CPython 3.14.
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
