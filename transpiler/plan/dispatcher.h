// The user's own rule for placing slices on pservers; Fluid's PSDispatcher.
//
//   class Last : public Dispatcher {
//     Result<std::vector<std::string>> Dispatch(const std::vector<Piece>& pieces) override {
//       return std::vector<std::string>(pieces.size(), pservers_.back());
//     }
//     Status Reset() override { return OkStatus(); }
//     ...
//   };
//   config.dispatcher = [](const std::vector<std::string>& pservers) -> Result<std::unique_ptr<Dispatcher>> {
//     return std::unique_ptr<Dispatcher>(new Last(pservers));
//   };
//
// The calls are the same as Fluid's: the factory once; Dispatch for each gradient with its pieces, in the
// order of the plan's send_order; Reset; Dispatch once for the pieces of all parameters, in the same order.
// The answer to the last call is the placement, for both directions. In compat, a gradient is sent to the
// pserver to which it was dispatched, even if its parameter is elsewhere, and the factory makes a dispatcher
// for each trainer, which gets that trainer's names.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "framework/base/status.h"
#include "framework/tensor/dtype.h"
#include "framework/tensor/shape.h"

namespace penstock::plan {

// A slice of a parameter or a gradient, with its name in role programs.
struct Piece {
  std::string name;
  DType dtype = DType::kFp32;
  Shape shape;
  bool sparse = false;  // selected rows
};

class Dispatcher {
 public:
  virtual ~Dispatcher() = default;
  // Returns one of the pservers' addresses for each piece. An error ends the transpile.
  virtual Result<std::vector<std::string>> Dispatch(const std::vector<Piece>& pieces) = 0;
  // Forgets earlier calls: the next call places from the start.
  virtual Status Reset() = 0;
};

using DispatcherFactory =
    std::function<Result<std::unique_ptr<Dispatcher>>(const std::vector<std::string>& pservers)>;

}  // namespace penstock::plan
