// hierarchical_sigmoid: the log loss of a class, as a product of decisions along its path in a binary tree.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <string>

#include "framework/op/op_registry.h"
#include "operators/common/copy.h"
#include "operators/common/fluid_attrs.h"
#include "operators/common/require_shape.h"

namespace penstock {
namespace {

constexpr char kDoc[] = R"(
z[j]   = W[node j] . X + Bias[node j], clipped to [-40, 40], for the nodes on the path to Label
PreOut = log(1 + exp(z))
Out    = sum of PreOut - (sum of z[j] over the nodes where the path takes the right branch)

By default, the tree is the complete binary tree with num_classes leaves: bit j of c = Label + num_classes is
the branch at node c / 2^(j + 1) - 1. PathTable and PathCode give other paths, one row per example: the nodes,
terminated by -1, and the branches. Paths may have different lengths; as in Fluid, each position after the end
of a path adds log(2) and has no gradient. With is_sparse the gradient of W is selected rows, one for each
node of each path. Morin, Bengio: "Hierarchical probabilistic neural network language model", AISTATS 2005.)";

// Returns how often a number can be halved until it is 0.
Dim Halvings(std::int64_t number) {
  return static_cast<Dim>(std::bit_width(static_cast<std::uint64_t>(number)));
}

// The number of columns of PreOut.
Dim LongestWay(const InferContext& c) {
  if (c.HasInput("PathTable")) return c.ShapeOf("PathTable")[1];
  return Halvings(c.Attr<int>("num_classes") - 1);
}

Status InferHsigmoid(InferContext& c) {
  PENSTOCK_RETURN_IF_ERROR(c.RequireRank("X", 2));
  PENSTOCK_RETURN_IF_ERROR(c.RequireRank("W", 2));
  const Shape &x = c.ShapeOf("X"), &w = c.ShapeOf("W");
  if (!Compatible(x[1], w[1])) return c.Error("width of W (", w[1], ") must equal width of X (", x[1], ")");
  if (!Compatible(c.ShapeOf("Label").Count(), x[0]))
    return c.Error("Label (", c.ShapeOf("Label"), ") must hold one element for each row of X (", x[0], ")");
  if (c.HasInput("Bias") && !Compatible(c.ShapeOf("Bias").Count(), w[0]))
    return c.Error("Bias (", c.ShapeOf("Bias"), ") must hold one element for each row of W (", w[0], ")");
  if (c.HasInput("PathTable") != c.HasInput("PathCode"))
    return c.Error("PathTable and PathCode must be given both or neither");
  if (c.HasInput("PathTable")) {
    PENSTOCK_RETURN_IF_ERROR(c.RequireRank("PathTable", 2));
    if (!Compatible(c.ShapeOf("PathTable"), c.ShapeOf("PathCode")) ||
        !Compatible(c.ShapeOf("PathTable")[0], x[0])) {
      return c.Error("PathTable (", c.ShapeOf("PathTable"), ") and PathCode (", c.ShapeOf("PathCode"),
                     ") must have one shape and a row for each row of X (", x[0], ")");
    }
  }
  PENSTOCK_RETURN_IF_ERROR(c.SetShape("PreOut", {x[0], LongestWay(c)}));
  PENSTOCK_RETURN_IF_ERROR(c.ShareAll("W", "W_Out"));
  c.ShareLod("X", "Out");
  return c.SetShape("Out", {x[0], 1});
}

Status InferHsigmoidGrad(InferContext& c) {
  PENSTOCK_RETURN_IF_ERROR(c.ShareAll("X", "X@GRAD"));
  PENSTOCK_RETURN_IF_ERROR(c.ShareAll("W", "W@GRAD"));
  c.SetKind("W@GRAD", c.Attr<bool>("is_sparse") ? VarKind::kSelectedRows : VarKind::kTensor);
  if (c.HasInput("Bias")) return c.ShareAll("Bias", "Bias@GRAD");
  return c.HasOutput("Bias@GRAD") ? c.Error("Bias@GRAD needs the input Bias") : OkStatus();
}

// The paths of a batch.
class Ways {
 public:
  Status Prepare(const KernelSetup& k) {
    type_ = k.op().type();
    k.Bind(label_, table_, code_);
    classes_ = k.Attr<int>("num_classes");
    const Shape &x = k.Input("X").shape, &w = k.Input("W").shape;
    if (x.rank() != 2 || w.rank() != 2 || x[1] != w[1])
      return k.Error("X (", x, ") and W (", w, ") must have rank 2 and one width");
    nodes_ = w[0];
    if (k.Input("Bias")) PENSTOCK_RETURN_IF_ERROR(RequireCount(k, "Bias", nodes_));
    if (table_ && k[table_].shape.rank() != 2)
      return k.Error("rank of PathTable (", k[table_].shape, ") must be 2");
    longest_ = table_ ? k[table_].shape[1] : Halvings(classes_ - 1);
    if (table_) {
      PENSTOCK_RETURN_IF_ERROR(RequireShape(k, "PathCode", k[table_].shape));
      return RequireCount(k, "PathTable", k.Input("X").shape[0] * longest_);
    }
    return RequireCount(k, "Label", k.Input("X").shape[0]);
  }
  Dim longest() const { return longest_; }

