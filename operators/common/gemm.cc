#include "operators/common/gemm.h"

#include <Eigen/Core>
#include <algorithm>
#include <atomic>

#include "operators/common/onednn.h"
#include "operators/common/parallel.h"

namespace penstock {
namespace {

constexpr Dim kGranule = 16;  // rows or columns that oneDNN's kernels compute at once

template <typename T>
MatrixView<T> Rows(MatrixView<T> m, Dim first, Dim rows) {
  m.data += first * (m.transposed ? 1 : m.stride);
  m.rows = rows;
  return m;
}
template <typename T>
MatrixView<T> Columns(MatrixView<T> m, Dim first, Dim columns) {
  m.data += first * (m.transposed ? m.stride : 1);
  m.columns = columns;
  return m;
}

// On this thread alone.
dnnl_status_t Multiply(const MatrixView<const float>& a, const MatrixView<const float>& b,
                       const MatrixView<float>& c, bool add) {
  const OnednnTeam one(1);
  return dnnl_sgemm(a.transposed ? 'T' : 'N', b.transposed ? 'T' : 'N', c.rows, c.columns, a.columns, 1.0f,
                    a.data, a.stride, b.data, b.stride, add ? 1.0f : 0.0f, c.data, c.stride);
}

// Without a term the product is zero.
template <typename T>
void Clear(const MatrixView<T>& c) {
  for (Dim r = 0; r < c.rows; ++r) std::fill_n(c.data + r * c.stride, c.columns, T{0});
}

template <typename T>
bool Fit(const MatrixView<const T>& a, const MatrixView<const T>& b, const MatrixView<T>& c) {
  return a.columns == b.rows && a.rows == c.rows && b.columns == c.columns && !c.transposed;
}

}  // namespace

template <>
Status Gemm<float>(const MatrixView<const float>& a, const MatrixView<const float>& b,
                   const MatrixView<float>& c, const GemmOptions& options) {
  PENSTOCK_CHECK(Fit(a, b, c), "the operands of a product fit each other");
  if (c.rows == 0 || c.columns == 0) return OkStatus();
  if (a.columns == 0) {
    if (!options.add) Clear(c);
    return OkStatus();
  }
  const bool by_rows = c.rows >= c.columns;
  const Dim count = by_rows ? c.rows : c.columns;
  const double flops = 2.0 * static_cast<double>(c.rows * a.columns) * static_cast<double>(c.columns);
  const Shares shares =
      DivideIntoShares(count, FlopsNs(flops) / static_cast<double>(count), kGranule, options.threads, 1);
  std::atomic<dnnl_status_t> failed{dnnl_success};
  ComputePool::OfThisProcess().ForEach(shares.count, options.threads, [&](int i) {
    const Dim first = i * shares.items, n = std::min(shares.items, count - first);
    const dnnl_status_t done = by_rows ? Multiply(Rows(a, first, n), b, Rows(c, first, n), options.add)
                                       : Multiply(a, Columns(b, first, n), Columns(c, first, n), options.add);
    if (done != dnnl_success) failed.store(done);
  });
  const dnnl_status_t status = failed.load();
  if (status == dnnl_success) return OkStatus();
  return InternalError("E-onednn", "oneDNN's matrix product of [", a.rows, ", ", a.columns, "] and [", b.rows,
                       ", ", b.columns, "] failed with status ", static_cast<int>(status));
}

template <>
Status Gemm<double>(const MatrixView<const double>& a, const MatrixView<const double>& b,
                    const MatrixView<double>& c, const GemmOptions& options) {
  PENSTOCK_CHECK(Fit(a, b, c), "the operands of a product fit each other");
  using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  using Strides = Eigen::Stride<Eigen::Dynamic, Eigen::Dynamic>;
  const auto view = [](const MatrixView<const double>& m) {
    return Eigen::Map<const Matrix, 0, Strides>(m.data, m.rows, m.columns,
                                                m.transposed ? Strides(1, m.stride) : Strides(m.stride, 1));
  };
  Eigen::Map<Matrix, 0, Strides> out(c.data, c.rows, c.columns, Strides(c.stride, 1));
  if (options.add) {
    out.noalias() += view(a) * view(b);
  } else {
    out.noalias() = view(a) * view(b);
  }
  return OkStatus();
}

}  // namespace penstock
