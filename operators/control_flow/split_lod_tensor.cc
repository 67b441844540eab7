// split_lod_tensor: splits rows or sequences by a mask. merge_lod_tensor: merges them again.
#include <algorithm>
#include <span>
#include <vector>

#include "framework/op/op_registry.h"
#include "operators/common/lod.h"
#include "operators/common/require_shape.h"
#include "operators/control_flow/rank_table.h"

namespace penstock {
namespace {

constexpr char kSplitDoc[] = R"(
OutTrue receives the parts of X where Mask is true, OutFalse the others, in order. A part is a sequence of LoD
level `level`, or a row if X has no LoD. Mask has one boolean per part.)";

constexpr char kMergeDoc[] = R"(
The inverse of split_lod_tensor: the next part of Out comes from InTrue where Mask is true, otherwise from
InFalse. A part is a sequence of LoD level `level` of X, or a row if X has no LoD. merge_lod_tensor_infer has
no gradient.)";

// Returns the booleans of the mask; null if it is something else.
const Tensor* MaskIn(KernelRun& k, const NamedOperand& mask) {
  const Tensor* tensor = k.Var(mask).If<Tensor>();
  return tensor != nullptr && tensor->initialized() && tensor->dtype() == DType::kBool ? tensor : nullptr;
}

Status NoMask(const char* op, const NamedOperand& mask) {
  return InvalidArgument("E-op-mask", op, ": Mask (", mask.name, ") must hold booleans");
}

std::int64_t PartsOf(const Tensor& x, std::size_t level) {
  if (level < x.lod().size()) return static_cast<std::int64_t>(x.lod()[level].size()) - 1;
  return x.shape().rank() == 0 ? 0 : x.shape()[0];
}

// Returns the level whose sequences are the parts: `level`, or rows.
Status CheckParts(const char* op, const char* slot, const NamedOperand& operand, const Tensor& x,
                  std::size_t level) {
  if (x.shape().rank() == 0 || !IsValid(x.lod(), x.shape()[0]) ||
      (!x.lod().empty() && level >= x.lod().size()))
    return InvalidArgument("E-op-lod", op, ": ", slot, " (", operand.name, ", ", x.shape(),
                           ") has no parts of LoD level ", level);
  return OkStatus();
}

class SplitKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    x_ = k.Input("X");
    mask_ = k.Input("Mask");
    outs_[1] = k.Output("OutTrue");
    outs_[0] = k.Output("OutFalse");
    level_ = static_cast<std::size_t>(k.Attr<int>("level"));
    return OkStatus();
  }

  Status Run(KernelRun& k) override {
    const Tensor& x = k[x_];
    const Tensor* mask = MaskIn(k, mask_);
    if (mask == nullptr) return NoMask("split_lod_tensor", mask_);
    PENSTOCK_RETURN_IF_ERROR(CheckParts("split_lod_tensor", "X", x_, x, level_));
    if (PartsOf(x, level_) != mask->count()) {
      return InvalidArgument("E-op-mask", "split_lod_tensor: X (", x_.name, ") has ", PartsOf(x, level_),
                             " parts; Mask (", mask_.name, ") has ", mask->count(), " values");
    }
    for (const bool side : {false, true}) {
      if (outs_[side]) Pick(x, mask->Span<bool>(), side, k[outs_[side]]);
    }
    return OkStatus();
  }

 private:
  void Pick(const Tensor& x, std::span<const bool> mask, bool side, Tensor& out) {
    parts_.clear();
    std::int64_t rows = 0;
    for (std::size_t i = 0; i < mask.size(); ++i) {
      if (mask[i] != side) continue;
      const RowRange range = RowsOf(x.lod(), level_, i);
      rows += range.end - range.begin;
      parts_.push_back(i);
    }
    rows_.Make(out, x.dtype(), x.shape(), rows);
    RowWriter writer(out);
    for (const std::uint64_t part : parts_) writer.Append(x, RowsOf(x.lod(), level_, part));
    made_[side].Set(out, levels_(x.lod(), level_, parts_));
  }

  NamedOperand x_, mask_;
  NamedOperand outs_[2];  // indexed by the value of the mask
  std::size_t level_ = 0;
  std::vector<std::uint64_t> parts_;
  RowsLike rows_;
  LevelsInOrder levels_;
  MadeLod made_[2];
};

class MergeKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    type_ = k.op().type();
    x_ = k.Input("X");
    mask_ = k.Input("Mask");
    sides_[1] = k.Input("InTrue");
    sides_[0] = k.Input("InFalse");
    k.Bind(out_);
    level_ = static_cast<std::size_t>(k.Attr<int>("level"));
    return OkStatus();
  }

  Status Run(KernelRun& k) override {
    const Tensor* mask = MaskIn(k, mask_);
    if (mask == nullptr) return NoMask(type_.c_str(), mask_);
    const Tensor* sides[2] = {};
    PENSTOCK_RETURN_IF_ERROR(ReadSides(k, *mask, sides));
    const Tensor& like = sides[1] != nullptr ? *sides[1] : *sides[0];
    std::int64_t rows = 0;
    for (const Tensor* side : sides) rows += side == nullptr ? 0 : side->shape()[0];
    Tensor& out = k[out_];
    rows_.Make(out, like.dtype(), like.shape(), rows);
    RowWriter writer(out);
    std::uint64_t next[2] = {0, 0};
    const std::size_t outer = OuterLevels(k, like);
    lod_.resize(outer + like.lod().size());
    for (std::size_t l = outer; l < lod_.size(); ++l) lod_[l].assign(1, 0);
    for (std::int64_t i = 0; i < mask->count(); ++i) {
      const bool side = mask->Data<bool>()[i];
      const Tensor& from = *sides[side];
      writer.Append(from, RowsOf(from.lod(), 0, next[side]));
      AppendLevels(levels_(from.lod(), 0, {&next[side], 1}), lod_, outer);
      ++next[side];
    }
    if (outer > 0 && !IsValid(lod_, rows)) {
      return InvalidArgument("E-op-lod", type_, ": the LoD of X (", x_.name,
                             ") does not match the parts that are merged");
    }
    made_.Set(out, lod_);
    return OkStatus();
  }

 private:
  // A side from which no part is taken may have no value, because its block did not run.
  Status ReadSides(KernelRun& k, const Tensor& mask, const Tensor* (&sides)[2]) const {
    std::int64_t wanted[2] = {0, 0};
    for (std::int64_t i = 0; i < mask.count(); ++i) ++wanted[mask.Data<bool>()[i]];
    for (const bool side : {false, true}) {
      const char* slot = side ? "InTrue" : "InFalse";
      const Tensor* tensor = k.Var(sides_[side]).If<Tensor>();
      if (tensor == nullptr || !tensor->initialized()) {
        if (wanted[side] == 0) continue;
        return FailedPrecondition("E-op-no-value", type_, ": ", slot, " (", sides_[side].name,
                                  ") has no value");
      }
      PENSTOCK_RETURN_IF_ERROR(CheckParts(type_.c_str(), slot, sides_[side], *tensor, 0));
      if (PartsOf(*tensor, 0) != wanted[side]) {
        return InvalidArgument("E-op-mask", type_, ": ", slot, " (", sides_[side].name, ") has ",
                               PartsOf(*tensor, 0), " parts; Mask (", mask_.name, ") asks for ",
                               wanted[side]);
      }
      sides[side] = tensor;
    }
    if (sides[0] == nullptr && sides[1] == nullptr)
      return FailedPrecondition("E-op-no-value", type_, ": neither side has a value");
    if (sides[0] == nullptr || sides[1] == nullptr) return OkStatus();
    const Tensor &no = *sides[0], &yes = *sides[1];
    if (no.dtype() == yes.dtype() && no.shape().RowWidth() == yes.shape().RowWidth() &&
        no.shape().rank() == yes.shape().rank() && no.lod().size() == yes.lod().size())
      return OkStatus();
    return InvalidArgument("E-op-mask", type_, ": InTrue (", DTypeName(yes.dtype()), yes.shape(),
                           ") and InFalse (", DTypeName(no.dtype()), no.shape(),
                           ") must agree except in their rows");
  }

  // X gives the grouping of the parts: adds those levels above the parts' own.
  std::size_t OuterLevels(KernelRun& k, const Tensor& like) {
    const Tensor* x = k.Var(x_).If<Tensor>();
    if (level_ == 0 || x == nullptr || x->lod().size() < level_ || like.lod().empty()) return 0;
    lod_.resize(level_ + like.lod().size());
    std::copy_n(x->lod().begin(), level_, lod_.begin());
    return level_;
  }

  std::string type_;
  Out<"Out"> out_;
  NamedOperand x_, mask_;
  NamedOperand sides_[2];  // indexed by the value of the mask
  std::size_t level_ = 0;
  RowsLike rows_;
  LevelsInOrder levels_;
  LoD lod_;
  MadeLod made_;
};

