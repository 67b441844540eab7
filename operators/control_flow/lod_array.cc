// lod_tensor_to_array, array_to_lod_tensor, shrink_rnn_memory: split sequences into steps, and join them.
#include <algorithm>
#include <numeric>
#include <vector>

#include "framework/op/op_registry.h"
#include "operators/common/lod.h"
#include "operators/control_flow/array.h"
#include "operators/control_flow/rank_table.h"

namespace penstock {
namespace {

constexpr char kCutDoc[] = R"(
Out[t] holds element t of each sequence of X that is long enough, with the sequences in the order of
RankTable. An element is a row, or a sequence of the level below the ranked one. The lengths must be those of
the table. X may have no LoD if the lengths determine its sequences.)";

constexpr char kJoinDoc[] = R"(
The inverse of lod_tensor_to_array: element t of the sequence at position p of RankTable is element p of X[t].
Out has the sequences in their original order. Elements that X lacks are zeros (if X is a gradient, no op has
read them).)";

constexpr char kShrinkDoc[] = R"(
Out has the first rows of X, one for each sequence of RankTable that is longer than I (or the first sequences,
if X has LoD). These are the sequences that take part in step I. The gradient is zero for all others.)";

// The sequences of the ranked level in their original order: offsets computed from the lengths in the table.
void OffsetsOf(const RankTable& table, LoDLevel& offsets) {
  offsets.assign(table.items.size() + 1, 0);
  for (const RankTable::Item& item : table.items)
    offsets[static_cast<std::size_t>(item.index) + 1] = static_cast<std::uint64_t>(item.length);
  for (std::size_t i = 1; i < offsets.size(); ++i) offsets[i] += offsets[i - 1];
}

std::int64_t LongestOf(const RankTable& table) {
  return table.items.empty() ? 0 : table.items.front().length;
}

class CutKernel : public RankedKernel {
 public:
  Status Run(KernelRun& k) override {
    PENSTOCK_ASSIGN_OR_RETURN(const RankTable* const table, TableIn(k, table_, "lod_tensor_to_array"));
    const Tensor& x = k[x_];
    const std::size_t ranked = table->coarse.size();
    implied_.resize(1);
    OffsetsOf(*table, implied_.front());
    const LoD& lod = x.lod().empty() && ranked == 0 ? implied_ : x.lod();
    if (lod.size() <= ranked || lod[ranked] != implied_.front() || !IsValid(lod, x.shape()[0])) {
      return InvalidArgument("E-op-rank-table", "lod_tensor_to_array: the sequences of X (", x_.name,
                             ") do not have the lengths of the rank table ", table_.name);
    }
    TensorArray& array = k.Var(out_).As<TensorArray>();
    const auto steps = static_cast<std::size_t>(LongestOf(*table));
    array.resize(steps);
    if (made_.size() < steps) made_.resize(steps);
    for (std::size_t t = 0; t < steps; ++t) CutStep(x, lod, *table, t, array[t]);
    return OkStatus();
  }

 private:
  void CutStep(const Tensor& x, const LoD& lod, const RankTable& table, std::size_t t, Tensor& out) {
    const std::size_t ranked = table.coarse.size();
    elements_.clear();
    std::int64_t rows = 0;
    for (const RankTable::Item& item : table.items) {
      if (item.length <= static_cast<std::int64_t>(t)) break;
      const std::uint64_t element = lod[ranked][static_cast<std::size_t>(item.index)] + t;
      const RowRange range = RowsOf(lod, ranked + 1, element);
      rows += range.end - range.begin;
      elements_.push_back(element);
    }
    rows_.Make(out, x.dtype(), x.shape(), rows);
    RowWriter writer(out);
    for (const std::uint64_t element : elements_) writer.Append(x, RowsOf(lod, ranked + 1, element));
    made_[t].Set(out, levels_(lod, ranked + 1, elements_));
  }

  LoD implied_;  // the LoD of rows without LoD: one level, from the table
  std::vector<std::uint64_t> elements_;
  RowsLike rows_;
  LevelsInOrder levels_;
  std::vector<MadeLod> made_;  // one per step
};

class JoinKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(out_);
    declared_ = k[out_];
    x_ = k.Input("X");
    table_ = k.Input("RankTable");
    return OkStatus();
  }

  Status Run(KernelRun& k) override {
    PENSTOCK_ASSIGN_OR_RETURN(const RankTable* const table, TableIn(k, table_, "array_to_lod_tensor"));
    const auto* array = k.Var(x_).If<TensorArray>();
    static const TensorArray kNone;
    if (array == nullptr) array = &kNone;
    if (static_cast<std::int64_t>(array->size()) > LongestOf(*table)) {
      return InvalidArgument("E-op-rank-table", "array_to_lod_tensor: ", x_.name, " has ", array->size(),
                             " elements; the longest sequence of the rank table ", table_.name, " has ",
                             LongestOf(*table));
    }
    PENSTOCK_ASSIGN_OR_RETURN(const Tensor* const like, Like(*array));
    PENSTOCK_RETURN_IF_ERROR(CheckElements(*array, *table, like));
    Join(*array, *table, like, k[out_]);
    return OkStatus();
  }

 private:
  // Returns an element that gives type and width; null if there is none, and the declaration is used.
  Result<const Tensor*> Like(const TensorArray& array) const {
    for (const Tensor& element : array) {
      if (element.initialized() && element.shape().rank() > 0) return &element;
    }
    const Shape& shape = declared_.shape;
    bool known = shape.rank() > 0;
    for (int d = 1; d < shape.rank(); ++d) known = known && shape[d] != kUnknownDim;
    if (known) return nullptr;
    return FailedPrecondition("E-op-array", "array_to_lod_tensor: ", x_.name,
                              " has no elements, so their width is unknown");
  }

  Status CheckElements(const TensorArray& array, const RankTable& table, const Tensor* like) const {
    for (std::size_t t = 0; t < array.size(); ++t) {
      const Tensor& element = array[t];
      if (!element.initialized()) continue;
      const std::int64_t wanted = LongerThan(table, static_cast<std::int64_t>(t));
      const std::int64_t sequences = element.shape().rank() == 0 ? -1
                                     : element.lod().empty()
                                         ? element.shape()[0]
                                         : static_cast<std::int64_t>(element.lod().front().size()) - 1;
      const bool same = element.dtype() == like->dtype() && element.lod().size() == like->lod().size() &&
                        element.shape().rank() == like->shape().rank() &&
                        element.shape().RowWidth() == like->shape().RowWidth();
      if (sequences == wanted && same && IsValid(element.lod(), element.shape()[0])) continue;
      return InvalidArgument("E-op-rank-table", "array_to_lod_tensor: element ", t, " of ", x_.name, " (",
                             DTypeName(element.dtype()), element.shape(), ") must have ", wanted,
                             " sequences or rows, and the type and width of the others");
    }
    return OkStatus();
  }

  void Join(const TensorArray& array, const RankTable& table, const Tensor* like, Tensor& out) {
    const bool nested = like != nullptr && !like->lod().empty();
    const auto present = [&](std::int64_t t) {
      const auto i = static_cast<std::size_t>(t);
      return i < array.size() && array[i].initialized() ? &array[i] : nullptr;
    };
    rank_of_.resize(table.items.size());
    std::int64_t rows = 0;
    for (std::size_t p = 0; p < table.items.size(); ++p) {
      rank_of_[static_cast<std::size_t>(table.items[p].index)] = p;
      for (std::int64_t t = 0; t < table.items[p].length; ++t) {
        const Tensor* element = present(t);
        const RowRange range =
            element == nullptr ? RowRange{0, nested ? 0 : 1} : RowsOf(element->lod(), 0, p);
        rows += range.end - range.begin;
      }
    }
    rows_.Make(out, like != nullptr ? like->dtype() : declared_.dtype,
               like != nullptr ? like->shape() : declared_.shape, rows);
    RowWriter writer(out);
    const std::size_t below = StartLevels(table, nested ? like->lod().size() : 0);
    for (const std::uint64_t p : rank_of_) {
      for (std::int64_t t = 0; t < table.items[p].length; ++t) {
        const Tensor* element = present(t);
        if (element == nullptr) {
          if (!nested) writer.AppendZeros(1);
          if (nested) lod_[below].push_back(lod_[below].back());
          continue;
        }
        writer.Append(*element, RowsOf(element->lod(), 0, p));
        AppendLevels(levels_(element->lod(), 0, {&p, 1}), lod_, below);
      }
    }
    made_.Set(out, lod_);
  }

  // Starts the levels above the steps and that of the steps; `nested` levels below are filled from the given
  // number on.
  std::size_t StartLevels(const RankTable& table, std::size_t nested) {
    const std::size_t below = table.coarse.size() + 1;
    lod_.resize(below + nested);
    std::ranges::copy(table.coarse, lod_.begin());
    OffsetsOf(table, lod_[below - 1]);
    for (std::size_t l = below; l < lod_.size(); ++l) lod_[l].assign(1, 0);
    return below;
  }

  Out<"Out"> out_;
  TensorDesc declared_;  // the type of Out
  NamedOperand x_, table_;
  std::vector<std::uint64_t> rank_of_;
  RowsLike rows_;
  LevelsInOrder levels_;
  LoD lod_;
  MadeLod made_;
};

