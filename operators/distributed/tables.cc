// Tables whose rows are spread over parameter servers: what stands in for them on a trainer, and the ops of
// tables that are dealt out id by id.
#include <algorithm>
#include <vector>

#include "framework/op/op_registry.h"

namespace penstock {
namespace {

constexpr char kPrefetchDoc[] = R"(
Sends X[i] (row numbers) to server epmap[i]; Out[i] is its answer: one row for each.)";

constexpr char kFakeInitDoc[] = R"(
Out stands for a table of that shape that lives on the servers: selected rows, of which none are here.)";

constexpr char kRefDoc[] = R"(
Out = X[n], where TrainerId holds n in its one element.)";

// Refuses when the program is compiled, before anything has run.
class PrefetchNotRunKernel : public Kernel {
 public:
  Status Prepare(KernelSetup&) override {
    return Unimplemented("E-comm-table",
                         "prefetch: tables with is_distributed are transpiled, but not run yet; use "
                         "is_sparse=True and is_distributed=False");
  }
  Status Run(KernelRun&) override { return OkStatus(); }
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
    out.value.Reset(out_.dtype, none_);
    return OkStatus();
  }

 private:
  Operand out_;
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
      .KernelForAnyType<Cpu, PrefetchNotRunKernel>()
      .SideEffect()
      .NoGrad();
  ops.Add("fake_init")
      .Doc("Declares a table that lives elsewhere.", kFakeInitDoc)
      .Output("Out", "the table", AnyType())
      .RequiredAttr("shape", AttrKind::kLongs, "the table's shape", AtLeast(0))
      .InferShape(InferFakeInit)
      .KernelForAnyType<Cpu, FakeInitKernel>()
      .NoGrad();
  ops.Add("ref_by_trainer_id")
      .Doc("The variable of one trainer.", kRefDoc)
      .Input("X", "one variable a trainer", AnyType(), Repeated())
      .Input("TrainerId", "one element: which", AnyType())
      .Output("Out", "shaped like X[0]", SameTypeAs("X"))
      .InferShape(SameShape("X", "Out"))
      .NoGrad();
}

}  // namespace penstock
