// Functions of the host language (Python) that ops call by number (py_func). A program stores only the
// number: it can run in a process that has added the same functions in the same order.
//
//   const int number = HostFunctions::Add({"clip", [](std::vector<Tensor> in) -> Result<...> { ... }});
//   const HostFunction* function = HostFunctions::Find(number);   // null if there is none
//   PENSTOCK_ASSIGN_OR_RETURN(std::vector<Tensor> out, function->call({x, y}));
//
// Thread-safe. Functions stay until the process ends.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "framework/base/status.h"
#include "framework/tensor/tensor.h"

namespace penstock {

struct HostFunction {
  std::string name;  // for messages
  // An uninitialised tensor stands for a missing value, as argument and as result.
  std::function<Result<std::vector<Tensor>>(std::vector<Tensor>)> call;
};

class HostFunctions {
 public:
  // The numbers are 0, 1, 2, ...
  static int Add(HostFunction function);
  static const HostFunction* Find(int number);
  static int count();
};

}  // namespace penstock