// Returns the number of rows in the first `count` sequences of X (rows if it has no LoD); -1 if there are
// fewer.
std::int64_t RowsOfFirst(const Tensor& x, std::int64_t count) {
  if (x.lod().empty()) return count <= x.shape()[0] ? count : -1;
  if (count > static_cast<std::int64_t>(x.lod().front().size()) - 1) return -1;
  return count == 0 ? 0 : RowsOf(x.lod(), 0, static_cast<std::uint64_t>(count - 1)).end;
}

class ShrinkKernel : public RankedKernel {
 public:
  Status Prepare(KernelSetup& k) override {
    index_ = k.Input("I");
    return RankedKernel::Prepare(k);
  }

  Status Run(KernelRun& k) override {
    PENSTOCK_ASSIGN_OR_RETURN(const RankTable* const table, TableIn(k, table_, "shrink_rnn_memory"));
    PENSTOCK_ASSIGN_OR_RETURN(const std::size_t step, ArrayIndex(k, index_, "shrink_rnn_memory"));
    const Tensor& x = k[x_];
    const std::int64_t alive = LongerThan(*table, static_cast<std::int64_t>(step));
    const std::int64_t rows = IsValid(x.lod(), x.shape()[0]) ? RowsOfFirst(x, alive) : -1;
    if (rows < 0) {
      return InvalidArgument("E-op-rank-table", "shrink_rnn_memory: X (", x_.name, ", ", x.shape(),
                             ") has fewer sequences than take part in step ", step, " (", alive, ")");
    }
    Tensor& out = k[out_];
    rows_.Make(out, x.dtype(), x.shape(), rows);
    RowWriter(out).Append(x, {0, rows});
    if (x.lod().empty()) return OkStatus();
    first_.resize(static_cast<std::size_t>(alive));
    std::iota(first_.begin(), first_.end(), std::uint64_t{0});
    made_.Set(out, levels_(x.lod(), 0, first_));
    return OkStatus();
  }

 private:
  NamedOperand index_;
  std::vector<std::uint64_t> first_;
  RowsLike rows_;
  LevelsInOrder levels_;
  MadeLod made_;
};

class ShrinkGradKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(dx_);
    dout_ = k.Input("Out@GRAD");
    x_ = k.Input("X");
    if (k.Input("X").shape.rank() == 0 || k.Input("Out@GRAD").shape.rank() != k.Input("X").shape.rank() ||
        k.Input("Out@GRAD").shape.RowWidth() != k.Input("X").shape.RowWidth() ||
        k.Input("Out@GRAD").dtype != k.Input("X").dtype)
      return k.Error("Out@GRAD (", k.Input("Out@GRAD").shape, ") must have the type and width of X (",
                     k.Input("X").shape, ")");
    return OkStatus();
  }
  Status Run(KernelRun& k) override {
    if (!dx_) return OkStatus();
    const Tensor& dout = k[dout_];
    const std::int64_t rows = k[x_].shape()[0], kept = dout.shape()[0];
    if (kept > rows) {
      return InvalidArgument("E-op-rank-table", "shrink_rnn_memory_grad: Out@GRAD has ", kept, " rows, X ",
                             rows);
    }
    RowWriter writer(k[dx_]);
    writer.Append(dout, {0, kept});
    writer.AppendZeros(rows - kept);
    return OkStatus();
  }

 private:
  NamedOperand x_;
  NamedOperand dout_;
  Out<"X@GRAD"> dx_;
};

