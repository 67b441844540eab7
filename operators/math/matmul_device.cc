#include "operators/math/matmul_device.h"

#include <Eigen/Core>
#include <algorithm>
#include <utility>
#include <vector>

#include "operators/common/onednn.h"

namespace penstock {

Result<MatrixSlot> AsMatrix(const KernelSetup& k, const Argument& argument, int row_dims) {
  const Shape& shape = argument.shape;
  if (row_dims < 0 || row_dims > shape.rank()) {
    return k.Error(argument.name, " of rank ", shape.rank(), " cannot be flattened at ", row_dims);
  }
  MatrixSlot m;
  m.operand = argument;
  m.rows = shape.Product(0, row_dims);
  m.columns = shape.Product(row_dims, shape.rank());
  m.row_stride = m.columns;
  return m;
}

MatrixSlot Transposed(MatrixSlot matrix) {
  std::swap(matrix.rows, matrix.columns);
  std::swap(matrix.row_stride, matrix.column_stride);
  return matrix;
}

MatrixSlot RowsOf(MatrixSlot matrix, Dim first, Dim rows) {
  matrix.offset += first * matrix.row_stride;
  matrix.rows = rows;
  return matrix;
}

MatrixSlot ColumnsOf(MatrixSlot matrix, Dim first, Dim columns) {
  matrix.offset += first * matrix.column_stride;
  matrix.columns = columns;
  return matrix;
}

MatrixSlot BatchOf(MatrixSlot matrix, Dim first, Dim batch) {
  matrix.offset += first * matrix.batch_stride;
  matrix.batch = batch;
  return matrix;
}

Status MatrixProduct::PrepareWithRow(KernelSetup& k, const MatrixSlot&, const MatrixSlot&, const MatrixSlot&,
                                     const Operand&) {
  PENSTOCK_CHECK(false, StrCat(k.op().type(), ": products of this device add no row"));
  return OkStatus();
}

Status CheckProduct(const KernelSetup& k, const MatrixSlot& a, const MatrixSlot& b, const MatrixSlot& out) {
  if (a.columns != b.rows || a.rows != out.rows || b.columns != out.columns || a.batch != b.batch ||
      a.batch != out.batch) {
    return k.Error("a product of [", a.rows, ", ", a.columns, "] and [", b.rows, ", ", b.columns,
                   "] cannot be written to [", out.rows, ", ", out.columns, "]");
  }
  return OkStatus();
}

namespace {

// Adds a row to each row of a matrix.
template <typename T>
void AddToRows(KernelRun& k, const MatrixSlot& matrix, const Operand& row) {
  const T* const added = std::as_const(k[row]).template Data<T>();
  T* to = k[matrix.operand].template Data<T>() + matrix.offset;
  for (Dim i = 0; i < matrix.rows; ++i, to += matrix.row_stride) {
    for (Dim j = 0; j < matrix.columns; ++j) to[j] += added[j];
  }
}

// A batch in which no operand is repeated is one primitive. Otherwise there is one product for each matrix of
// the batch; if all write to the same memory, the later ones add to it.
class OnednnProduct : public MatrixProduct {
 public:
  Status Prepare(KernelSetup& k, const MatrixSlot& a, const MatrixSlot& b, const MatrixSlot& out,
                 double alpha) override {
    // oneDNN computes a result stored by columns with its slow reference kernel; therefore out' = b' . a' is
    // computed by rows instead.
    if (out.column_stride != 1) return Prepare(k, Transposed(b), Transposed(a), Transposed(out), alpha);
    out_ = out;
    // If there is no term to add, or no element to add it to, there is no primitive.
    if (std::min({a.batch, a.rows, a.columns, b.columns}) == 0) return OkStatus();
    return OnednnTry(k, [&] { AddShares(k, a, b, out, alpha); });
  }

