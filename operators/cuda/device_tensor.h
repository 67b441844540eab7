// Tensors in the memory of a GPU, and copies to and from it. Only in builds with CUDA.
//
//   PENSTOCK_ASSIGN_OR_RETURN(Tensor on_device, ToDevice(on_host));
//   PENSTOCK_ASSIGN_OR_RETURN(Tensor back, ToHost(on_device));
//
// Copies wait until they are done, and for the work that was given to the default stream before.
#pragma once

#include "framework/base/status.h"
#include "framework/tensor/tensor.h"

namespace penstock {

// Ok if there is a GPU that this build has code for; else kFailedPrecondition E-cuda-none, which says why.
Status CudaUsable();

// Memory on the current device, freed with its last owner. Not cleared.
Result<Tensor> MakeDeviceTensor(DType type, const Shape& shape);
Result<Tensor> ToDevice(const Tensor& host);
Result<Tensor> ToHost(const Tensor& device);

}  // namespace penstock
