// Selected rows as the output of an op that fills a variable. A variable declared as distributed is a table
// sharded by id: it starts without rows, with a rule that computes the initial value of each row when the row
// is created. Other selected rows get all values at once and, as in Fluid, an empty list of rows.
//
//   PENSTOCK_RETURN_IF_ERROR(rows_.Prepare(k, out_));
//   if (rows_.sharded_by_id()) rows_.Start(k, std::make_shared<MyRows>(...));    // each run
//   else if (rows_.is_rows()) Fill(rows_.Values(k))                              // after GivenShape::Make
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "framework/ir/program.h"
#include "framework/op/kernel.h"
#include "framework/tensor/row_start.h"

namespace penstock {

class StartRows {
 public:
  Status Prepare(const KernelSetup& k, const Argument& out) {
    out_ = out;
    if (!is_rows()) return OkStatus();
    const Program* program = k.site().program;
    const Var* var = program == nullptr ? nullptr : program->FindVar(k.site().block, std::string(out.name));
    sharded_by_id_ = var != nullptr && var->facts.is_distributed;
    std::vector<Dim> extents;
    if (const auto* longs = k.op().Get<std::vector<std::int64_t>>("shape")) {
      extents.assign(longs->begin(), longs->end());
    } else if (const auto* ints = k.op().Get<std::vector<std::int32_t>>("shape")) {
      extents.assign(ints->begin(), ints->end());
    }
    table_ = Shape(std::move(extents));
    from_tensors_ = k.Input("ShapeTensor") || !k.Inputs("ShapeTensorList").empty();
    if (from_tensors_ && !sharded_by_id_) return OkStatus();
    if (table_.rank() > 0 && table_.IsKnown()) return OkStatus();
    return k.Error("attribute shape (", table_, ") must say how wide the rows of ", out.name, " are");
  }
  bool is_rows() const { return out_.kind == VarKind::kSelectedRows; }
  bool sharded_by_id() const { return sharded_by_id_; }
  void Start(KernelRun& k, std::shared_ptr<const RowStart> start) const {
    SelectedRows& out = k.Var(out_).As<SelectedRows>();
    out.rows.clear();
    out.height = table_[0];
    out.value = Tensor(out_.dtype, table_.WithRows(0));
    out.start = std::move(start);
  }
  // The values of all rows. If their shape comes from tensors, GivenShape::Make has allocated them.
  Tensor& Values(KernelRun& k) const {
    SelectedRows& out = k.Var(out_).As<SelectedRows>();
    out.rows.clear();
    if (!from_tensors_) out.ResetValue(out_.dtype, table_);
    out.height = out.value.shape()[0];
    return out.value;
  }

 private:
  TypedOperand out_;
  Shape table_;
  bool sharded_by_id_ = false, from_tensors_ = false;
};

}  // namespace penstock
