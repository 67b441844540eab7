// Sums, copies and gathers tensors across the processes of one job. One Communicator for each device and
// process.
//
//   PENSTOCK_RETURN_IF_ERROR(comm->AllReduceSum(grad, {.timeout = 30s}));
//
// Not thread-safe: calls on one Communicator must be made in the same order on every rank.
#pragma once

#include <span>

#include "framework/base/status.h"
#include "framework/runtime/clock.h"
#include "framework/tensor/tensor.h"

namespace penstock {

struct CollectiveOptions {
  Nanoseconds timeout{30'000'000'000};  // for the whole call, from entry
};

class Communicator {
 public:
  virtual ~Communicator() = default;
  virtual int rank() const = 0;
  virtual int ranks() const = 0;

  // Replaces `data` by its element-wise sum over all ranks, added in the order of the ranks or of a fixed
  // tree, so that every rank ends with the same bytes in every run.
  //
  //   data     same type and element count on every rank; on this communicator's device; plain layout
  //
  // On a device with streams it returns once enqueued; errors found later surface in the next call.
  //
  // kInvalidArgument E-collective-type: the type is not supported. kInvalidArgument E-collective-shape: ranks
  // disagree. kDeadlineExceeded: names the ranks that did not arrive. kUnavailable: a peer is gone; make a
  // new communicator.
  virtual Status AllReduceSum(Tensor& data, const CollectiveOptions& options) = 0;
  // Every rank's `data` gets the bytes of `root`'s. Errors as above.
  virtual Status Broadcast(Tensor& data, int root, const CollectiveOptions& options) = 0;
  // out[r] gets rank r's `data`; all of one shape. Errors as above.
  virtual Status AllGather(const Tensor& data, std::span<Tensor> out, const CollectiveOptions& options) = 0;
  // Returns when every rank has called it. Errors as above.
  virtual Status Barrier(const CollectiveOptions& options) = 0;
};

}  // namespace penstock
