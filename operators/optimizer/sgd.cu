// sgd on GPUs: one thread for each element of the parameter. Dense gradients only.
#include "operators/cuda/cuda_kernels.h"
#include "operators/cuda/cuda_status.h"

namespace penstock {
namespace {

template <typename T>
__global__ void UpdateKernel(const T* param, const T* grad, const T* learning_rate, T* param_out, Dim count) {
  const Dim i = static_cast<Dim>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < count) param_out[i] = param[i] - learning_rate[0] * grad[i];
}

template <typename Device, typename T>
class SgdKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(param_, grad_, learning_rate_, param_out_);
    stream_ = StreamOf(k);
    if (k[grad_].kind != VarKind::kTensor) {
      return Unimplemented("E-op-rows-kind",
                           "sgd: selected rows are not updated on GPUs; run the update on a CPU");
    }
    return OkStatus();
  }
  Status Run(KernelRun& k) override {
    const Dim count = k[param_].count();
    if (count == 0) return OkStatus();
    UpdateKernel<T><<<BlocksFor(count), kBlockThreads, 0, stream_>>>(
        k[param_].template Data<T>(), k[grad_].template Data<T>(), k[learning_rate_].template Data<T>(),
        k[param_out_].template Data<T>(), count);
    return CudaOk("updating a parameter", cudaGetLastError());
  }

 private:
  In<"Param"> param_;
  In<"Grad"> grad_;
  In<"LearningRate"> learning_rate_;
  Out<"ParamOut"> param_out_;
  cudaStream_t stream_ = nullptr;
};

}  // namespace

void RegisterSgdCuda(OpDef& sgd) { sgd.Kernel<Cuda, SgdKernel, float, double>(); }

}  // namespace penstock