  // Calls visit(position on the path, node, right branch) for each node on the path of one example.
  template <typename Visit>
  Status ForEach(KernelRun& k, Dim example, Visit visit) const {
    if (table_) {
      const std::int64_t* const table = k[table_].Data<std::int64_t>() + example * longest_;
      const std::int64_t* const code = k[code_].Data<std::int64_t>() + example * longest_;
      for (Dim j = 0; j < longest_ && table[j] >= 0; ++j) {
        if (table[j] >= nodes_) return NoNode(table[j]);
        visit(j, table[j], code[j] != 0);
      }
      return OkStatus();
    }
    const std::int64_t label = k[label_].Data<std::int64_t>()[example];
    if (label < 0 || label >= classes_) {
      return InvalidArgument("E-op-label", type_, ": label ", label, " must be in [0, ", classes_, ")");
    }
    const std::int64_t code = label + classes_;
    for (Dim j = 0; j + 1 < Halvings(code); ++j) {
      const Dim node = (code >> (j + 1)) - 1;
      if (node >= nodes_) return NoNode(node);
      visit(j, node, (code >> j) % 2 == 1);
    }
    return OkStatus();
  }

 private:
  Status NoNode(Dim node) const {
    return InvalidArgument("E-op-index", type_, ": node ", node, " is outside of W, which has ", nodes_,
                           " rows");
  }
  std::string type_;
  In<"Label"> label_;
  In<"PathTable"> table_;
  In<"PathCode"> code_;
  std::int64_t classes_ = 2;
  Dim nodes_ = 0, longest_ = 0;
};

template <typename Device, typename T>
class HsigmoidKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(x_, w_, bias_, out_, pre_out_, w_out_);
    PENSTOCK_RETURN_IF_ERROR(RequireOutput(k, "PreOut"));
    return ways_.Prepare(k);
  }
  Status Run(KernelRun& k) override {
    const Dim width = k[x_].shape()[1];
    const T* const w = k[w_].template Data<T>();
    const T* const bias = bias_ ? k[bias_].template Data<T>() : nullptr;
    T* const out = k[out_].template Data<T>();
    for (Dim i = 0; i < k[x_].shape()[0]; ++i) {
      const T* const x = k[x_].template Data<T>() + i * width;
      T* const pre = k[pre_out_].template Data<T>() + i * ways_.longest();
      std::fill_n(pre, ways_.longest(), T{0});
      T right = 0;
      PENSTOCK_RETURN_IF_ERROR(ways_.ForEach(k, i, [&](Dim j, Dim node, bool goes_right) {
        T z = bias == nullptr ? T{0} : bias[node];
        for (Dim d = 0; d < width; ++d) z += w[node * width + d] * x[d];
        pre[j] = std::clamp(z, T{-40}, T{40});
        if (goes_right) right += pre[j];
      }));
      T sum = 0;
      for (Dim j = 0; j < ways_.longest(); ++j) {
        pre[j] = std::log1p(std::exp(pre[j]));
        sum += pre[j];
      }
      out[i] = sum - right;
    }
    if (w_out_ && w_out_.index != w_.index) CopyElements(k, w_, w_out_);
    return OkStatus();
  }

 private:
  In<"X"> x_;
  In<"W"> w_;
  In<"Bias"> bias_;
  Out<"Out"> out_;
  Out<"PreOut"> pre_out_;
  Out<"W_Out"> w_out_;
  Ways ways_;
};