Status InferSplit(InferContext& c) {
  for (const char* out : {"OutTrue", "OutFalse"}) {
    PENSTOCK_RETURN_IF_ERROR(c.ShareAll("X", out));
    c.SetLodLevel(out, c.Input("X").lod_level);  // with separate offsets
  }
  return OkStatus();
}

Status InferMerge(InferContext& c) {
  const char* like = c.Input("InTrue").has_type ? "InTrue" : "InFalse";
  PENSTOCK_RETURN_IF_ERROR(c.ShareAll(like, "Out"));
  c.SetLodLevel("Out", c.Input(like).lod_level);
  return OkStatus();
}

Result<std::vector<Op>> SplitGrad(const GradRequest& request) {
  const Op& forward = request.forward;
  const std::string dx = request.grad_of(forward.InputName("X"));
  if (dx.empty()) return std::vector<Op>();
  Op grad("merge_lod_tensor");
  grad.AddInput("InTrue", {request.grad_of(forward.OutputName("OutTrue"))});
  grad.AddInput("InFalse", {request.grad_of(forward.OutputName("OutFalse"))});
  grad.AddInput("Mask", forward.Input("Mask")).AddInput("X", forward.Input("X")).AddOutput("Out", {dx});
  for (const NamedAttr& attr : forward.attrs()) grad.Set(attr.name, attr.value);
  return std::vector<Op>{std::move(grad)};
}

Result<std::vector<Op>> MergeGrad(const GradRequest& request) {
  const Op& forward = request.forward;
  const auto args = [&](const char* slot) {
    const std::string name = request.grad_of(forward.InputName(slot));
    return std::vector<std::string>{name.empty() ? kEmptyVarName : name};
  };
  Op grad("split_lod_tensor");
  grad.AddInput("X", {request.grad_of(forward.OutputName("Out"))}).AddInput("Mask", forward.Input("Mask"));
  grad.AddOutput("OutTrue", args("InTrue")).AddOutput("OutFalse", args("InFalse"));
  for (const NamedAttr& attr : forward.attrs()) grad.Set(attr.name, attr.value);
  return std::vector<Op>{std::move(grad)};
}

OpDef& AddMerge(OpRegistry& ops, const char* type) {
  return ops.Add(type)
      .Doc("Merges the rows or sequences of two tensors by a mask.", kMergeDoc)
      .Input("X", "the tensor that was split; gives the grouping of the parts", AnyType())
      .Input("Mask", "one boolean per part", Only(DType::kBool))
      .Input("InTrue", "the parts where Mask is true", AnyType())
      .Input("InFalse", "the other parts", SameTypeAs("InTrue"))
      .Output("Out", "all parts", SameTypeAs("InTrue"), Apart())
      .Attr("level", 0, "the LoD level whose sequences are the parts", AtLeast(0))
      .InferShape(InferMerge)
      .ReadsOnlySome()
      .KernelForAnyType<Cpu, MergeKernel>();
}

}  // namespace

void RegisterSplitLodTensor(OpRegistry& ops) {
  ops.Add("split_lod_tensor")
      .Doc("Splits rows or sequences by a mask.", kSplitDoc)
      .Input("X", "the tensor to split", AnyType())
      .Input("Mask", "one boolean per part", Only(DType::kBool))
      .Output("OutTrue", "the parts where Mask is true", SameTypeAs("X"), Apart())
      .Output("OutFalse", "the other parts", SameTypeAs("X"), Apart())
      .Attr("level", 0, "the LoD level whose sequences are the parts", AtLeast(0))
      .InferShape(InferSplit)
      .KernelForAnyType<Cpu, SplitKernel>()
      .GradMadeBy(SplitGrad);
  AddMerge(ops, "merge_lod_tensor").GradMadeBy(MergeGrad);
  AddMerge(ops, "merge_lod_tensor_infer").NoGrad();
}

}  // namespace penstock
