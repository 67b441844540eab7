// unique, unique_with_counts: the distinct elements of a vector.
#include <algorithm>
#include <string>

#include "framework/op/op_registry.h"
#include "operators/common/lod.h"
#include "operators/common/nan.h"
#include "operators/common/require_shape.h"

namespace penstock {
namespace {

constexpr char kDoc[] = R"(
Out holds each element of X once, in the order in which they first occur, and X[i] = Out[Index[i]]. Index, and
Count, which says how often each occurs, have element type dtype. Each NaN is an element of its own.)";

Status InferUnique(InferContext& c) {
  const int dtype = c.Attr<int>("dtype");
  const bool is_integer =
      dtype == static_cast<int>(DType::kInt32) || dtype == static_cast<int>(DType::kInt64);
  if (!is_integer) return c.Error("dtype (", dtype, ") must be the number of i32 or i64");
  PENSTOCK_RETURN_IF_ERROR(c.RequireRank("X", 1));
  PENSTOCK_RETURN_IF_ERROR(c.SetShape("Out", {kUnknownDim}));
  PENSTOCK_RETURN_IF_ERROR(c.SetShape("Index", c.ShapeOf("X")));
  return c.HasOutput("Count") ? c.SetShape("Count", {kUnknownDim}) : OkStatus();
}

template <typename Device, typename T>
class UniqueKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    x_ = k.Input("X");
    index_ = k.Output("Index");
    for (const char* slot : {"Index"}) PENSTOCK_RETURN_IF_ERROR(RequireApart(k, slot));
    if (x_.shape.rank() != 1) return k.Error("rank of X (", x_.shape, ") must be 1");
    PENSTOCK_RETURN_IF_ERROR(out_.Prepare(k, "Out", x_.dtype, {0}));
    if (k.Output("Count")) PENSTOCK_RETURN_IF_ERROR(counts_.Prepare(k, "Count", index_.dtype, {0}));
    const std::size_t bytes = static_cast<std::size_t>(x_.shape[0]) * sizeof(Dim);
    order_ = k.Workspace(bytes);
    first_ = k.Workspace(bytes);
    return OkStatus();
  }
  Status Run(KernelRun& k) override {
    return index_.dtype == DType::kInt32 ? Find<std::int32_t>(k) : Find<std::int64_t>(k);
  }

 private:
  template <typename Index>
  Status Find(KernelRun& k) {
    const T* const x = k[x_].template Data<T>();
    const Dim count = x_.shape[0];
    auto* const first = reinterpret_cast<Dim*>(k.Workspace(first_));
    const Dim different = FindFirsts(x, count, reinterpret_cast<Dim*>(k.Workspace(order_)), first);
    T* const out = out_.Make(k, different).template Data<T>();
    Index* const counts = counts_ ? counts_.Make(k, different).template Data<Index>() : nullptr;
    if (counts != nullptr) std::fill_n(counts, different, Index{0});
    Index* const index = k[index_].template Data<Index>();
    Index found = 0;
    for (Dim i = 0; i < count; ++i) {
      if (first[i] == i) out[found] = x[i];
      index[i] = first[i] == i ? found++ : index[first[i]];
      if (counts != nullptr) ++counts[index[i]];
    }
    return OkStatus();
  }
  // first[i]: where x[i] occurs first. Returns how many elements differ.
  static Dim FindFirsts(const T* x, Dim count, Dim* order, Dim* first) {
    for (Dim i = 0; i < count; ++i) order[i] = i;
    std::sort(order, order + count, [x](Dim a, Dim b) {
      if (x[a] < x[b] || x[b] < x[a]) return x[a] < x[b];
      return IsNan(x[a]) == IsNan(x[b]) ? a < b : IsNan(x[b]);  // NaN comes last
    });
    Dim different = 0;
    for (Dim i = 0; i < count; ++i) {
      const bool again = i > 0 && x[order[i]] == x[order[i - 1]];
      first[order[i]] = again ? first[order[i - 1]] : order[i];
      different += again ? 0 : 1;
    }
    return different;
  }

  Operand x_, index_;
  RowsOutput out_, counts_;
  WorkspaceId order_, first_;
};

OpDef& AddUnique(OpRegistry& ops, const std::string& type) {
  return ops.Add(type)
      .Doc("The different elements of a vector.", kDoc)
      .Input("X", "[n]", Numbers())
      .Output("Out", "[how many differ], in the order of X", SameTypeAs("X"))
      .Output("Index", "[n]: where in Out each element of X stands", TypeFromAttr("dtype"), Apart())
      .RequiredAttr("dtype", AttrKind::kInt, "element type of Index, as Fluid numbers them: i32 or i64")
      .InferShape(InferUnique)
      .KernelTypeFrom("X")
      .Kernel<Cpu, UniqueKernel, float, double, std::int32_t, std::int64_t>()
      .Nan("each is an element of its own, as it equals no other.")
      .NoGrad();
}

}  // namespace

void RegisterUnique(OpRegistry& ops) {
  AddUnique(ops, "unique");
  AddUnique(ops, "unique_with_counts")
      .Output("Count", "[how many differ]: how often each occurs", TypeFromAttr("dtype"));
}

}  // namespace penstock
