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
Out holds each element of X once, in order of first occurrence, and X[i] = Out[Index[i]]. Count holds the
number of occurrences of each element. Index and Count have element type dtype. Each NaN is a separate
element.)";

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
    k.Bind(x_, index_);
    for (const char* slot : {"Index"}) PENSTOCK_RETURN_IF_ERROR(RequireApart(k, slot));
    if (k[x_].shape.rank() != 1) return k.Error("rank of X (", k[x_].shape, ") must be 1");
    PENSTOCK_RETURN_IF_ERROR(out_.Prepare(k, "Out", k[x_].dtype, {0}));
    if (k.Output("Count")) PENSTOCK_RETURN_IF_ERROR(counts_.Prepare(k, "Count", k[index_].dtype, {0}));
    const std::size_t bytes = static_cast<std::size_t>(k[x_].shape[0]) * sizeof(Dim);
    order_ = k.Workspace(bytes);
    first_ = k.Workspace(bytes);
    return OkStatus();
  }
  Status Run(KernelRun& k) override {
    return k[index_].dtype() == DType::kInt32 ? Find<std::int32_t>(k) : Find<std::int64_t>(k);
  }

 private:
  template <typename Index>
  Status Find(KernelRun& k) {
    const T* const x = k[x_].template Data<T>();
    const Dim count = k[x_].shape()[0];
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
  // Sets first[i] to the first occurrence of x[i]. Returns the number of distinct elements.
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

  In<"X"> x_;
  Out<"Index"> index_;
  RowsOutput out_, counts_;
  WorkspaceId order_, first_;
};

OpDef& AddUnique(OpRegistry& ops, const std::string& type) {
  return ops.Add(type)
      .Doc("The distinct elements of a vector.", kDoc)
      .Input("X", "[n]", Numbers())
      .Output("Out", "[number of distinct elements], in the order of X", SameTypeAs("X"))
      .Output("Index", "[n]: the position in Out of each element of X", TypeFromAttr("dtype"), Apart())
      .RequiredAttr("dtype", AttrKind::kInt, "the element type of Index, numbered as in Fluid: i32 or i64")
      .InferShape(InferUnique)
      .KernelTypeFrom("X")
      .Kernel<Cpu, UniqueKernel, float, double, std::int32_t, std::int64_t>()
      .Nan("each NaN is a separate element, because it equals no other.")
      .NoGrad();
}

}  // namespace

void RegisterUnique(OpRegistry& ops) {
  AddUnique(ops, "unique");
  AddUnique(ops, "unique_with_counts")
      .Output("Count", "[number of distinct elements]: the number of occurrences of each",
              TypeFromAttr("dtype"));
}

}  // namespace penstock
