// Functions of the language that a program was written in, which its ops call by number (py_func). A program
// holds nothing of them but the number: it runs in a process that has added the same ones in the same order.
//
//   const int number = HostFunctions::Add({"clip", [](std::vector<Tensor> in) -> Result<...> { ... }});
//   const HostFunction* function = HostFunctions::Find(number);   // null: none of that number
//   PENSTOCK_ASSIGN_OR_RETURN(std::vector<Tensor> out, function->call({x, y}));
//
// Thread-safe. What was added stays until the process ends.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "framework/base/status.h"
#include "framework/tensor/tensor.h"

namespace penstock {

struct HostFunction {
  std::string name;  // for messages
  // A tensor that is not initialized stands for no value, in both directions.
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
