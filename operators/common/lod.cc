#include "operators/common/lod.h"

#include <algorithm>
#include <functional>

#include "operators/common/require_shape.h"

namespace penstock {

Dim Offsets::longest() const {
  Dim longest = 0;
  for (Dim i = 0; i < count(); ++i) longest = std::max(longest, length(i));
  return longest;
}

Status CheckLod(const std::string& what, const LoD& lod, Dim rows, std::size_t min_levels,
                std::size_t max_levels) {
  if (lod.size() < min_levels || (max_levels > 0 && lod.size() > max_levels)) {
    const bool exact = min_levels == max_levels;
    return LodError(what, " has ", lod.size(), " levels of sequences; it must have ",
                    exact ? "" : "at least ", lod.size() < min_levels ? min_levels : max_levels);
  }
  for (std::size_t l = 0; l < lod.size(); ++l) {
    const LoDLevel& level = lod[l];
    if (level.empty() || level.front() != 0) {
      return LodError(
          what, ": level ", l, " of its sequences must start at 0",
          level.empty() ? std::string(", but has no offset") : StrCat(", not at ", level.front()));
    }
    const auto fall = std::ranges::adjacent_find(level, std::greater<>());
    if (fall != level.end()) {
      return LodError(what, ": level ", l, " of its sequences must not decrease, but has ", *fall, " before ",
                      *(fall + 1));
    }
    const bool last = l + 1 == lod.size();
    const auto end = static_cast<Dim>(level.back());
    const Dim below = last ? rows : static_cast<Dim>(lod[l + 1].size()) - 1;
    if (end != below) {
      return LodError(what, ": level ", l, " of its sequences ends at ", end, "; it must end at ", below,
                      last ? ", the number of rows" : ", the number of sequences of the next level");
    }
  }
  return OkStatus();
}

void SequenceInput::Prepare(const KernelSetup& k, std::string_view slot, int i) {
  const auto operands = k.Inputs(slot);
  const auto at = static_cast<std::size_t>(i);
  operand_ = at < operands.size() ? operands[at] : Operand();
  what_ = operands.size() > 1 ? StrCat(k.op().type(), ": ", slot, "[", i, "]")
                              : StrCat(k.op().type(), ": ", slot);
}

Result<const LoD*> SequenceInput::Levels(KernelRun& k, std::size_t min_levels, std::size_t max_levels) const {
  const Tensor& tensor = k[operand_];
  const Dim rows = tensor.shape().rank() == 0 ? 0 : tensor.shape()[0];
  PENSTOCK_RETURN_IF_ERROR(CheckLod(what_, tensor.lod(), rows, min_levels, max_levels));
  return &tensor.lod();
}

Result<Offsets> SequenceInput::Innermost(KernelRun& k) const {
  PENSTOCK_ASSIGN_OR_RETURN(const LoD* const lod, Levels(k, 1));
  return Offsets(lod->back());
}

void MadeLod::Start(std::size_t levels) {
  next_.resize(levels);
  for (LoDLevel& level : next_) level.assign(1, 0);
}

void MadeLod::Set(Tensor& out, const LoD& lod) {
  if (last_.lod() != lod) last_.set_lod(lod);
  out.ShareLod(last_);
}

Status CheckRows(const std::string& what, const Tensor& tensor, Dim rows, Dim width) {
  const Shape& shape = tensor.shape();
  if (shape.rank() > 0 && shape[0] == rows && shape.RowWidth() == width) return OkStatus();
  return InvalidArgument("E-op-rows-count", what, " (", shape, ") must have ", rows, " rows of ", width,
                         " elements");
}

Status RowsOutput::Prepare(const KernelSetup& k, std::string_view slot, DType dtype, const Shape& shape) {
  operand_ = k.Output(slot);
  dtype_ = dtype;
  shape_ = shape.rank() == 0 ? Shape{0} : shape;
  width_ = shape_.RowWidth();
  return RequireApart(k, slot);
}

Tensor& RowsOutput::Make(KernelRun& k, Dim rows) {
  shape_.Set(0, rows);
  Tensor& tensor = k[operand_];
  tensor.Reset(dtype_, shape_);
  return tensor;
}

}  // namespace penstock
