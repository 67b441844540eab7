#include <map>
#include <mutex>

#include "operators/cuda/cublas.h"
#include "operators/cuda/cuda_status.h"
#include "operators/math/matmul_device.h"

namespace penstock {
namespace {

Status CublasOk(const Cublas& cublas, std::string_view doing, cublasStatus_t status) {
  if (status == CUBLAS_STATUS_SUCCESS) return OkStatus();
  return InternalError("E-cublas", "cuBLAS failed while ", doing, ": ", cublas.status_string(status));
}

// One handle for each device and stream, created at its first use: a handle costs memory and time, and the
// kernels of one stream never run concurrently. Handles live as long as the process, like the streams of the
// executor.
Result<cublasHandle_t> HandleFor(const Cublas& cublas, cudaStream_t stream) {
  static std::mutex mutex;
  static std::map<std::pair<int, cudaStream_t>, cublasHandle_t> handles;
  int device = 0;
  PENSTOCK_RETURN_IF_ERROR(CudaOk("asking for the device", cudaGetDevice(&device)));
  const std::lock_guard lock(mutex);
  cublasHandle_t& handle = handles[{device, stream}];
  if (handle != nullptr) return handle;
  PENSTOCK_RETURN_IF_ERROR(CublasOk(cublas, "starting", cublas.create(&handle)));
  PENSTOCK_RETURN_IF_ERROR(CublasOk(cublas, "taking its stream", cublas.set_stream(handle, stream)));
  return handle;
}

auto Gemm(const Cublas& cublas, float) { return cublas.gemm_f32; }
auto Gemm(const Cublas& cublas, double) { return cublas.gemm_f64; }

// A matrix as cuBLAS sees it: its columns are contiguous.
struct CublasMatrix {
  Operand operand;
  Dim batch_stride = 0;
  int leading = 1;
  cublasOperation_t operation = CUBLAS_OP_N;  // T: the columns of the transposed matrix are contiguous
};

Result<CublasMatrix> AsCublas(const KernelSetup& k, const MatrixSlot& m) {
  const auto fits = [](Dim extent) { return extent <= std::numeric_limits<int>::max(); };
  CublasMatrix c{m.operand, m.batch_stride};
  // A matrix with one row or one column is contiguous both ways.
  const bool by_columns = m.row_stride == 1 || m.rows == 1;
  const bool by_rows = m.column_stride == 1 || m.columns == 1;
  if ((!by_columns && !by_rows) || !fits(m.rows) || !fits(m.columns)) {
    return k.Error("cuBLAS cannot address a matrix [", m.rows, ", ", m.columns, "] of strides ", m.row_stride,
                   " and ", m.column_stride);
  }
  c.operation = by_columns ? CUBLAS_OP_N : CUBLAS_OP_T;
  const Dim leading = by_columns ? m.column_stride : m.row_stride;
  c.leading = static_cast<int>(std::max({leading, by_columns ? m.rows : m.columns, Dim{1}}));
  return c;
}

template <typename T>
class CublasProduct : public MatrixProduct {
 public:
  Status Prepare(KernelSetup& k, const MatrixSlot& a, const MatrixSlot& b, const MatrixSlot& out,
                 double alpha) override {
    // cuBLAS writes columns contiguously; a product stored by rows is the transposed one: out' = b' . a'.
    const bool by_rows = out.column_stride == 1;
    PENSTOCK_ASSIGN_OR_RETURN(left_, AsCublas(k, by_rows ? Transposed(b) : a));
    PENSTOCK_ASSIGN_OR_RETURN(right_, AsCublas(k, by_rows ? Transposed(a) : b));
    PENSTOCK_ASSIGN_OR_RETURN(out_, AsCublas(k, by_rows ? Transposed(out) : out));
    PENSTOCK_CHECK(out_.operation == CUBLAS_OP_N, "the product is stored by columns now");
    rows_ = static_cast<int>(by_rows ? out.columns : out.rows);
    columns_ = static_cast<int>(by_rows ? out.rows : out.columns);
    inner_ = static_cast<int>(a.columns);
    batch_ = static_cast<int>(out.batch);
    sums_ = out.batch > 1 && out.batch_stride == 0;
    alpha_ = static_cast<T>(alpha);
    PENSTOCK_ASSIGN_OR_RETURN(cublas_, LoadCublas());
    PENSTOCK_ASSIGN_OR_RETURN(handle_, HandleFor(*cublas_, StreamOf(k)));
    return OkStatus();
  }

  Status Run(KernelRun& k) override {
    if (!sums_) return Multiply(k, 0, batch_, T(0));
    for (int i = 0; i < batch_; ++i) PENSTOCK_RETURN_IF_ERROR(Multiply(k, i, 1, i == 0 ? T(0) : T(1)));
    return OkStatus();
  }

 private:
  Status Multiply(KernelRun& k, int first, int count, T beta) {
    const T* left = k[left_.operand].template Data<T>() + first * left_.batch_stride;
    const T* right = k[right_.operand].template Data<T>() + first * right_.batch_stride;
    T* out = k[out_.operand].template Data<T>() + first * out_.batch_stride;
    return CublasOk(
        *cublas_, "multiplying",
        Gemm(*cublas_, T())(handle_, left_.operation, right_.operation, rows_, columns_, inner_, &alpha_,
                            left, left_.leading, left_.batch_stride, right, right_.leading,
                            right_.batch_stride, &beta, out, out_.leading, out_.batch_stride, count));
  }

  CublasMatrix left_, right_, out_;
  int rows_ = 0, columns_ = 0, inner_ = 0, batch_ = 1;
  bool sums_ = false;
  T alpha_ = 1;
  const Cublas* cublas_ = nullptr;
  cublasHandle_t handle_ = nullptr;
};

}  // namespace

template <>
std::unique_ptr<MatrixProduct> MakeMatrixProduct<Cuda, float>() {
  return std::make_unique<CublasProduct<float>>();
}
template <>
std::unique_ptr<MatrixProduct> MakeMatrixProduct<Cuda, double>() {
  return std::make_unique<CublasProduct<double>>();
}

}  // namespace penstock