// Each of the two ops is the gradient of the other.
GradMaker Reversed(const char* type) {
  return [type](const GradRequest& request) -> Result<std::vector<Op>> {
    const std::string dx = request.grad_of(request.forward.InputName("X"));
    if (dx.empty()) return std::vector<Op>();
    Op grad(type);
    grad.AddInput("X", {request.grad_of(request.forward.OutputName("Out"))});
    grad.AddInput("RankTable", request.forward.Input("RankTable")).AddOutput("Out", {dx});
    for (const NamedAttr& attr : request.forward.attrs()) grad.Set(attr.name, attr.value);
    return std::vector<Op>{std::move(grad)};
  };
}

Status InferSteps(InferContext& c, VarKind kind, int level) {
  Shape shape = c.ShapeOf("X");
  if (shape.rank() == 0) return c.Error("X must have rank 1 or more");
  shape.Set(0, kUnknownDim);
  c.SetKind("Out", kind);
  c.SetDType("Out", c.DTypeOf("X"));
  c.SetLodLevel("Out", std::max(level, 0));
  return c.SetShape("Out", shape);
}

}  // namespace

void RegisterLodArray(OpRegistry& ops) {
  ops.Add("lod_tensor_to_array")
      .Doc("Splits sequences into steps.", kCutDoc)
      .Input("X", "sequences", AnyType())
      .Input("RankTable", "the order of the sequences", AnyType(), OfKind(VarKind::kRankTable))
      .Output("Out", "an array of the steps", AnyType(), OfKind(VarKind::kTensorArray))
      .InferShape(
          [](InferContext& c) { return InferSteps(c, VarKind::kTensorArray, c.Input("X").lod_level - 1); })
      .KernelForAnyType<Cpu, CutKernel>()
      .GradMadeBy(Reversed("array_to_lod_tensor"));
  ops.Add("array_to_lod_tensor")
      .Doc("Joins steps to sequences.", kJoinDoc)
      .Input("X", "an array with one element per step", AnyType(), OfKind(VarKind::kTensorArray))
      .Input("RankTable", "the order of the sequences", AnyType(), OfKind(VarKind::kRankTable))
      .Output("Out", "sequences", AnyType())
      .InferShape([](InferContext& c) { return InferSteps(c, VarKind::kTensor, c.Input("X").lod_level + 1); })
      .KernelForAnyType<Cpu, JoinKernel>()
      .GradMadeBy(Reversed("lod_tensor_to_array"));
  ops.Add("shrink_rnn_memory")
      .Doc("The rows of the sequences that take part in a step.", kShrinkDoc)
      .Input("X", "one row or sequence for each sequence of the table, in its order", AnyType())
      .Input("RankTable", "the sequences", AnyType(), OfKind(VarKind::kRankTable))
      .Input("I", "one integer: the step", Integers())
      .Output("Out", "the first rows or sequences of X", SameTypeAs("X"))
      .InferShape([](InferContext& c) {
        PENSTOCK_RETURN_IF_ERROR(c.ShareAll("X", "Out"));
        c.SetLodLevel("Out", c.Input("X").lod_level);  // with fewer offsets
        return OkStatus();
      })
      .KernelTypeFrom("X")
      .KernelForAnyType<Cpu, ShrinkKernel>()
      .Grad({.reads = {"X"}, .yields = {"X"}})
      .GradDef()
      .KernelForAnyType<Cpu, ShrinkGradKernel>();
}

}  // namespace penstock