  Status PrepareWithRow(KernelSetup& k, const MatrixSlot& a, const MatrixSlot& b, const MatrixSlot& out,
                        const Operand& row) override {
    PENSTOCK_CHECK(out.batch == 1 && out.column_stride == 1, "a row is added to one product stored by rows");
    row_ = {.operand = row, .rows = 1, .columns = out.columns, .row_stride = out.columns};
    return Prepare(k, a, b, out, 1.0);
  }

  Status Run(KernelRun& k) override {
    if (steps_.empty()) {
      Tensor& out = k[out_.operand];
      std::fill_n(out.Data<float>(), out.count(), 0.0f);
      if (row_.operand) AddToRows<float>(k, out_, row_.operand);
      return OkStatus();
    }
    return steps_.Run(k);
  }

 private:
  // Each share computes some matrices of a batch, or some rows or columns of every product.
  void AddShares(KernelSetup& k, const MatrixSlot& a, const MatrixSlot& b, const MatrixSlot& out,
                 double alpha) {
    constexpr int kPerThread = 2;
    constexpr Dim kGranule = 16;  // rows or columns that a kernel of oneDNN computes at once
    const double flops = 2.0 * static_cast<double>(out.batch * out.rows) * static_cast<double>(out.columns) *
                         static_cast<double>(a.columns);
    const bool by_batch = out.batch_stride != 0 && out.batch >= Dim{kPerThread} * k.threads();
    const bool by_rows = out.rows >= out.columns;
    const Dim count = by_batch ? out.batch : by_rows ? out.rows : out.columns;
    const Shares shares = DivideIntoShares(count, FlopsNs(flops) / static_cast<double>(count),
                                           by_batch ? 1 : kGranule, k.threads(), kPerThread);
    EachShare(k, steps_, shares, count, [&](Dim first, Dim n) {
      if (n == count) {
        AddProducts(k, a, b, out, row_, alpha);
      } else if (by_batch) {
        AddProducts(k, BatchOf(a, first, n), BatchOf(b, first, n), BatchOf(out, first, n), row_, alpha);
      } else if (by_rows) {
        AddProducts(k, RowsOf(a, first, n), b, RowsOf(out, first, n), row_, alpha);
      } else {
        AddProducts(k, a, ColumnsOf(b, first, n), ColumnsOf(out, first, n), ColumnsOf(row_, first, n), alpha);
      }
    });
  }

  void AddProducts(KernelSetup& k, const MatrixSlot& a, const MatrixSlot& b, const MatrixSlot& out,
                   const MatrixSlot& row, double alpha) {
    const bool whole = a.batch > 1 && a.batch_stride != 0 && b.batch_stride != 0 && out.batch_stride != 0;
    const dnnl::matmul first = Make(a, b, out, row, whole, alpha, /*add=*/false);
    const bool adds = !whole && out.batch > 1 && out.batch_stride == 0;
    const dnnl::matmul later = adds ? Make(a, b, out, row, whole, alpha, /*add=*/true) : first;
    for (Dim i = 0; i < (whole ? 1 : a.batch); ++i) {
      std::vector<std::pair<int, OnednnSequence::MemoryId>> arguments = {
          {DNNL_ARG_SRC, Bind(a, whole, i)},
          {DNNL_ARG_WEIGHTS, Bind(b, whole, i)},
          {DNNL_ARG_DST, Bind(out, whole, i)}};
      if (row.operand) arguments.emplace_back(DNNL_ARG_BIAS, Bind(row, whole, i));
      steps_.Add(k, i == 0 ? first : later, (i == 0 ? first_scratchpad_ : later_scratchpad_), arguments);
    }
  }

  static dnnl::memory::desc Desc(MatrixSlot m, bool whole) {
    // The stride of a dimension of 1 is arbitrary; oneDNN expects one that fits the neighbouring dimensions.
    if (m.columns == 1) m.column_stride = 1;
    if (m.rows == 1) m.row_stride = m.column_stride == 1 ? m.columns : 1;
    if (whole)
      return OnednnStrided({m.batch, m.rows, m.columns}, {m.batch_stride, m.row_stride, m.column_stride});
    return OnednnStrided({m.rows, m.columns}, {m.row_stride, m.column_stride});
  }

