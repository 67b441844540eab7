// split_ids, merge_ids: shard row numbers by id, and put the answers back in order.
#include <algorithm>
#include <bit>
#include <span>
#include <vector>

#include "framework/op/op_registry.h"
#include "operators/common/merge_rows.h"
#include "operators/common/order_rows.h"

namespace penstock {
namespace {

constexpr char kSplitDoc[] = R"(
Shards ids over n = count(Out) servers: Out[i] gets each distinct id of all Ids with id mod n = i once, in
ascending order. An id is any int64; mod treats it as an unsigned 64-bit number. If Ids are selected rows,
Out[i] is selected rows: the rows with these ids, in their order, duplicates included, each with its own
values. Fluid gives each of equal ids the values of the last one.)";

constexpr char kMergeDoc[] = R"(
The inverse of split_ids: X[j] holds one row for each id in Rows[j]; Out[i] gets the row of each id of Ids[i],
in order.)";

// The server of each id, and how many ids each server gets. Takes one pass over the ids, whatever the number
// of servers.
class Shards {
 public:
  void Assign(std::span<const std::int64_t> ids, std::size_t servers) {
    counts_.assign(servers, 0);
    server_of_.resize(ids.size());
    for (std::size_t i = 0; i < ids.size(); ++i) {
      // As in Fluid, the id is taken as an unsigned number of 64 bits, so negative ones have a server too.
      server_of_[i] = static_cast<std::size_t>(ids[i]) % servers;
      ++counts_[server_of_[i]];
    }
  }
  std::size_t server_of(std::size_t i) const { return server_of_[i]; }
  Dim count(std::size_t server) const { return static_cast<Dim>(counts_[server]); }

 private:
  std::vector<std::size_t> server_of_, counts_;
};

Status InferSplit(InferContext& c) {
  const bool rows = c.Input("Ids").kind == VarKind::kSelectedRows;
  for (int i = 0; i < c.InputCount("Ids"); ++i) {
    if (c.Input("Ids", i).kind == VarKind::kSelectedRows) {
      if (c.InputCount("Ids") > 1) return c.Error("selected rows in Ids must be the only argument");
    } else if (c.DTypeOf("Ids", i) != DType::kInt64) {
      return c.Error("element type of Ids[", i, "] (", DTypeName(c.DTypeOf("Ids", i)), ") must be i64");
    }
  }
  for (int i = 0; i < c.OutputCount("Out"); ++i) {
    c.SetKind("Out", rows ? VarKind::kSelectedRows : VarKind::kTensor, i);
    c.SetDType("Out", c.DTypeOf("Ids"), i);
    if (rows) {
      PENSTOCK_RETURN_IF_ERROR(c.SetShape("Out", i, c.ShapeOf("Ids")));
    } else if (!c.Output("Out", i).has_type) {  // Fluid declares a server's part like the ids themselves
      PENSTOCK_RETURN_IF_ERROR(c.SetShape("Out", i, {kUnknownDim, 1}));
    }
  }
  return OkStatus();
}

class SplitIdsKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    inputs_.assign(k.Inputs("Ids").begin(), k.Inputs("Ids").end());
    outs_.assign(k.Outputs("Out").begin(), k.Outputs("Out").end());
    if (inputs_.front().kind == VarKind::kSelectedRows && inputs_.front().dtype != DType::kFp32 &&
        inputs_.front().dtype != DType::kFp64)
      return k.Error("Ids (", inputs_.front().name, ") must have values of float32 or float64");
    return OkStatus();
  }
  Status Run(KernelRun& k) override {
    if (inputs_.front().kind == VarKind::kTensor) return SplitTensors(k);
    const SelectedRows& x = k.Var(inputs_.front()).As<SelectedRows>();
    return x.value.dtype() == DType::kFp64 ? SplitRows<double>(k, x) : SplitRows<float>(k, x);
  }

 private:
  Status SplitTensors(KernelRun& k) {
    all_.clear();
    entries_.clear();
    for (const Argument& input : inputs_) {
      for (const std::int64_t id : k[input].Span<std::int64_t>()) entries_.push_back({id});
    }
    OrderByRow(entries_, spare_);
    for (const Entry& entry : entries_) {
      if (all_.empty() || all_.back() != entry.row) all_.push_back(entry.row);
    }
    shards_.Assign(all_, outs_.size());
    ids_of_.resize(outs_.size());
    for (std::size_t s = 0; s < outs_.size(); ++s) {
      shape_.Set(0, shards_.count(s));
      Tensor& out = k.Var(outs_[s]).As<Tensor>();
      out.Reset(DType::kInt64, shape_);
      ids_of_[s] = out.Data<std::int64_t>();
    }
    for (std::size_t i = 0; i < all_.size(); ++i) *ids_of_[shards_.server_of(i)]++ = all_[i];
    return OkStatus();
  }

  template <typename T>
  Status SplitRows(KernelRun& k, const SelectedRows& x) {
    PENSTOCK_RETURN_IF_ERROR(RequireRowValues("split_ids", "Ids", x, DTypeOfT<T>::kValue));
    if (x.value.initialized()) {
      row_shape_ = x.value.shape();
    } else {
      row_shape_ = {0, 0};  // no row, of unknown width
    }
    const Dim width = row_shape_.RowWidth();
    shards_.Assign(x.rows, outs_.size());
    parts_.clear();
    for (std::size_t s = 0; s < outs_.size(); ++s) {
      SelectedRows& out = *parts_.emplace_back(&k.Var(outs_[s]).As<SelectedRows>());
      out.height = x.height;
      out.rows.clear();
      row_shape_.Set(0, shards_.count(s));
      out.ResetValue(DTypeOfT<T>::kValue, row_shape_);
    }
    for (std::size_t i = 0; i < x.rows.size(); ++i) {
      SelectedRows& out = *parts_[shards_.server_of(i)];
      const auto at = static_cast<Dim>(out.rows.size());
      std::copy_n(x.value.Data<T>() + static_cast<Dim>(i) * width, width, out.value.Data<T>() + at * width);
      out.rows.push_back(x.rows[i]);
    }
    return OkStatus();
  }

  struct Entry {
    std::int64_t row;
  };
  std::vector<Argument> inputs_, outs_;
  std::vector<Entry> entries_, spare_;
  std::vector<std::int64_t> all_;
  Shards shards_;
  std::vector<std::int64_t*> ids_of_;  // by server: where its next id goes
  std::vector<SelectedRows*> parts_;   // by server
  Shape shape_{0, 1}, row_shape_;
};

Status InferMerge(InferContext& c) {
  if (c.InputCount("Rows") != c.InputCount("X"))
    return c.Error("Rows has ", c.InputCount("Rows"), " variables, X has ", c.InputCount("X"));
  if (c.InputCount("Ids") != c.OutputCount("Out"))
    return c.Error("Ids has ", c.InputCount("Ids"), " variables, Out has ", c.OutputCount("Out"));
  for (int i = 0; i < c.OutputCount("Out"); ++i) {
    const Shape& ids = c.ShapeOf("Ids", i);
    const Shape& rows = c.ShapeOf("X");
    c.SetKind("Out", VarKind::kTensor, i);
    c.SetDType("Out", c.DTypeOf("X"), i);
    // A lookup_table's ids end in an extent of 1 that its rows do not have; a lookup_table_v2's rows have
    // all.
    const TensorDesc& declared = c.Output("Out", i);
    const bool whole = declared.has_type && declared.shape.rank() == ids.rank() + 1;
    Shape out = whole || ids.rank() == 0 ? ids : ids.First(ids.rank() - 1);
    out.Append(rows.rank() == 2 ? rows[1] : kUnknownDim);
    PENSTOCK_RETURN_IF_ERROR(c.SetShape("Out", i, out));
    c.ShareLod("Ids", i, "Out", i);
  }
  return OkStatus();
}

// The row of each id, by open addressing. Keeps its memory.
class Answers {
 public:
  void Reset(std::size_t ids) {
    std::size_t places = 16;
    while (places < 2 * ids) places *= 2;
    shift_ = std::countl_zero(places - 1);
    places_.assign(places, {});
  }
  // The first row of an id counts.
  void Add(std::int64_t id, const std::byte* row) {
    Answer& answer = places_[PlaceOf(id)];
    if (answer.row == nullptr) answer = {id, row};
  }
  const std::byte* Find(std::int64_t id) const { return places_[PlaceOf(id)].row; }

