// distributed_lookup_table: rows of a table that parameter servers hold in slices.
#include <algorithm>
#include <vector>

#include "framework/op/op_registry.h"
#include "operators/common/remote_rows.h"

namespace penstock {
namespace {

constexpr char kDoc[] = R"(
Outputs[i] = rows Ids[i] of table W, requested from the servers that hold its slices: slice j is named
table_names[j], is on endpoints[j], and begins where slices 0 ... j-1 (height_sections) end. W itself is never
read. The op requests each row once, and gets the version after this trainer's last send_barrier. An id
outside the table is an error; padding_idx gives zeros and is not requested. lookup_table_version names the
lookup op that this op replaces, and thereby says whether the last extent of Ids is 1.)";

Status InferRemoteLookup(InferContext& c) {
  if (c.InputCount("Ids") != c.OutputCount("Outputs")) {
    return c.Error("Ids has ", c.InputCount("Ids"), " variables, Outputs has ", c.OutputCount("Outputs"));
  }
  const Shape& table = c.ShapeOf("W");
  const bool ends_in_one = c.Attr<std::string>("lookup_table_version") == "lookup_table";
  for (int i = 0; i < c.OutputCount("Outputs"); ++i) {
    Shape out = c.ShapeOf("Ids", i);
    if (ends_in_one) {
      if (out.rank() == 0 || !Compatible(out[out.rank() - 1], 1))
        return c.Error("the last extent of Ids (", out, ") must be 1");
      out = out.First(out.rank() - 1);
    }
    out.Append(table.rank() == 2 ? table[1] : kUnknownDim);
    if (c.Input("W").has_type) c.SetDType("Outputs", c.DTypeOf("W"), i);
    c.SetKind("Outputs", VarKind::kTensor, i);
    PENSTOCK_RETURN_IF_ERROR(c.SetShape("Outputs", i, out));
    c.ShareLod("Ids", i, "Outputs", i);
  }
  return OkStatus();
}

class RemoteLookupKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    ids_.assign(k.Inputs("Ids").begin(), k.Inputs("Ids").end());
    outs_.assign(k.Outputs("Outputs").begin(), k.Outputs("Outputs").end());
    padding_ = k.Attr<std::int64_t>("padding_idx");
    const Argument& first = k.Output("Outputs");
    return rows_.Declare(k, roles::LookupView(k.op()), first.dtype, first.shape[first.shape.rank() - 1]);
  }

  Status Run(KernelRun& k) override {
    PENSTOCK_RETURN_IF_ERROR(CollectIds(k));
    PENSTOCK_RETURN_IF_ERROR(rows_.Fetch(all_));
    const std::size_t bytes = rows_.row_bytes();
    std::size_t fetched = 0;
    for (std::size_t i = 0; i < ids_.size(); ++i) {
      std::byte* to = k[outs_[i]].raw();
      for (const std::int64_t id : k[ids_[i]].Span<std::int64_t>())
        to = IsPadding(id) ? std::fill_n(to, bytes, std::byte{0})
                           : std::copy_n(rows_.Row(fetched++), bytes, to);
    }
    return OkStatus();
  }

 private:
  bool IsPadding(std::int64_t id) const { return padding_ != -1 && id == padding_; }

  Status CollectIds(KernelRun& k) {
    all_.clear();
    for (const Operand& operand : ids_) {
      for (const std::int64_t id : k[operand].Span<std::int64_t>()) {
        if (IsPadding(id)) continue;
        if (id < 0 || id >= rows_.height()) {
          return InvalidArgument("E-op-index", "distributed_lookup_table: id ", id,
                                 " is outside the table of ", rows_.height(), " rows");
        }
        all_.push_back(id);
      }
    }
    return OkStatus();
  }

  std::vector<Operand> ids_, outs_;
  RemoteRows rows_;
  std::int64_t padding_ = -1;
  std::vector<std::int64_t> all_;
};

}  // namespace

void RegisterRemoteLookup(OpRegistry& ops) {
  ops.Add("distributed_lookup_table")
      .Doc("Rows of a table that servers hold in slices.", kDoc)
      .Input("Ids", "row numbers, one variable a lookup", Only(DType::kInt64), Repeated())
      .Input("W", "the table, as it is declared", AnyType(), TensorOrRows())
      .Output("Outputs", "the rows of each lookup", AnyType(), Repeated())
      .Attr("table_names", std::vector<std::string>{""}, "what each slice is called")
      .Attr("height_sections", std::vector<std::int64_t>(), "rows of each slice", AtLeast(0))
      .Attr("endpoints", std::vector<std::string>{"127.0.0.1:6164"}, "the server of each slice")
      .Attr("trainer_id", 0, "who asks", AtLeast(0))
      .Attr("lookup_table_version", "lookup_table", "the lookup op it stands for",
            OneOf({"lookup_table", "lookup_table_v2"}))
      .Attr("padding_idx", std::int64_t{-1}, "the id that stands for no row; -1: none")
      .Attr("dtype", static_cast<std::int32_t>(DType::kFp32),
            "element type of the rows, as Fluid numbers them")
      .InferShape(InferRemoteLookup)
      .KernelForAnyType<Cpu, RemoteLookupKernel>()
      .Affects({Effect::kStep})
      .NoGrad();
}

}  // namespace penstock
