// elementwise_add on GPUs: one thread per element of the sum; one block per element of a repeated operand's
// gradient, which adds in an order that depends only on the shapes.
#include "operators/cuda/cuda_kernels.h"
#include "operators/cuda/cuda_status.h"
#include "operators/math/broadcast.h"

namespace penstock {
namespace {

constexpr int kMaxRank = 8;

// Dimensions with their strides in one or two arrays. Passed to kernels by value.
struct Walk {
  int rank = 0;
  Dim count = 1;
  Dim extent[kMaxRank] = {};
  Dim first_stride[kMaxRank] = {}, second_stride[kMaxRank] = {};

  void Append(Dim e, Dim first, Dim second) {
    extent[rank] = e;
    first_stride[rank] = first;
    second_stride[rank] = second;
    count *= e;
    ++rank;
  }
  // Returns the offsets of step i; the last dimension varies fastest.
  __device__ void At(Dim i, Dim* first, Dim* second) const {
    *first = *second = 0;
    for (int d = rank - 1; d >= 0; --d) {
      const Dim at = i % extent[d];
      i /= extent[d];
      *first += at * first_stride[d];
      *second += at * second_stride[d];
    }
  }
};

template <typename T>
__global__ void AddKernel(const T* x, const T* y, T* out, Walk walk) {
  const Dim i = static_cast<Dim>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= walk.count) return;
  Dim at_x, at_y;
  walk.At(i, &at_x, &at_y);
  out[i] = x[at_x] + y[at_y];
}

// grad[i] is the sum of dout over the positions that use element i. `kept` enumerates the elements,
// `repeated` the uses.
template <typename T>
__global__ void SumUsesKernel(const T* dout, T* grad, Walk kept, Walk repeated) {
  __shared__ T partial[kBlockThreads];
  Dim base, unused;
  kept.At(blockIdx.x, &base, &unused);
  T sum = 0;
  for (Dim i = threadIdx.x; i < repeated.count; i += kBlockThreads) {
    Dim offset;
    repeated.At(i, &offset, &unused);
    sum += dout[base + offset];
  }
  partial[threadIdx.x] = sum;
  __syncthreads();
  for (int half = kBlockThreads / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) partial[threadIdx.x] += partial[threadIdx.x + half];
    __syncthreads();
  }
  if (threadIdx.x == 0) grad[blockIdx.x] = partial[0];
}

// Row-major strides; 0 for dimensions of 1, so that they repeat.
std::vector<Dim> StridesOf(const Shape& shape) {
  std::vector<Dim> strides(static_cast<std::size_t>(shape.rank()));
  Dim stride = 1;
  for (int d = shape.rank() - 1; d >= 0; --d) {
    strides[static_cast<std::size_t>(d)] = shape[d] == 1 ? 0 : stride;
    stride *= shape[d];
  }
  return strides;
}

Result<AlignedShapes> Align(KernelSetup& k) {
  Result<AlignedShapes> shapes = AlignShapes(k.Input("X").shape, k.Input("Y").shape, k.Attr<int>("axis"));
  if (!shapes.ok()) return k.Error(shapes.status().message());
  if (shapes->out.rank() > kMaxRank) return k.Error("rank ", shapes->out.rank(), " is above ", kMaxRank);
  return shapes;
}

template <typename Device, typename T>
class ElementwiseAddKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(x_, y_, out_);
    stream_ = StreamOf(k);
    PENSTOCK_ASSIGN_OR_RETURN(const AlignedShapes shapes, Align(k));
    const std::vector<Dim> x = StridesOf(shapes.x), y = StridesOf(shapes.y);
    for (int d = 0; d < shapes.out.rank(); ++d) {
      walk_.Append(shapes.out[d], x[static_cast<std::size_t>(d)], y[static_cast<std::size_t>(d)]);
    }
    return OkStatus();
  }
  Status Run(KernelRun& k) override {
    if (walk_.count == 0) return OkStatus();
    AddKernel<T><<<BlocksFor(walk_.count), kBlockThreads, 0, stream_>>>(
        k[x_].template Data<T>(), k[y_].template Data<T>(), k[out_].template Data<T>(), walk_);
    return CudaOk("adding", cudaGetLastError());
  }

 private:
  In<"X"> x_;
  In<"Y"> y_;
  Out<"Out"> out_;
  Walk walk_;
  cudaStream_t stream_ = nullptr;
};

// The gradient of one operand: dout as it is, or summed over the operand's uses.
class OperandGrad {
 public:
  void Prepare(const Operand& grad, const Shape& operand, const Shape& out) {
    grad_ = grad;
    const std::vector<Dim> strides = StridesOf(out);
    for (int d = 0; d < out.rank(); ++d) {
      const bool repeats = operand[d] == 1 && out[d] != 1;
      (repeats ? repeated_ : kept_).Append(out[d], strides[static_cast<std::size_t>(d)], 0);
    }
  }
  template <typename T>
  Status Run(KernelRun& k, const Operand& dout, cudaStream_t stream) const {
    if (!grad_ || kept_.count == 0) return OkStatus();
    Tensor& to = k[grad_];
    const T* from = k[dout].Data<T>();
    if (repeated_.count == 1) {
      if (to.Data<T>() == from) return OkStatus();
      return CudaOk("copying a gradient",
                    cudaMemcpyAsync(to.raw(), from, to.bytes(), cudaMemcpyDeviceToDevice, stream));
    }
    SumUsesKernel<T><<<static_cast<unsigned>(kept_.count), kBlockThreads, 0, stream>>>(from, to.Data<T>(),
                                                                                       kept_, repeated_);
    return CudaOk("summing a gradient", cudaGetLastError());
  }

 private:
  Operand grad_;
  Walk kept_, repeated_;
};

template <typename Device, typename T>
class ElementwiseAddGradKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(dout_);
    stream_ = StreamOf(k);
    PENSTOCK_ASSIGN_OR_RETURN(const AlignedShapes shapes, Align(k));
    dx_.Prepare(k.Output("X@GRAD"), shapes.x, shapes.out);
    dy_.Prepare(k.Output("Y@GRAD"), shapes.y, shapes.out);
    return OkStatus();
  }
  Status Run(KernelRun& k) override {
    PENSTOCK_RETURN_IF_ERROR(dx_.Run<T>(k, dout_, stream_));
    return dy_.Run<T>(k, dout_, stream_);
  }

 private:
  In<"Out@GRAD"> dout_;
  OperandGrad dx_, dy_;
  cudaStream_t stream_ = nullptr;
};

}  // namespace

void RegisterElementwiseAddCuda(OpDef& elementwise_add) {
  elementwise_add.Kernel<Cuda, ElementwiseAddKernel, float, double>()
      .GradKernel<Cuda, ElementwiseAddGradKernel, float, double>();
}

}  // namespace penstock
