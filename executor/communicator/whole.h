// Gradients and parameters as the communicator holds them: whole, with a handle for each server's rows.
//
//   PENSTOCK_RETURN_IF_ERROR(PushRows(rpc, gradient, value, {}));   // sends each server its rows of `value`
//   PENSTOCK_RETURN_IF_ERROR(PullRows(rpc, param, w));              // receives each server's rows into w
#pragma once

#include <string>
#include <vector>

#include "framework/runtime/rpc_steps.h"
#include "framework/runtime/trainer_communicator.h"

namespace penstock::communicator {

struct Gradient {
  WholeVariable whole;
  std::vector<PushHandle> pieces;  // by position in whole.pieces
};

struct Param {
  WholeVariable whole;
  std::vector<PullHandle> pieces;
  std::vector<Variable> views = {};  // rows of the tensor being filled; needed until the replies have come
};

// A table whose touched rows a program reports.
struct Table {
  std::string name;
  std::size_t index = 0;  // in the order of declaration
};

// A copy of a gradient with memory of its own: the trainer overwrites that of `value` in the next step.
Variable CopyOf(const Variable& value);

// Pushes rows of `value` to their servers without copying a tensor: its bytes must not change until the
// client reports their arrival. Of a sparse gradient each server gets the rows that it holds, numbered from
// its own first row, in their order. kInvalidArgument E-send-kind: neither tensor nor selected rows.
// `residual`, if not empty, belongs to the whole gradient, which is then compressed.
Status PushRows(rpc::Steps& rpc, const Gradient& gradient, const Variable& value, const Tensor& residual);

// Requests all pieces into rows of `out`, which is reallocated if its type or shape differs. They have
// arrived when the client's CompletePulls returns.
Status PullRows(rpc::Steps& rpc, Param& param, Tensor& out);

}  // namespace penstock::communicator
