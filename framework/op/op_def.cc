#include "framework/op/op_def.h"

#include <algorithm>
#include <span>

#include "framework/op/conform.h"
#include "framework/op/operand_kinds.h"

namespace penstock {
namespace {

template <typename Def>
const Def* FindByName(const std::vector<Def>& defs, std::string_view name) {
  const auto it = std::find_if(defs.begin(), defs.end(), [&](const Def& def) { return def.name == name; });
  return it == defs.end() ? nullptr : &*it;
}

SlotDef MakeSlot(std::string name, std::string doc, TypeRule type, SlotFlags flags) {
  SlotDef slot{std::move(name), std::move(doc), std::move(type), flags.optional, flags.repeated};
  slot.intermediate = flags.intermediate;
  if (!flags.kinds.empty()) slot.kinds = flags.kinds;
  slot.aliasing = flags.aliasing;
  slot.shape_only = flags.shape_only;
  return slot;
}

bool Names(std::span<const std::string> names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

std::string TypeNames(const std::vector<DType>& types) {
  std::vector<std::string_view> names;
  names.reserve(types.size());
  for (const DType type : types) names.push_back(DTypeName(type));
  return Join(names, " or ");
}

Status CheckSlots(const Op& op, const std::vector<Slot>& slots, const std::vector<SlotDef>& defs,
                  std::string_view direction) {
  for (const Slot& slot : slots) {
    const SlotDef* def = FindByName(defs, slot.name);
    if (def == nullptr) {
      if (slot.args.empty()) continue;
      return InvalidArgument("E-op-slot", op.type(), ": it has no ", direction, " slot ", Quote(slot.name));
    }
    if (!def->repeated && slot.args.size() > 1) {
      return InvalidArgument("E-op-slot", op.type(), ": ", direction, " slot ", slot.name,
                             " takes one variable, not ", slot.args.size());
    }
  }
  return OkStatus();
}

// Whether a variable declared as `declared` may be an argument of a slot that takes `taken`. Fluid declares
// some selected rows as dense tensors and some tensors as selected rows; which of them a variable holds is
// known only at run time.
bool MayBeDeclared(VarKind declared, KindSet taken) {
  constexpr KindSet kTall = KindSet::Of(VarKind::kTensor, VarKind::kSelectedRows);
  if (kTall.Has(declared) && (taken.Has(VarKind::kTensor) || taken.Has(VarKind::kSelectedRows))) return true;
  return taken.Has(declared);
}

// Checks that each argument is declared with a kind that its slot takes. A tensor without a type passes,
// because its kind is known only at run time. An output declared as a tensor passes too: it may become
// another kind.
Status CheckKinds(const InferContext& c) {
  for (const SlotDef& slot : c.def().inputs()) {
    int i = 0;
    for (const std::string& name : c.op().Input(slot.name)) {
      const TensorDesc& info = c.Input(slot.name, i++);
      if (info.kind == VarKind::kTensor && !info.has_type) continue;
      if (!MayBeDeclared(info.kind, slot.kinds)) return KindError(c.def(), slot, name, info.kind);
    }
  }
  for (const SlotDef& slot : c.def().outputs()) {
    int i = 0;
    for (const std::string& name : c.op().Output(slot.name)) {
      const VarKind kind = c.Output(slot.name, i++).kind;
      if (kind != VarKind::kTensor && !MayBeDeclared(kind, slot.kinds))
        return KindError(c.def(), slot, name, kind);
    }
  }
  return OkStatus();
}

bool MayHoldFloats(const TypeRule& rule) {
  return rule.kind == TypeRule::Kind::kOneOf &&
         std::ranges::find(rule.types, DType::kFp32) != rule.types.end();
}

// A kernel has one element type, so the arguments of a slot that may hold floats have one, too. Lists of
// integers, such as extents, may mix int32 and int64.
Status CheckOneType(const InferContext& c, const SlotDef& slot) {
  if (!slot.repeated || !MayHoldFloats(slot.type)) return OkStatus();
  int first = -1;
  for (int i = 0; i < c.InputCount(slot.name); ++i) {
    const TensorDesc& info = c.Input(slot.name, i);
    if (!info.has_type || info.dtype_is_loose) continue;
    if (first < 0) first = i;
    const DType expected = c.Input(slot.name, first).dtype;
    if (info.dtype == expected) continue;
    return c.Error("element type of ", slot.name, "[", i, "] (", DTypeName(info.dtype),
                   ") must equal that of ", slot.name, "[", first, "] (", DTypeName(expected), ")");
  }
  return OkStatus();
}

// Whether an op may take both float16 and float32 where it asks for one type: one without a kernel for
// float16 computes in float32, and converts inputs that are declared float16 (executor/graph/halves.h).
// Programs in mixed precision contain such ops: a batch_norm of float16 values has float32 moments. A value
// that is float16 though declared otherwise is not converted.
bool MixesPrecisions(const OpDef& def, const TensorDesc& a, const TensorDesc& b) {
  const TensorDesc& half = a.dtype == DType::kFp16 ? a : b;
  const TensorDesc& whole = a.dtype == DType::kFp16 ? b : a;
  return half.dtype == DType::kFp16 && half.dtype_is_loose && whole.dtype == DType::kFp32 &&
         def.FindKernel(DeviceKind::kCpu, DType::kFp16) == nullptr &&
         def.FindKernel(DeviceKind::kCpu, DType::kFp32) != nullptr;
}

Status CheckTypes(const InferContext& c) {
  for (const SlotDef& slot : c.def().inputs()) {
    PENSTOCK_RETURN_IF_ERROR(CheckOneType(c, slot));
    for (int i = 0; i < c.InputCount(slot.name); ++i) {
      const TensorDesc& info = c.Input(slot.name, i);
      if (!info.has_type) continue;
      if (slot.type.kind == TypeRule::Kind::kOneOf && !info.dtype_is_loose &&
          std::find(slot.type.types.begin(), slot.type.types.end(), info.dtype) == slot.type.types.end()) {
        return c.Error("element type of ", slot.name, " (", DTypeName(info.dtype), ") must be ",
                       TypeNames(slot.type.types));
      }
      if (slot.type.kind == TypeRule::Kind::kSameAs && c.HasInput(slot.type.slot_or_attr) &&
          c.DTypeOf(slot.type.slot_or_attr) != info.dtype &&
          !MixesPrecisions(c.def(), c.Input(slot.type.slot_or_attr), info)) {
        return c.Error("element type of ", slot.name, " (", DTypeName(info.dtype), ") must equal that of ",
                       slot.type.slot_or_attr, " (", DTypeName(c.DTypeOf(slot.type.slot_or_attr)), ")");
      }
    }
  }
  return OkStatus();
}

// Sets the facts of an output that follow from its slot's declaration alone: the element type, and whether it
// is a dense tensor or selected rows if the slot allows only one of them.
Status SetByDeclaration(InferContext& c, const SlotDef& slot, int i) {
  if (slot.type.kind == TypeRule::Kind::kSameAs && c.HasInput(slot.type.slot_or_attr)) {
    c.SetDType(slot.name, c.DTypeOf(slot.type.slot_or_attr), i);
  } else if (slot.type.kind == TypeRule::Kind::kOneOf && slot.type.types.size() == 1) {
    c.SetDType(slot.name, slot.type.types.front(), i);
  } else if (slot.type.kind == TypeRule::Kind::kFromAttr) {
    const auto number = c.Attr<std::int32_t>(slot.type.slot_or_attr);
    if (!IsDType(number))
      return c.Error("attribute ", slot.type.slot_or_attr, " (", number, ") is no element type");
    c.SetDType(slot.name, static_cast<DType>(number), i);
  }
  const VarKind kind = c.Output(slot.name, i).kind;
  if (slot.kinds.Has(kind)) return OkStatus();
  if (kind == VarKind::kSelectedRows) c.SetKind(slot.name, VarKind::kTensor, i);
  if (kind == VarKind::kTensor && slot.kinds.Has(VarKind::kSelectedRows))
    c.SetKind(slot.name, VarKind::kSelectedRows, i);
  return OkStatus();
}

// Gives each gradient the shape of its forward value if the op reads that value; otherwise it keeps the
// declared shape.
std::function<Status(InferContext&)> LikeInputs(const std::vector<std::string>& yields) {
  return [yields](InferContext& c) -> Status {
    for (const std::string& name : yields) {
      for (int i = 0; i < c.InputCount(name); ++i) {
        const TensorDesc& forward = c.Input(name, i);
        PENSTOCK_RETURN_IF_ERROR(c.SetShape(name + kGradSuffix, i, forward.shape));
        c.SetDType(name + kGradSuffix, forward.dtype, i);
        c.ShareLod(name, i, name + kGradSuffix, i);
      }
    }
    return OkStatus();
  };
}

}  // namespace

OpDef& OpDef::Doc(std::string summary, std::string_view doc) {
  summary_ = std::move(summary);
  doc_ = std::string(StripSpace(doc));
  return *this;
}

OpDef& OpDef::Input(std::string name, std::string doc, TypeRule type, SlotFlags flags) {
  inputs_.push_back(MakeSlot(std::move(name), std::move(doc), std::move(type), flags));
  return *this;
}

OpDef& OpDef::Output(std::string name, std::string doc, TypeRule type, SlotFlags flags) {
  outputs_.push_back(MakeSlot(std::move(name), std::move(doc), std::move(type), flags));
  return *this;
}

OpDef& OpDef::AddAttr(std::string name, penstock::Attr value, std::string doc, AttrCheck check,
                      bool implicit) {
  const AttrKind kind = KindOf(value);
  attrs_.push_back({std::move(name), kind, std::move(value), std::move(doc), std::move(check), implicit});
  return *this;
}

OpDef& OpDef::RequiredAttr(std::string name, AttrKind kind, std::string doc, AttrCheck check) {
  attrs_.push_back({std::move(name), kind, std::nullopt, std::move(doc), std::move(check), false});
  return *this;
}

OpDef& OpDef::InferShape(std::function<Status(InferContext&)> infer) {
  infer_ = std::move(infer);
  return *this;
}

OpDef& OpDef::KernelTypeFrom(std::string slot) {
  kernel_type_slot_ = std::move(slot);
  return *this;
}

OpDef& OpDef::AddKernel(DeviceKind device, std::optional<DType> type, KernelFactory factory) {
  kernels_[{device, type}] = factory;
  return *this;
}

OpDef& OpDef::Grad(GradSpec spec) {
  grad_ = std::move(spec);
  return *this;
}

OpDef& OpDef::GradMadeBy(GradMaker maker) {
  grad_maker_ = std::move(maker);
  return *this;
}

OpDef& OpDef::GradOfBlock(std::string attr) {
  grad_of_block_ = std::move(attr);
  return *this;
}

OpDef& OpDef::NoGrad() {
  no_grad_ = true;
  return *this;
}

OpDef& OpDef::GradDef() {
  if (grad_def_ == nullptr) {
    const std::string type = grad_ && !grad_->type.empty() ? grad_->type : type_ + "_grad";
    grad_def_ = std::make_shared<OpDef>(type);
  }
  return *grad_def_;
}

OpDef& OpDef::Optimizes(std::string param_slot, std::string grad_slot) {
  optimizer_.emplace();
  optimizer_->param_slot = std::move(param_slot);
  optimizer_->grad_slot = std::move(grad_slot);
  return *this;
}

OpDef& OpDef::Elementwise() {
  elementwise_ = true;
  if (optimizer_.has_value()) optimizer_->elementwise = true;
  return *this;
}

OpDef& OpDef::InPlace(std::string output, std::string input) {
  in_place_.emplace_back(std::move(output), std::move(input));
  return *this;
}

bool OpDef::computes_in_place(std::string_view output, std::string_view input) const {
  return std::ranges::any_of(in_place_,
                             [&](const auto& pair) { return pair.first == output && pair.second == input; });
}

OpDef& OpDef::PeekOutputs(OutputPeek peek) {
  output_peek_ = std::move(peek);
  return *this;
}

OpDef& OpDef::PassesSourceOn() {
  passes_source_on_ = true;
  return *this;
}

OpDef& OpDef::ChannelsLast(penstock::ChannelsLast how) {
  channels_last_ = std::move(how);
  return *this;
}

OpDef& OpDef::WhenSliced(SliceRule rule) {
  slice_rule_ = std::move(rule);
  return *this;
}

OpDef& OpDef::State(StateDef state) {
  PENSTOCK_CHECK(optimizer_.has_value(), "State comes after Optimizes");
  if (state.output.empty()) state.output = state.slot + "Out";
  optimizer_->states.push_back(std::move(state));
  return *this;
}

OpDef& OpDef::State(std::string slot, std::string doc, StateSlicing slicing, std::string accumulator,
                    double initial, std::string initial_attr) {
  return State({.slot = std::move(slot),
                .doc = std::move(doc),
                .slicing = slicing,
                .accumulator = std::move(accumulator),
                .initial = initial,
                .initial_attr = std::move(initial_attr)});
}

OpDef& OpDef::ReadsOnlySome() {
  reads_only_some_ = true;
  return *this;
}

OpDef& OpDef::Nan(std::string what) {
  nan_ = std::move(what);
  return *this;
}

OpDef& OpDef::NotBuilt(std::string remedy) {
  not_built_ = std::move(remedy);
  return *this;
}

OpDef& OpDef::PartsAreRows(RowParts parts) {
  row_parts_ = std::move(parts);
  return *this;
}

const RowParts* OpDef::row_parts(const Op& op) const {
  const bool applies = row_parts_ && (row_parts_->when == nullptr || row_parts_->when(op));
  return applies ? &*row_parts_ : nullptr;
}

OpDef& OpDef::Affects(Effects effects) {
  effects_ |= effects;
  return *this;
}

const SlotDef* OpDef::FindInput(std::string_view name) const { return FindByName(inputs_, name); }
const SlotDef* OpDef::FindOutput(std::string_view name) const { return FindByName(outputs_, name); }
const AttrDef* OpDef::FindAttr(std::string_view name) const { return FindByName(attrs_, name); }

bool OpDef::has_kernel(DeviceKind device) const {
  return std::ranges::any_of(kernels_, [&](const auto& entry) { return entry.first.first == device; });
}

OnSlices OpDef::on_slices(const Op& op) const {
  if (slice_rule_ != nullptr) return slice_rule_(op);
  return elementwise_ ? OnSlices::kByRows : OnSlices::kNeedsWhole;
}

// Derives the gradient op's schema from the spec: slots that it reads keep their names, slots that it yields
// get "@GRAD".
void OpDef::PassLayoutsToGrad() {
  if (!grad_) return;
  OpDef& def = GradDef();
  def.grad_of_elementwise_ = elementwise_;
  if (!def.channels_last_ && grad_->copies_attrs) def.channels_last_ = channels_last_;
}

void OpDef::BuildGradDef() {
  if (!grad_) return;
  OpDef& def = GradDef();
  // Slots that share an element type in the forward op share it here too, even if the gradient does not read
  // the slot that determines the type.
  std::map<std::string, std::string> first_of;  // by the forward slot that gives the type
  // A slot that accepts dense tensors in the forward op accepts only these here. Other slots, and those that
  // are declared sparse, keep their kinds; a sparse gradient that the op yields may also be selected rows.
  const auto kinds_of = [&](const SlotDef& slot) {
    const bool as_forward = !slot.kinds.Has(VarKind::kTensor) || Names(grad_->sparse, slot.name);
    return as_forward ? slot.kinds : KindSet::Of(VarKind::kTensor);
  };
  const auto add_input = [&](const SlotDef& slot, const std::string& name) {
    const bool follows = slot.type.kind == TypeRule::Kind::kSameAs;
    const std::string& giver = follows ? slot.type.slot_or_attr : slot.name;
    TypeRule type = slot.type.kind == TypeRule::Kind::kOneOf ? slot.type : AnyType();
    if (const auto first = first_of.find(giver); first != first_of.end()) {
      type = SameTypeAs(first->second);
    } else if (!slot.optional) {
      first_of.emplace(giver, name);
    }
    def.Input(name, slot.doc, std::move(type),
              {.optional = slot.optional,
               .repeated = slot.repeated,
               .kinds = kinds_of(slot),
               .shape_only = Names(grad_->shapes, name)});
  };
  for (const std::string& name : grad_->reads) {
    const SlotDef* slot = FindInput(name);
    PENSTOCK_CHECK(slot != nullptr, StrCat(type_, ": the gradient reads ", name, ", which is no input"));
    add_input(*slot, name);
  }
  for (const std::string& name : grad_->reads_outputs) {
    const SlotDef* slot = FindOutput(name);
    PENSTOCK_CHECK(slot != nullptr, StrCat(type_, ": the gradient reads ", name, ", which is no output"));
    add_input(*slot, name);
  }
  for (const std::string& name : grad_->shapes)
    PENSTOCK_CHECK(def.FindInput(name) != nullptr, StrCat(type_, ": the gradient does not read ", name));
  for (const SlotDef& slot : outputs_) {
    if (grad_->of.empty() ? !slot.intermediate : Names(grad_->of, slot.name)) {
      add_input(slot, slot.name + kGradSuffix);
    }
  }
  for (const std::string& name : grad_->yields) {
    const SlotDef* slot = FindInput(name);
    PENSTOCK_CHECK(slot != nullptr, StrCat(type_, ": the gradient yields ", name, ", which is no input"));
    KindSet kinds = kinds_of(*slot);
    if (Names(grad_->sparse, name)) kinds = kinds | KindSet::Of(VarKind::kSelectedRows);
    def.Output(name + kGradSuffix, StrCat("the gradient of ", name), AnyType(),
               {.optional = true,
                .repeated = slot->repeated,
                .kinds = kinds,
                .aliasing = Names(grad_->apart, name) ? Aliasing::kNever : Aliasing::kKnownSize});
  }
  if (def.summary_.empty()) def.Doc(StrCat("The gradient of ", type_, "."), "");
  for (const AttrDef& attr : attrs_) {
    if (def.FindAttr(attr.name) == nullptr) def.attrs_.push_back(attr);
  }
  if (def.infer_ != nullptr) return;
  def.infer_ = LikeInputs(grad_->yields);
}

// Marks an optimizer's outputs as updates of its parameter and its state.
void OpDef::NoteUpdates() {
  if (!optimizer_.has_value()) return;
  const auto note = [this](const std::string& output, const std::string& input) {
    for (SlotDef& slot : outputs_) {
      if (slot.name == output) slot.updates = input;
    }
  };
  note(optimizer_->param_slot + "Out", optimizer_->param_slot);
  for (const StateDef& state : optimizer_->states) note(state.output, state.slot);
}

Status OpDef::CheckOp(const Op& op) const {
  PENSTOCK_RETURN_IF_ERROR(CheckSlots(op, op.inputs(), inputs_, "input"));
  PENSTOCK_RETURN_IF_ERROR(CheckSlots(op, op.outputs(), outputs_, "output"));
  for (const SlotDef& slot : inputs_) {
    if (!slot.optional && op.Input(slot.name).empty()) {
      return InvalidArgument("E-op-slot", type_, ": input ", slot.name, " is missing");
    }
  }
  PENSTOCK_RETURN_IF_ERROR(CheckAttrKinds(*this, op));
  for (const AttrDef& def : attrs_) {
    const penstock::Attr* value = op.FindAttr(def.name);
    if (value == nullptr) {
      if (def.default_value.has_value()) continue;
      return InvalidArgument("E-op-attr", type_, ": attribute ", def.name, " is missing");
    }
    std::optional<penstock::Attr> converted;
    if (KindOf(*value) != def.kind) converted = ConvertAttr(*value, def.kind);
    if (def.check.rule == nullptr) continue;
    if (const auto rule = def.check.rule(converted ? *converted : *value)) {
      return InvalidArgument("E-op-attr", type_, ": attribute ", def.name, " is ", AttrToString(*value),
                             "; it must be ", *rule);
    }
  }
  return OkStatus();
}

Status OpDef::Infer(InferContext& c) const {
  PENSTOCK_RETURN_IF_ERROR(CheckKinds(c));
  PENSTOCK_RETURN_IF_ERROR(CheckTypes(c));
  if (infer_ != nullptr) PENSTOCK_RETURN_IF_ERROR(infer_(c));
  for (const SlotDef& slot : outputs_) {
    for (int i = 0; i < static_cast<int>(c.op().Output(slot.name).size()); ++i) {
      PENSTOCK_RETURN_IF_ERROR(SetByDeclaration(c, slot, i));
    }
  }
  return OkStatus();
}

KernelFactory OpDef::FindKernel(DeviceKind device, DType type) const {
  if (const auto it = kernels_.find({device, type}); it != kernels_.end()) return it->second;
  if (const auto it = kernels_.find({device, std::nullopt}); it != kernels_.end()) return it->second;
  return nullptr;
}

DType OpDef::KernelType(const InferContext& c) const {
  if (!kernel_type_slot_.empty()) {
    return c.HasInput(kernel_type_slot_) ? c.DTypeOf(kernel_type_slot_) : c.Output(kernel_type_slot_).dtype;
  }
  for (const SlotDef& slot : inputs_) {
    if (c.HasInput(slot.name) && c.Input(slot.name).has_type) return c.DTypeOf(slot.name);
  }
  for (const SlotDef& slot : outputs_) {
    if (c.HasOutput(slot.name)) return c.Output(slot.name).dtype;
  }
  return DType::kFp32;
}

void OpDef::FillDefaults(Op& op) const {
  for (const AttrDef& def : attrs_) {
    if (def.implicit || !def.default_value.has_value() || op.FindAttr(def.name) != nullptr) continue;
    op.Set(def.name, *def.default_value);
  }
}

}  // namespace penstock
