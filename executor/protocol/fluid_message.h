// The only message of Fluid's wire, `sendrecv.VariableMessage`: a name with a tensor, with selected rows, or
// alone.
//
//   VariableMessage message{.varname = "w@GRAD.trainer_1", .trainer_id = 1};
//   message.tensor = FluidTensor::Of(gradient);                              // shares its memory
//   PENSTOCK_ASSIGN_OR_RETURN(const Payload bytes, WriteVariableMessage(message));
//   PENSTOCK_ASSIGN_OR_RETURN(const VariableMessage got, ReadVariableMessage(bytes));
//
// The order of the fields is part of the format: 1 to 7, 10 to 13, then the values (8) and the row numbers
// (9). Everything that Fluid 1.8.5 writes can be read; messages on which its own parser aborts are errors
// here. Values are shared with the message in both directions, never copied.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "framework/base/status.h"
#include "framework/runtime/transport.h"
#include "framework/tensor/tensor.h"

namespace penstock::protocol {

// The additional fields of selected rows: the row number of each row of the tensor.
struct FluidRows {
  std::int64_t height = 0;  // rows of the whole variable
  Payload numbers;          // int64
};

struct FluidTensor {
  DType dtype = DType::kFp32;
  Shape shape;
  LoD lod = {};
  Payload values;  // as many bytes as dtype and shape say
  std::optional<FluidRows> rows = {};

  static FluidTensor Of(const Tensor& tensor);
};

struct VariableMessage {
  std::string varname;
  std::optional<FluidTensor> tensor = {};
  std::string out_varname = {};  // of a request: the variable name to use in the answer
  std::int64_t profile = 0;      // 1: the trainer's profiler is on; 2: off again
  std::int64_t trainer_id = 0;   // omitted if 0
  std::string table_name = {};
};

// Names of Fluid's protocol.
inline constexpr char kFluidService[] = "sendrecv.SendRecvService";
inline constexpr char kBatchBarrier[] = "BATCH_BARRIER@RECV";
inline constexpr char kFetchBarrier[] = "FETCH_BARRIER@RECV";
inline constexpr char kFluidComplete[] = "COMPLETE@RECV";
inline constexpr char kSaveNotify[] = "SAVE@CHECKPOINTNOTIFY";
inline constexpr char kWithoutBarrier[] = "@WITHOUT_BARRIER@RECV";  // suffix of a GetVariableNoBarrier

// kInvalidArgument E-wire-large: the message would have 2 GiB or more, which Fluid's wire cannot carry.
Result<Payload> WriteVariableMessage(const VariableMessage& message);

// kDataLoss. E-wire-message: truncated, a length exceeds the remaining bytes, or too long. E-wire-field: a
// field or an element type unknown to Fluid. E-wire-order: the values come before the fields that describe
// them. E-wire-size: shape, values, rows and lod contradict each other. An empty message is valid: it has no
// name and no tensor. Never allocates by a size that is only claimed.
Result<VariableMessage> ReadVariableMessage(const Payload& message);

}  // namespace penstock::protocol
