// lod_rank_table: sequences sorted by length. max_sequence_len, reorder_lod_tensor_by_rank: the longest
// length, and sequences in that order.
#include <algorithm>

#include "framework/op/op_registry.h"
#include "operators/common/lod.h"
#include "operators/control_flow/rank_table.h"

namespace penstock {
namespace {

constexpr char kTableDoc[] = R"(
Out lists the sequences of X's LoD level `level`, longest first; sequences of equal length keep their order.
For each it holds its position in X and its length, counted in elements of the level below.)";

constexpr char kMaxDoc[] = R"(
Out is the length of the longest sequence of RankTable, or 0 if it has none.)";

constexpr char kReorderDoc[] = R"(
Out has the sequences of X in the order of RankTable. Without LoD, each row of X is a sequence. X must have as
many sequences as the table. The gradient restores the original order.)";

class RankTableKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(out_);
    x_ = k.Input("X");
    level_ = k.Attr<int>("level");
    return OkStatus();
  }

  Status Run(KernelRun& k) override {
    const Tensor& x = k[x_];
    const auto level = static_cast<std::size_t>(level_);
    if (level >= x.lod().size()) {
      return InvalidArgument("E-op-lod", "lod_rank_table: X (", x_.name, ") has ", x.lod().size(),
                             " LoD levels; there is no level ", level_);
    }
    if (!IsValid(x.lod(), x.shape()[0]))
      return InvalidArgument("E-op-lod", "lod_rank_table: the LoD of X (", x_.name,
                             ") does not match its rows");
    RankTable& table = k.Var(out_).As<RankTable>();
    table.coarse.assign(x.lod().begin(), x.lod().begin() + level_);
    table.items.clear();
    const LoDLevel& offsets = x.lod()[level];
    for (std::size_t i = 0; i + 1 < offsets.size(); ++i) {
      table.items.push_back(
          {static_cast<std::int64_t>(i), static_cast<std::int64_t>(offsets[i + 1] - offsets[i])});
    }
    std::sort(table.items.begin(), table.items.end(), [](const RankTable::Item& a, const RankTable::Item& b) {
      return a.length != b.length ? a.length > b.length : a.index < b.index;
    });
    return OkStatus();
  }

 private:
  Out<"Out"> out_;
  NamedOperand x_;
  int level_ = 0;
};

class MaxSequenceLenKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(out_);
    table_ = k.Input("RankTable");
    return OkStatus();
  }
  Status Run(KernelRun& k) override {
    PENSTOCK_ASSIGN_OR_RETURN(const RankTable* const table, TableIn(k, table_, "max_sequence_len"));
    *k[out_].Data<std::int64_t>() = table->items.empty() ? 0 : table->items.front().length;
    return OkStatus();
  }

 private:
  NamedOperand table_;
  Out<"Out"> out_;
};

// Copies sequences from the order of the table to that of X, or the reverse.
template <bool kBack>
class ReorderKernel : public RankedKernel {
 public:
  Status Run(KernelRun& k) override {
    PENSTOCK_ASSIGN_OR_RETURN(const RankTable* const table, TableIn(k, table_, "reorder_lod_tensor_by_rank"));
    const Tensor& x = k[x_];
    const std::int64_t sequences =
        x.lod().empty() ? x.shape()[0] : static_cast<std::int64_t>(x.lod().front().size()) - 1;
    if (sequences != static_cast<std::int64_t>(table->items.size()) || !IsValid(x.lod(), x.shape()[0])) {
      return InvalidArgument("E-op-rank-table", "reorder_lod_tensor_by_rank: X (", x_.name, ") has ",
                             sequences, " sequences; the rank table ", table_.name, " has ",
                             table->items.size());
    }
    order_.resize(table->items.size());
    for (std::size_t p = 0; p < order_.size(); ++p) {
      const auto index = static_cast<std::size_t>(table->items[p].index);
      order_[kBack ? index : p] = kBack ? p : index;
    }
    Tensor& out = k[out_];
    out.Reset(x.dtype(), x.shape());
    RowWriter writer(out);
    for (const std::uint64_t i : order_) writer.Append(x, RowsOf(x.lod(), 0, i));
    made_.Set(out, levels_(x.lod(), 0, order_));
    return OkStatus();
  }

 private:
  std::vector<std::uint64_t> order_;
  LevelsInOrder levels_;
  MadeLod made_;
};

Result<std::vector<Op>> ReorderGrad(const GradRequest& request) {
  const std::string dx = request.grad_of(request.forward.InputName("X"));
  if (dx.empty()) return std::vector<Op>();
  Op grad("reorder_lod_tensor_by_rank_grad");
  grad.AddInput("X", {request.grad_of(request.forward.OutputName("Out"))});
  grad.AddInput("RankTable", request.forward.Input("RankTable")).AddOutput("Out", {dx});
  return std::vector<Op>{std::move(grad)};
}

Status InferReorder(InferContext& c) {
  PENSTOCK_RETURN_IF_ERROR(c.ShareAll("X", "Out"));
  c.SetLodLevel("Out", c.Input("X").lod_level);  // with other offsets
  return OkStatus();
}

OpDef& DeclareReorder(OpRegistry& ops, const std::string& type, std::string summary) {
  return ops.Add(type)
      .Doc(std::move(summary), kReorderDoc)
      .Input("X", "sequences, or one row per sequence", AnyType())
      .Input("RankTable", "the order", AnyType(), OfKind(VarKind::kRankTable))
      .Output("Out", "the same sequences in another order", SameTypeAs("X"))
      .InferShape(InferReorder);
}

}  // namespace

void RegisterLodRankTable(OpRegistry& ops) {
  ops.Add("lod_rank_table")
      .Doc("Sorts sequences by length.", kTableDoc)
      .Input("X", "sequences", AnyType())
      .Output("Out", "the table", AnyType(), OfKind(VarKind::kRankTable))
      .Attr("level", 0, "the LoD level to sort", AtLeast(0))
      .InferShape([](InferContext& c) {
        c.SetKind("Out", VarKind::kRankTable);
        return OkStatus();
      })
      .KernelForAnyType<Cpu, RankTableKernel>()
      .NoGrad();
  ops.Add("max_sequence_len")
      .Doc("The length of the longest sequence of a rank table.", kMaxDoc)
      .Input("RankTable", "the table", AnyType(), OfKind(VarKind::kRankTable))
      .Output("Out", "one integer", Only(DType::kInt64))
      .InferShape([](InferContext& c) { return c.SetShape("Out", {1}); })
      .KernelForAnyType<Cpu, MaxSequenceLenKernel>()
      .NoGrad();
  DeclareReorder(ops, "reorder_lod_tensor_by_rank", "Puts sequences into the order of a rank table.")
      .KernelForAnyType<Cpu, ReorderKernel<false>>()
      .GradMadeBy(ReorderGrad);
  DeclareReorder(ops, "reorder_lod_tensor_by_rank_grad", "The gradient of reorder_lod_tensor_by_rank.")
      .KernelForAnyType<Cpu, ReorderKernel<true>>()
      .NoGrad();
}

}  // namespace penstock