 private:
  struct Answer {
    std::int64_t id = 0;
    const std::byte* row = nullptr;
  };
  std::size_t PlaceOf(std::int64_t id) const {
    std::size_t at = (static_cast<std::uint64_t>(id) * 0x9e3779b97f4a7c15u) >> shift_;
    while (places_[at].row != nullptr && places_[at].id != id) at = (at + 1) % places_.size();
    return at;
  }
  std::vector<Answer> places_;
  int shift_ = 0;
};

class MergeIdsKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    ids_.assign(k.Inputs("Ids").begin(), k.Inputs("Ids").end());
    rows_.assign(k.Inputs("Rows").begin(), k.Inputs("Rows").end());
    answers_.assign(k.Inputs("X").begin(), k.Inputs("X").end());
    outs_.assign(k.Outputs("Out").begin(), k.Outputs("Out").end());
    for (std::size_t s = 0; s < answers_.size(); ++s) {
      const Argument& x = answers_[s];
      if (x.shape.rank() == 2 && x.shape[1] == answers_[0].shape[1] && x.dtype == answers_[0].dtype &&
          x.shape[0] == rows_[s].shape.Count())
        continue;
      return k.Error("X (", x.name, " ", x.shape, ") must hold a row for each id of ", rows_[s].name, " (",
                     rows_[s].shape, "), as wide as those of ", answers_[0].name, " (", answers_[0].shape,
                     ")");
    }
    for (std::size_t i = 0; i < ids_.size(); ++i) {
      if (outs_[i].shape.Count() == ids_[i].shape.Count() * answers_[0].shape[1]) continue;
      return k.Error("Ids (", ids_[i].name, " ", ids_[i].shape,
                     ") must end in an extent of 1, which becomes ", answers_[0].shape[1], " in Out (",
                     outs_[i].shape, ")");
    }
    row_bytes_ = static_cast<std::size_t>(answers_[0].shape[1]) * SizeOf(answers_[0].dtype);
    return OkStatus();
  }
  Status Run(KernelRun& k) override {
    std::size_t count = 0;
    for (const Argument& rows : rows_) count += k[rows].Span<std::int64_t>().size();
    found_.Reset(count);
    for (std::size_t s = 0; s < rows_.size(); ++s) {
      const std::byte* from = k[answers_[s]].raw();
      for (const std::int64_t id : k[rows_[s]].Span<std::int64_t>()) {
        found_.Add(id, from);
        from += row_bytes_;
      }
    }
    for (std::size_t i = 0; i < ids_.size(); ++i) {
      std::byte* to = k[outs_[i]].raw();
      for (const std::int64_t id : k[ids_[i]].Span<std::int64_t>()) {
        const std::byte* const from = found_.Find(id);
        if (from == nullptr)
          return InvalidArgument("E-op-index", "merge_ids: id ", id, " of ", ids_[i].name,
                                 " is in none of Rows");
        to = std::copy_n(from, row_bytes_, to);
      }
    }
    return OkStatus();
  }

 private:
  std::vector<Argument> ids_, rows_, answers_, outs_;
  std::size_t row_bytes_ = 0;
  Answers found_;
};

}  // namespace

void RegisterIds(OpRegistry& ops) {
  ops.Add("split_ids")
      .Doc("Shards ids over servers.", kSplitDoc)
      .Input("Ids", "row numbers, or selected rows", AnyType(), Repeated() | TensorOrRows())
      .Output("Out", "one variable a server", AnyType(), Repeated() | TensorOrRows())
      .InferShape(InferSplit)
      .KernelForAnyType<Cpu, SplitIdsKernel>()
      .NoGrad();
  ops.Add("merge_ids")
      .Doc("Puts the servers' answers in the order of the ids.", kMergeDoc)
      .Input("Ids", "row numbers, one variable a lookup", Only(DType::kInt64), Repeated())
      .Input("Rows", "the ids that each server was asked for", Only(DType::kInt64), Repeated())
      .Input("X", "its answer", AnyType(), Repeated())
      .Output("Out", "the rows of each lookup", AnyType(), Repeated())
      .InferShape(InferMerge)
      .KernelForAnyType<Cpu, MergeIdsKernel>()
      .NoGrad();
}

}  // namespace penstock
