// Gradients and parameters as the communicator holds them: whole, with the handle of each server's rows.
//
//   PENSTOCK_RETURN_IF_ERROR(PushRows(rpc, gradient, value, {}));   // each server its rows of `value`
//   PENSTOCK_RETURN_IF_ERROR(PullRows(rpc, param, w));          // each server's rows into w's own memory
#pragma once

#include <string>
#include <vector>

#include "framework/runtime/rpc_client.h"
#include "framework/runtime/trainer_communicator.h"

namespace penstock::communicator {

struct Gradient {
  WholeVariable whole;
  std::vector<PushHandle> pieces;  // by position in whole.pieces
};

struct Param {
  WholeVariable whole;
  std::vector<PullHandle> pieces;
  std::vector<Variable> views = {};  // of the tensor that is filled; what arrives late needs them
};

// One of which a program tells what it touches.
struct Table {
  std::string name;
  std::size_t index = 0;  // tables are numbered as they are declared
};

// Pushes rows of `value` to their servers, without a copy of a tensor: the bytes stay as they are until the
// client says that they arrived. Of a gradient of rows each server gets those that it holds, numbered from
// its own first row, in the order in which they come. kInvalidArgument E-send-kind: neither tensor nor rows.
// `residual`, if it is not empty, is that of the whole gradient, which is compressed.
Status PushRows(RpcClient& rpc, const Gradient& gradient, const Variable& value, const Tensor& residual);

// Asks for all pieces, into rows of `out`, which is made if it has another type or shape. They are there
// when the client's CompletePulls returns.
Status PullRows(RpcClient& rpc, Param& param, Tensor& out);

}  // namespace penstock::communicator
