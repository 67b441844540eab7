#include "framework/op/infer_context.h"

#include "framework/op/op_def.h"

namespace penstock {
namespace {

// The position of a slot among an op's slots; -1 if absent.
int SlotIndex(const std::vector<Slot>& slots, std::string_view name) {
  for (std::size_t i = 0; i < slots.size(); ++i) {
    if (slots[i].name == name) return static_cast<int>(i);
  }
  return -1;
}

std::vector<std::vector<TensorDesc>> LookUpAll(const std::vector<Slot>& slots,
                                               const InferContext::Lookup& lookup) {
  std::vector<std::vector<TensorDesc>> infos;
  infos.reserve(slots.size());
  for (const Slot& slot : slots) {
    std::vector<TensorDesc>& row = infos.emplace_back();
    row.reserve(slot.args.size());
    for (const std::string& name : slot.args) {
      std::optional<TensorDesc> info = lookup(name);
      if (!info) {
        info.emplace();
        info->has_type = false;
      }
      row.push_back(*std::move(info));
    }
  }
  return infos;
}

const TensorDesc kAbsentVar = {.has_type = false};

// Whether the size in bytes of a tensor of this shape fits 64 bits, for every element type.
bool IsAddressable(const Shape& shape) {
  Dim product = 16;
  for (int i = 0; i < shape.rank(); ++i) {
    if (shape[i] > 0 && __builtin_mul_overflow(product, shape[i], &product)) return false;
  }
  return true;
}

}  // namespace

InferContext::InferContext(const OpDef& def, const Op& op, const Lookup& lookup)
    : def_(def),
      op_(op),
      inputs_(LookUpAll(op.inputs(), lookup)),
      outputs_(LookUpAll(op.outputs(), lookup)) {}

bool InferContext::HasInput(std::string_view slot) const {
  for (const std::string& name : op_.Input(slot)) {
    if (name != kEmptyVarName) return true;
  }
  return false;
}

int InferContext::InputCount(std::string_view slot) const { return static_cast<int>(op_.Input(slot).size()); }

int InferContext::OutputCount(std::string_view slot) const {
  int count = 0;
  for (const std::string& name : op_.Output(slot)) count += name == kEmptyVarName ? 0 : 1;
  return count;
}

const TensorDesc& InferContext::Input(std::string_view slot, int i) const {
  const int at = SlotIndex(op_.inputs(), slot);
  if (at < 0 || i >= static_cast<int>(inputs_[static_cast<std::size_t>(at)].size())) return kAbsentVar;
  return inputs_[static_cast<std::size_t>(at)][static_cast<std::size_t>(i)];
}

TensorDesc* InferContext::MutableOutput(std::string_view slot, int i) {
  const int at = SlotIndex(op_.outputs(), slot);
  if (at < 0 || i >= static_cast<int>(outputs_[static_cast<std::size_t>(at)].size())) return nullptr;
  return &outputs_[static_cast<std::size_t>(at)][static_cast<std::size_t>(i)];
}

const TensorDesc& InferContext::Output(std::string_view slot, int i) const {
  const TensorDesc* info = const_cast<InferContext*>(this)->MutableOutput(slot, i);
  return info == nullptr ? kAbsentVar : *info;
}

const penstock::Attr& InferContext::AttrValue(std::string_view name) const {
  if (const penstock::Attr* value = op_.FindAttr(name)) return *value;
  const AttrDef* def = def_.FindAttr(name);
  PENSTOCK_CHECK(def != nullptr && def->default_value.has_value(),
                 StrCat(op_.type(), ": the schema has no attribute ", name, " with a default"));
  return *def->default_value;
}

Status InferContext::SetShape(std::string_view slot, int i, const Shape& shape) {
  if (!IsAddressable(shape)) return Error("shape of ", slot, " (", shape, ") is too large for any memory");
  if (TensorDesc* info = MutableOutput(slot, i)) {
    info->shape = shape;
    info->has_type = true;
  }
  return OkStatus();
}

void InferContext::SetDType(std::string_view slot, DType dtype, int i) {
  if (TensorDesc* info = MutableOutput(slot, i)) info->dtype = dtype;
}

void InferContext::SetLodLevel(std::string_view slot, int level, int i) {
  TensorDesc* info = MutableOutput(slot, i);
  if (info == nullptr) return;
  info->lod_level = level;
  const int at = SlotIndex(op_.outputs(), slot);
  std::erase_if(lod_shares_,
                [&](const LodShare& share) { return share.output_slot == at && share.output == i; });
}

void InferContext::ShareLod(std::string_view in, int i, std::string_view out, int j) {
  if (MutableOutput(out, j) == nullptr || i >= InputCount(in)) return;
  SetLodLevel(out, Input(in, i).lod_level, j);
  lod_shares_.push_back({SlotIndex(op_.inputs(), in), i, SlotIndex(op_.outputs(), out), j});
}

void InferContext::ShareLodUndeclared(std::string_view in, int i, std::string_view out, int j) {
  ShareLod(in, i, out, j);
  if (TensorDesc* info = MutableOutput(out, j)) info->lod_level = 0;
}

void InferContext::SetKind(std::string_view slot, VarKind kind, int i) {
  if (TensorDesc* info = MutableOutput(slot, i)) info->kind = kind;
}

Status InferContext::ShareAll(std::string_view in, std::string_view out) {
  if (TensorDesc* info = MutableOutput(out, 0)) {
    *info = Input(in);
    info->has_type = true;
    ShareLod(in, out);
  }
  return OkStatus();
}

Status InferContext::RequireRankAbove(std::string_view slot, int rank) const {
  const Shape& shape = ShapeOf(slot);
  if (shape.rank() > rank) return OkStatus();
  return Error("rank of ", slot, " (", shape.rank(), ", shape ", shape, ") must be above ", rank);
}

Status InferContext::RequireRank(std::string_view slot, int rank) const {
  const Shape& shape = ShapeOf(slot);
  if (shape.rank() == rank) return OkStatus();
  return Error("rank of ", slot, " (", shape.rank(), ", shape ", shape, ") must be ", rank);
}

}  // namespace penstock
