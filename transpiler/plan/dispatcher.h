// A placement of the user's own: who gets which slice. Fluid's PSDispatcher.
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
// It is called as Fluid calls it: made once; Dispatch for each gradient with its pieces, in the order of the
// plan's send_order; Reset; Dispatch once for the pieces of all parameters in the same order. The answers to
// the last call are the placement, for both directions. (compat: a gradient travels where it was dispatched
// to, though its parameter be elsewhere, and a dispatcher is made for each trainer, whose names it is given.)
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "framework/base/status.h"
#include "framework/tensor/dtype.h"
#include "framework/tensor/shape.h"

namespace penstock::plan {

// A slice of a parameter or a gradient, as it is called in role programs.
struct Piece {
  std::string name;
  DType dtype = DType::kFp32;
  Shape shape;
  bool sparse = false;  // selected rows
};

class Dispatcher {
 public:
  virtual ~Dispatcher() = default;
  // One of the pservers' addresses for each piece. Errors end the transpile.
  virtual Result<std::vector<std::string>> Dispatch(const std::vector<Piece>& pieces) = 0;
  // Forgets the calls before: what follows is placed from the start.
  virtual Status Reset() = 0;
};

using DispatcherFactory =
    std::function<Result<std::unique_ptr<Dispatcher>>(const std::vector<std::string>& pservers)>;

}  // namespace penstock::plan