  OnednnSequence::MemoryId Bind(const MatrixSlot& m, bool whole, Dim i) {
    return steps_.Tensor(m.operand, Desc(m, whole),
                         static_cast<std::size_t>(m.offset + i * m.batch_stride) * sizeof(float));
  }

  dnnl::matmul Make(const MatrixSlot& a, const MatrixSlot& b, const MatrixSlot& out, const MatrixSlot& row,
                    bool whole, double alpha, bool add) {
    dnnl::primitive_attr attr = OnednnAttr();
    if (alpha != 1.0) attr.set_output_scales(0, {static_cast<float>(alpha)});
    if (add) {
      dnnl::post_ops sum;
      sum.append_sum(1.0f);
      attr.set_post_ops(sum);
    }
    const dnnl::matmul::desc desc =
        row.operand ? dnnl::matmul::desc(Desc(a, whole), Desc(b, whole), Desc(row, whole), Desc(out, whole))
                    : dnnl::matmul::desc(Desc(a, whole), Desc(b, whole), Desc(out, whole));
    const dnnl::matmul::primitive_desc pd(desc, attr, OnednnEngine());
    if (!add) first_scratchpad_ = pd.scratchpad_desc();
    later_scratchpad_ = pd.scratchpad_desc();
    return dnnl::matmul(pd);
  }

  MatrixSlot out_, row_;  // row_: without an operand, nothing is added
  dnnl::memory::desc first_scratchpad_, later_scratchpad_;
  OnednnSequence steps_;
};

class EigenProduct : public MatrixProduct {
 public:
  Status Prepare(KernelSetup&, const MatrixSlot& a, const MatrixSlot& b, const MatrixSlot& out,
                 double alpha) override {
    a_ = a;
    b_ = b;
    out_ = out;
    alpha_ = alpha;
    return OkStatus();
  }

  Status PrepareWithRow(KernelSetup& k, const MatrixSlot& a, const MatrixSlot& b, const MatrixSlot& out,
                        const Operand& row) override {
    row_ = row;
    return Prepare(k, a, b, out, 1.0);
  }

  Status Run(KernelRun& k) override {
    if (out_.batch == 0) {  // the sum over no matrices
      Tensor& out = k[out_.operand];
      std::fill_n(out.Data<double>(), out.count(), 0.0);
    }
    for (Dim i = 0; i < out_.batch; ++i) {
      auto out = View(k, out_, i);
      if (i == 0 || out_.batch_stride != 0) {
        out.noalias() = alpha_ * (View(k, a_, i) * View(k, b_, i));
      } else {
        out.noalias() += alpha_ * (View(k, a_, i) * View(k, b_, i));
      }
    }
    if (row_) AddToRows<double>(k, out_, row_);
    return OkStatus();
  }

 private:
  using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  using Strides = Eigen::Stride<Eigen::Dynamic, Eigen::Dynamic>;

  static Eigen::Map<Matrix, 0, Strides> View(KernelRun& k, const MatrixSlot& m, Dim i) {
    return {k[m.operand].Data<double>() + i * m.batch_stride, m.rows, m.columns,
            Strides(m.row_stride, m.column_stride)};
  }

  MatrixSlot a_, b_, out_;
  Operand row_;
  double alpha_ = 1.0;
};

}  // namespace

template <>
std::unique_ptr<MatrixProduct> MakeMatrixProduct<Cpu, float>() {
  return std::make_unique<OnednnProduct>();
}
template <>
std::unique_ptr<MatrixProduct> MakeMatrixProduct<Cpu, double>() {
  return std::make_unique<EigenProduct>();
}

}  // namespace penstock
