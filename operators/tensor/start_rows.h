// Selected rows as the output of an op that fills a variable: a table that is dealt out to servers. It gets
// no rows, but what each of them starts from, however many there are.
//
//   PENSTOCK_RETURN_IF_ERROR(rows_.Prepare(k, out_));
//   if (rows_.asked_for()) rows_.Start(k, std::make_shared<MyRows>(...));    // each run
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "framework/op/kernel.h"
#include "framework/tensor/row_start.h"

namespace penstock {

class StartRows {
 public:
  Status Prepare(const KernelSetup& k, const Operand& out) {
    out_ = out;
    if (!asked_for()) return OkStatus();
    std::vector<Dim> extents;
    if (const auto* longs = k.op().Get<std::vector<std::int64_t>>("shape")) {
      extents.assign(longs->begin(), longs->end());
    } else if (const auto* ints = k.op().Get<std::vector<std::int32_t>>("shape")) {
      extents.assign(ints->begin(), ints->end());
    }
    table_ = Shape(std::move(extents));
    if (table_.rank() > 0 && table_.IsKnown()) return OkStatus();
    return k.Error("attribute shape (", table_, ") must say how wide the rows of ", out.name, " are");
  }
  bool asked_for() const { return out_.kind == VarKind::kSelectedRows; }
  void Start(KernelRun& k, std::shared_ptr<const RowStart> start) const {
    SelectedRows& out = k.Var(out_).As<SelectedRows>();
    out.rows.clear();
    out.height = table_[0];
    out.value = Tensor(out_.dtype, table_.WithRows(0));
    out.start = std::move(start);
  }

 private:
  Operand out_;
  Shape table_;
};

}  // namespace penstock
