// Tables whose rows are spread over parameter servers: asking for rows, dealing ids out and putting answers
// together.
#include "framework/op/op_registry.h"
#include "operators/fluid_attrs.h"

namespace penstock {
namespace {

constexpr char kRemoteLookupDoc[] = R"(
Outputs[i] = rows of table W by Ids[i], asked of the servers that hold its slices: slice j is called
table_names[j], is on endpoints[j], and begins where slices 0 ... j-1 (height_sections) end. W itself is
never read. lookup_table_version says which lookup op it stands for, and with it whether Ids end in an extent
of 1.)";

constexpr char kPrefetchDoc[] = R"(
Sends X[i] (row numbers) to server epmap[i]; Out[i] is its answer: one row for each.)";

constexpr char kSplitIdsDoc[] = R"(
Deals ids out to n = count(Out) servers: Out[i] gets each id of any of Ids with id mod n = i once, ascending.
Ids may be selected rows; then Out[i] is selected rows with the values of those ids, which must stand there
once.)";

constexpr char kMergeIdsDoc[] = R"(
Undoes split_ids: X[j] holds one row for each id in Rows[j]; Out[i] gets, for each id of Ids[i] in order, its
row.)";

constexpr char kSparseTableDoc[] = R"(
Out[i] = the row of table W for Ids[i], zeros where Ids[i] is padding_idx. With auto_grown_table a row that W
does not have yet is made, unless is_test. W is selected rows: those that have been made.)";

constexpr char kFakeInitDoc[] = R"(
Out is declared and stays without a value: the table lives on the servers.)";

constexpr char kRefDoc[] = R"(
Out = X[n], where TrainerId holds n in its one element.)";

// Refuses when the program is compiled, before anything has run.
class TableNotRunKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    return Unimplemented(
        "E-comm-table", k.op().type(),
        ": tables over parameter servers are transpiled, but not run yet; use is_sparse=False and "
        "is_distributed=False");
  }
  Status Run(KernelRun&) override { return OkStatus(); }
};

void AddRemoteLookups(OpRegistry& ops) {
  ops.Add("distributed_lookup_table")
      .Doc("Rows of a table that servers hold in slices.", kRemoteLookupDoc)
      .Input("Ids", "row numbers, one variable a lookup", Only(DType::kInt64), Repeated())
      .Input("W", "the table, as it is declared", AnyType())
      .Output("Outputs", "the rows of each lookup", AnyType(), Repeated())
      .Attr("table_names", std::vector<std::string>{""}, "what each slice is called")
      .Attr("height_sections", std::vector<std::int64_t>(), "rows of each slice", AtLeast(0))
      .Attr("endpoints", std::vector<std::string>{"127.0.0.1:6164"}, "the server of each slice")
      .Attr("trainer_id", 0, "who asks", AtLeast(0))
      .Attr("lookup_table_version", "lookup_table", "the lookup op it stands for",
            OneOf({"lookup_table", "lookup_table_v2"}))
      .Attr("padding_idx", std::int64_t{-1}, "the id that stands for no row; -1: none", AtLeast(-1))
      .Attr("dtype", static_cast<std::int32_t>(DType::kFp32),
            "element type of the rows, as Fluid numbers them")
      .InferShape(OutputsAsDeclared())
      .KernelForAnyType<Cpu, TableNotRunKernel>()
      .SideEffect()
      .NoGrad();
  ops.Add("prefetch")
      .Doc("Asks servers for rows by their numbers.", kPrefetchDoc)
      .Input("X", "row numbers, one variable a server", AnyType(), Repeated())
      .Output("Out", "the answers", AnyType(), Repeated())
      .Attr("trainer_id", 0, "who asks", AtLeast(0))
      .Attr("epmap", std::vector<std::string>{"127.0.0.1:6164"}, "the server of each X")
      .InferShape(OutputsAsDeclared())
      .KernelForAnyType<Cpu, TableNotRunKernel>()
      .SideEffect()
      .NoGrad();
}

}  // namespace

void RegisterTables(OpRegistry& ops) {
  AddRemoteLookups(ops);
  ops.Add("split_ids")
      .Doc("Deals ids out to servers.", kSplitIdsDoc)
      .Input("Ids", "row numbers, or selected rows", AnyType(), Repeated())
      .Output("Out", "one variable a server", AnyType(), Repeated())
      .InferShape(OutputsAsDeclared())
      .NoGrad();
  ops.Add("merge_ids")
      .Doc("Puts the servers' answers in the order of the ids.", kMergeIdsDoc)
      .Input("Ids", "row numbers, one variable a lookup", Only(DType::kInt64), Repeated())
      .Input("Rows", "the ids that each server was asked for", Only(DType::kInt64), Repeated())
      .Input("X", "its answer", AnyType(), Repeated())
      .Output("Out", "the rows of each lookup", AnyType(), Repeated())
      .InferShape(OutputsAsDeclared())
      .NoGrad();
  ops.Add("lookup_sparse_table")
      .Doc("Rows of a table that grows.", kSparseTableDoc)
      .Input("W", "the table's shard: selected rows", AnyType())
      .Input("Ids", "row numbers", Only(DType::kInt64))
      .Output("Out", "one row for each id", SameTypeAs("W"))
      .Attr("padding_idx", std::int64_t{-1}, "the id that stands for no row; -1: none", AtLeast(-1))
      .Attr("auto_grown_table", true, "whether missing rows are made")
      .Attr("is_test", false, "whether missing rows are zeros that are not kept")
      .InferShape(OutputsAsDeclared())
      .KernelForAnyType<Cpu, TableNotRunKernel>()
      .SideEffect()
      .NoGrad();
  ops.Add("fake_init")
      .Doc("Declares a table that lives elsewhere.", kFakeInitDoc)
      .Output("Out", "the table", AnyType())
      .RequiredAttr("shape", AttrKind::kLongs, "the table's shape", AtLeast(0))
      .InferShape(OutputsAsDeclared())
      .KernelForAnyType<Cpu, TableNotRunKernel>()
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
