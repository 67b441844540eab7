// Tensors in the memory of a GPU, and copies to and from it. Only in builds with CUDA.
//
//   PENSTOCK_ASSIGN_OR_RETURN(Tensor on_device, ToDevice(on_host));
//   PENSTOCK_ASSIGN_OR_RETURN(Tensor back, ToHost(on_device));
//
// Copies block until they are complete, and wait for earlier work on the default stream.
#pragma once

#include "framework/base/status.h"
#include "framework/tensor/tensor.h"

namespace penstock {

// kFailedPrecondition E-cuda-none, with the reason, unless there is a GPU for which this build has code.
Status CudaUsable();

// Allocates memory on the current device; it is freed with its last owner. The elements are not initialised.
Result<Tensor> MakeDeviceTensor(DType type, const Shape& shape);
Result<Tensor> ToDevice(const Tensor& host);
Result<Tensor> ToHost(const Tensor& device);

}  // namespace penstock