// dz = dOut * (sigmoid(z) - right), where sigmoid(z) = 1 - exp(-PreOut).
template <typename Device, typename T>
class HsigmoidGradKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(x_, w_, pre_out_, dout_, dx_, dw_, dbias_);
    PENSTOCK_RETURN_IF_ERROR(ways_.Prepare(k));
    PENSTOCK_RETURN_IF_ERROR(RequireShape(k, "PreOut", {k[x_].shape[0], ways_.longest()}));
    lists_rows_ = k[dw_].kind == VarKind::kSelectedRows;
    return RequireCount(k, "Out@GRAD", k[x_].shape[0]);
  }
  Status Run(KernelRun& k) override {
    const Dim width = k[x_].shape()[1];
    const bool sparse = dw_ && lists_rows_;
    const T* const w = k[w_].template Data<T>();
    T* const dx = Cleared(k, dx_);
    T* const dbias = Cleared(k, dbias_);
    T* dw = sparse ? nullptr : Cleared(k, dw_);
    if (sparse) {
      PENSTOCK_RETURN_IF_ERROR(ListRows(k));
      dw = k.Var(dw_).template As<SelectedRows>().value.template Data<T>();
    }
    for (Dim i = 0, listed = 0; i < k[x_].shape()[0]; ++i) {
      const T* const x = k[x_].template Data<T>() + i * width;
      const T* const pre = k[pre_out_].template Data<T>() + i * ways_.longest();
      const T dout = k[dout_].template Data<T>()[i];
      PENSTOCK_RETURN_IF_ERROR(ways_.ForEach(k, i, [&](Dim j, Dim node, bool goes_right) {
        const T dz = dout * (T{1} - std::exp(-pre[j]) - (goes_right ? T{1} : T{0}));
        if (dbias != nullptr) dbias[node] += dz;
        for (Dim d = 0; dx != nullptr && d < width; ++d) dx[i * width + d] += dz * w[node * width + d];
        T* const row = dw == nullptr ? nullptr : dw + (sparse ? listed++ : node) * width;
        for (Dim d = 0; row != nullptr && d < width; ++d) row[d] = (sparse ? T{0} : row[d]) + dz * x[d];
      }));
    }
    return OkStatus();
  }

 private:
  static T* Cleared(KernelRun& k, const Operand& operand) {
    if (!operand) return nullptr;
    std::ranges::fill(k[operand].template Span<T>(), T{0});
    return k[operand].template Data<T>();
  }
  Status ListRows(KernelRun& k) {
    auto& dw = k.Var(dw_).template As<SelectedRows>();
    dw.height = k[w_].shape()[0];
    dw.rows.clear();
    for (Dim i = 0; i < k[x_].shape()[0]; ++i) {
      PENSTOCK_RETURN_IF_ERROR(ways_.ForEach(k, i, [&dw](Dim, Dim node, bool) { dw.rows.push_back(node); }));
    }
    rows_shape_.Set(0, static_cast<Dim>(dw.rows.size()));
    rows_shape_.Set(1, k[x_].shape()[1]);
    dw.ResetValue(DTypeOfT<T>::kValue, rows_shape_);
    return OkStatus();
  }

  In<"X"> x_;
  In<"W"> w_;
  In<"PreOut"> pre_out_;
  In<"Out@GRAD"> dout_;
  Out<"X@GRAD"> dx_;
  Out<"W@GRAD"> dw_;
  bool lists_rows_ = false;
  Out<"Bias@GRAD"> dbias_;
  Shape rows_shape_{0, 0};
  Ways ways_;
};

}  // namespace

void RegisterHierarchicalSigmoid(OpRegistry& ops) {
  ops.Add("hierarchical_sigmoid")
      .Doc("The log loss of a class as a product of decisions along its path in a binary tree.", kDoc)
      .Input("X", "one row per example", Floats())
      .Input("W", "one row per inner node", SameTypeAs("X"))
      .Input("Label", "the classes, one per example", Only(DType::kInt64))
      .Input("PathTable", "the nodes of each path", Only(DType::kInt64), Optional())
      .Input("PathCode", "the branches of each path: 1 is the right branch", Only(DType::kInt64), Optional())
      .Input("Bias", "one element per inner node", SameTypeAs("X"), Optional())
      .Output("Out", "one loss per example", SameTypeAs("X"))
      .Output("PreOut", "log(1 + exp(z)), for the gradient", SameTypeAs("X"), Intermediate())
      .Output("W_Out", "W itself", SameTypeAs("X"), Intermediate() | Optional())
      .Attr("num_classes", 2, "the number of leaves of the tree", AtLeast(2))
      .Attr("remote_prefetch", false, kNoEffect)
      .Attr("trainer_id", 0, kNoEffect)
      .Attr("height_sections", std::vector<std::int64_t>(), kNoEffect)
      .Attr("epmap", std::vector<std::string>(), kNoEffect)
      .Attr("table_names", std::vector<std::string>(), kNoEffect)
      .Attr("is_sparse", false, "whether the gradient of W is selected rows")
      .InferShape(InferHsigmoid)
      .Kernel<Cpu, HsigmoidKernel, float, double>()
      .Grad({.reads = {"X", "W", "Label", "PathTable", "PathCode", "Bias"},
             .reads_outputs = {"PreOut"},
             .yields = {"X", "W", "Bias"},
             .sparse = {"W"},
             .apart = {"X", "W", "Bias"}})
      .GradKernel<Cpu, HsigmoidGradKernel, float, double>()
      .GradDef()
      .InferShape(InferHsigmoidGrad);
}

}  // namespace penstock
