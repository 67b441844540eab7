// distributed_lookup_table: rows of a table that parameter servers hold in slices.
#include <algorithm>
#include <numeric>
#include <vector>

#include "framework/op/op_registry.h"
#include "operators/distributed/comm.h"

namespace penstock {
namespace {

constexpr char kDoc[] = R"(
Outputs[i] = rows of table W by Ids[i], asked of the servers that hold its slices: slice j is called
table_names[j], is on endpoints[j], and begins where slices 0 ... j-1 (height_sections) end. W itself is
never read. Each server is asked once, for each row once, and gives the version after this trainer's last
send_barrier. An id outside the table is an error; padding_idx gives zeros and is not asked for.
lookup_table_version says which lookup op it stands for, and with it whether Ids end in an extent of 1.)";

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
    const auto names = k.Attr<std::vector<std::string>>("table_names");
    const auto sections = k.Attr<std::vector<std::int64_t>>("height_sections");
    const auto servers = k.Attr<std::vector<std::string>>("endpoints");
    if (names.empty() || names.size() != sections.size() || names.size() != servers.size()) {
      return k.Error("table_names, height_sections and endpoints name ", names.size(), ", ", sections.size(),
                     " and ", servers.size(), " slices");
    }
    const Operand& first = outs_.front();
    const Dim width = first.shape[first.shape.rank() - 1];
    row_bytes_ = static_cast<std::size_t>(width) * SizeOf(first.dtype);
    PENSTOCK_ASSIGN_OR_RETURN(client_, RequireRpc(k));
    for (std::size_t s = 0; s < names.size(); ++s) {
      PENSTOCK_ASSIGN_OR_RETURN(const RowsHandle handle,
                                client_->DeclareRows({.pserver = servers[s],
                                                      .name = names[s],
                                                      .dtype = first.dtype,
                                                      .shape = {sections[s], width},
                                                      .trainer_id = k.Attr<int>("trainer_id")}));
      const Dim begin = slices_.empty() ? 0 : slices_.back().end;
      slices_.push_back({.handle = handle, .begin = begin, .end = begin + sections[s]});
    }
    return OkStatus();
  }

  Status Run(KernelRun& k) override {
    PENSTOCK_RETURN_IF_ERROR(CollectIds(k));
    for (Slice& slice : slices_) {
      slice.first = static_cast<std::size_t>(std::ranges::lower_bound(all_, slice.begin) - all_.begin());
      const auto last = static_cast<std::size_t>(std::ranges::lower_bound(all_, slice.end) - all_.begin());
      if (slice.first == last) continue;
      local_.assign(all_.begin() + static_cast<Dim>(slice.first), all_.begin() + static_cast<Dim>(last));
      for (std::int64_t& id : local_) id -= slice.begin;
      PENSTOCK_RETURN_IF_ERROR(client_->PullRows(slice.handle, local_, slice.rows));
    }
    PENSTOCK_RETURN_IF_ERROR(client_->CompleteRows());
    for (std::size_t i = 0; i < ids_.size(); ++i) {
      std::byte* to = k[outs_[i]].raw();
      for (const std::int64_t id : k[ids_[i]].Span<std::int64_t>()) {
        to = IsPadding(id) ? std::fill_n(to, row_bytes_, std::byte{0}) : std::copy_n(Row(id), row_bytes_, to);
      }
    }
    return OkStatus();
  }

 private:
  struct Slice {
    RowsHandle handle;
    Dim begin = 0, end = 0;  // rows of the table
    std::size_t first = 0;   // of all_, the first that lies here
    Tensor rows;             // that were asked for, in the order of all_
  };

  bool IsPadding(std::int64_t id) const { return padding_ != -1 && id == padding_; }

  // Every id once, ascending.
  Status CollectIds(KernelRun& k) {
    all_.clear();
    for (const Operand& operand : ids_) {
      for (const std::int64_t id : k[operand].Span<std::int64_t>()) {
        if (IsPadding(id)) continue;
        if (id < 0 || id >= slices_.back().end) {
          return InvalidArgument("E-op-index", "distributed_lookup_table: id ", id,
                                 " is outside the table of ", slices_.back().end, " rows");
        }
        all_.push_back(id);
      }
    }
    std::ranges::sort(all_);
    all_.erase(std::unique(all_.begin(), all_.end()), all_.end());
    return OkStatus();
  }

  const std::byte* Row(std::int64_t id) const {
    const auto slice =
        std::ranges::find_if(slices_, [id](const Slice& s) { return id >= s.begin && id < s.end; });
    const auto at = static_cast<std::size_t>(std::ranges::lower_bound(all_, id) - all_.begin());
    return slice->rows.raw() + (at - slice->first) * row_bytes_;
  }

  RpcClient* client_ = nullptr;
  std::vector<Operand> ids_, outs_;
  std::vector<Slice> slices_;
  std::int64_t padding_ = -1;
  std::size_t row_bytes_ = 0;
  std::vector<std::int64_t> all_, local_;
};

}  // namespace

void RegisterRemoteLookup(OpRegistry& ops) {
  ops.Add("distributed_lookup_table")
      .Doc("Rows of a table that servers hold in slices.", kDoc)
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
      .InferShape(InferRemoteLookup)
      .KernelForAnyType<Cpu, RemoteLookupKernel>()
      .SideEffect()
      .NoGrad();
}

}  // namespace penstock
