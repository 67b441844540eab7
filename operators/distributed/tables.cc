// prefetch, fake_init: how a trainer requests rows of a table sharded by id, and the placeholder of a table
// that is stored on pservers.
#include <algorithm>
#include <vector>

#include "framework/op/op_registry.h"
#include "operators/common/comm.h"

namespace penstock {
namespace {

constexpr char kPrefetchDoc[] = R"(
Requests rows X[i] of a table sharded by id from server epmap[i], under the name of X[i]; the server's program
maps this name to the table. Out[i] is the answer, one row for each id, of the version after this trainer's
last send_barrier.)";

constexpr char kFakeInitDoc[] = R"(
Out represents a table of that shape which is stored on the servers: selected rows without rows.)";

class PrefetchKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    const roles::Names servers = roles::PrefetchView(k.op()).addresses();
    const auto ids = k.Inputs("X");
    const auto rows = k.Outputs("Out");
    PENSTOCK_RETURN_IF_ERROR(CheckServers(k, ids.size(), servers));
    if (rows.size() != ids.size()) return k.Error("X has ", ids.size(), " variables, Out has ", rows.size());
    PENSTOCK_ASSIGN_OR_RETURN(client_, RequireRpc(k));
    for (std::size_t i = 0; i < ids.size(); ++i) {
      if (ids[i].dtype != DType::kInt64) return k.Error("X (", ids[i].name, ") must be row numbers, int64");
      PENSTOCK_ASSIGN_OR_RETURN(
          const RowsHandle handle,
          client_->DeclareRows(PieceOf(rows[i], servers[i], std::string(ids[i].name), TrainerOf(k))));
      questions_.push_back({ids[i], rows[i], handle});
    }
    return OkStatus();
  }
  Status Run(KernelRun& k) override {
    for (const Question& question : questions_) {
      const auto ids = k[question.ids].Span<std::int64_t>();
      PENSTOCK_RETURN_IF_ERROR(client_->PullRows(question.handle, ids, k.Var(question.rows).As<Tensor>()));
    }
    return client_->CompleteRows();
  }

 private:
  struct Question {
    Operand ids, rows;
    RowsHandle handle;
  };
  RpcClient* client_ = nullptr;
  std::vector<Question> questions_;
};

Status InferFakeInit(InferContext& c) {
  const auto extents = c.Attr<std::vector<std::int64_t>>("shape");
  if (extents.empty()) return c.Error("shape is []; a table has rows");
  c.SetKind("Out", VarKind::kSelectedRows);
  return c.SetShape("Out", Shape(std::vector<Dim>(extents.begin(), extents.end())));
}

class FakeInitKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    out_ = k.Output("Out");
    const auto extents = k.Attr<std::vector<std::int64_t>>("shape");
    height_ = extents.front();
    none_ = Shape(std::vector<Dim>(extents.begin(), extents.end())).WithRows(0);
    return OkStatus();
  }
  Status Run(KernelRun& k) override {
    SelectedRows& out = k.Var(out_).As<SelectedRows>();
    out.rows.clear();
    out.height = height_;
    out.ResetValue(out_.dtype, none_);
    return OkStatus();
  }

 private:
  TypedOperand out_;
  std::int64_t height_ = 0;
  Shape none_;
};

}  // namespace

void RegisterTables(OpRegistry& ops) {
  ops.Add("prefetch")
      .Doc("Asks servers for rows by their numbers.", kPrefetchDoc)
      .Input("X", "row numbers, one variable a server", AnyType(), Repeated())
      .Output("Out", "the answers", AnyType(), Repeated())
      .Attr("trainer_id", 0, "who asks", AtLeast(0))
      .Attr("epmap", std::vector<std::string>{"127.0.0.1:6164"}, "the server of each X")
      .InferShape(OutputsAsDeclared())
      .KernelForAnyType<Cpu, PrefetchKernel>()
      .Affects({Effect::kStep})
      .NoGrad();
  ops.Add("fake_init")
      .Doc("Declares a table that lives elsewhere.", kFakeInitDoc)
      .Output("Out", "the table", AnyType(), OfKind(VarKind::kSelectedRows))
      .RequiredAttr("shape", AttrKind::kLongs, "the table's shape", AtLeast(0))
      .InferShape(InferFakeInit)
      .KernelForAnyType<Cpu, FakeInitKernel>()
      .NoGrad();
}

}  // namespace penstock
