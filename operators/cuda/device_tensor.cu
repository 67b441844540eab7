#include "operators/cuda/cuda_status.h"
#include "operators/cuda/device_tensor.h"

namespace penstock {

Status CudaUsable() {
  int devices = 0;
  const cudaError_t error = cudaGetDeviceCount(&devices);
  if (error != cudaSuccess) {
    return FailedPrecondition("E-cuda-none", "no GPU can be used: ", cudaGetErrorString(error));
  }
  if (devices == 0) return FailedPrecondition("E-cuda-none", "there is no GPU");
  return OkStatus();
}

Result<Tensor> MakeDeviceTensor(DType type, const Shape& shape) {
  const std::size_t bytes = static_cast<std::size_t>(shape.Count()) * SizeOf(type);
  void* data = nullptr;
  PENSTOCK_RETURN_IF_ERROR(CudaOk("allocating", cudaMalloc(&data, bytes == 0 ? 1 : bytes)));
  const std::shared_ptr<void> owner(data, [](void* memory) { cudaFree(memory); });
  return Tensor(type, shape, Buffer::Borrow(data, bytes, owner, DeviceKind::kCuda), 0);
}

Result<Tensor> ToDevice(const Tensor& host) {
  PENSTOCK_ASSIGN_OR_RETURN(Tensor device, MakeDeviceTensor(host.dtype(), host.shape()));
  PENSTOCK_RETURN_IF_ERROR(CudaOk(
      "copying to the GPU", cudaMemcpy(device.raw(), host.raw(), host.bytes(), cudaMemcpyHostToDevice)));
  return device;
}

Result<Tensor> ToHost(const Tensor& device) {
  Tensor host(device.dtype(), device.shape());
  PENSTOCK_RETURN_IF_ERROR(CudaOk(
      "copying from the GPU", cudaMemcpy(host.raw(), device.raw(), device.bytes(), cudaMemcpyDeviceToHost)));
  return host;
}

}  // namespace penstock
