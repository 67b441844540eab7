// filter_by_instag: selects the instances that have at least one of the given tags.
#include <algorithm>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "framework/op/op_registry.h"
#include "operators/common/float_attr.h"
#include "operators/common/lod.h"
#include "operators/common/require_shape.h"

namespace penstock {
namespace {

constexpr char kDoc[] = R"(
Each sequence of Ins_tag holds the tags of one instance. An instance is a sequence of rows of Ins or, if
is_lod is false, one row. Out holds the rows of the instances that have at least one of the tags in
Filter_tag, in order, one sequence per instance. For each of these instances, LossWeight holds 1 and IndexMap
a row (first row in Out, first row in Ins, number of rows). If no instance is selected, Out has one row of
out_val_if_empty, and its LossWeight is 0.)";

Status InferFilter(InferContext& c) {
  PENSTOCK_RETURN_IF_ERROR(c.RequireRankAbove("Ins", 0));
  PENSTOCK_RETURN_IF_ERROR(c.SetShape("Out", c.ShapeOf("Ins").WithRows(kUnknownDim)));
  PENSTOCK_RETURN_IF_ERROR(c.SetShape("LossWeight", {kUnknownDim, 1}));
  PENSTOCK_RETURN_IF_ERROR(c.SetShape("IndexMap", {kUnknownDim, 3}));
  for (const char* slot : {"Out", "LossWeight", "IndexMap"}) c.SetLodLevel(slot, 1);
  return OkStatus();
}

template <typename Device, typename T>
class FilterKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    ins_.Prepare(k, "Ins");
    tags_.Prepare(k, "Ins_tag");
    k.Bind(wanted_);
    by_sequence_ = k.Attr<bool>("is_lod");
    empty_ = ElementFrom<T>(static_cast<double>(k.Attr<std::int64_t>("out_val_if_empty")));
    const Shape& ins = k.Input("Ins").shape;
    width_ = ins.RowWidth();
    PENSTOCK_RETURN_IF_ERROR(out_.Prepare(k, "Out", DTypeOfT<T>::kValue, ins.WithRows(0)));
    PENSTOCK_RETURN_IF_ERROR(weight_.Prepare(k, "LossWeight", DType::kFp32, {0, 1}));
    PENSTOCK_RETURN_IF_ERROR(map_.Prepare(k, "IndexMap", DType::kInt64, {0, 3}));
    kept_.reserve(static_cast<std::size_t>(ins.rank() == 0 ? 0 : ins[0]));
    return OkStatus();
  }
  Status Run(KernelRun& k) override {
    PENSTOCK_RETURN_IF_ERROR(FindKept(k));
    Dim rows = 0;
    for (const Instance& one : kept_) rows += one.rows;
    const bool none = rows == 0;
    if (none) kept_.clear();
    Tensor& out = out_.Make(k, none ? 1 : rows);
    const Dim instances = none ? 1 : static_cast<Dim>(kept_.size());
    Tensor& weight = weight_.Make(k, instances);
    Tensor& map = map_.Make(k, instances);
    SetSequences(none, out, weight, map);
    std::ranges::fill(weight.Span<float>(), none ? 0.0f : 1.0f);
    std::int64_t* at = map.Data<std::int64_t>();
    if (none) {
      std::fill_n(out.Data<T>(), width_, empty_);
      for (const std::int64_t value : {0, 1, 1}) *at++ = value;
      return OkStatus();
    }
    Dim row = 0;
    for (const Instance& one : kept_) {
      std::copy_n(k[ins_.operand()].template Data<T>() + one.begin * width_, one.rows * width_,
                  out.Data<T>() + row * width_);
      for (const std::int64_t value : {row, one.begin, one.rows}) *at++ = value;
      row += one.rows;
    }
    return OkStatus();
  }

 private:
  struct Instance {
    Dim begin, rows;
  };
  Status FindKept(KernelRun& k) {
    kept_.clear();
    PENSTOCK_ASSIGN_OR_RETURN(const Offsets tags, tags_.Innermost(k));
    const LoD* lod = nullptr;
    if (by_sequence_) {
      PENSTOCK_ASSIGN_OR_RETURN(lod, ins_.Levels(k, 0));
      if (lod->empty()) lod = nullptr;  // one row per instance
    }
    const Dim instances = lod != nullptr ? Offsets(lod->back()).count() : k[ins_.operand()].shape()[0];
    if (tags.count() != instances)
      return LodError(tags_.what(), " has ", tags.count(), " sequences; Ins has ", instances, " instances");
    const std::int64_t* const tag = k[tags_.operand()].template Data<std::int64_t>();
    const auto wanted = k[wanted_].template Span<std::int64_t>();
    for (Dim i = 0; i < instances; ++i) {
      const bool keeps = std::any_of(tag + tags.begin(i), tag + tags.end(i), [&](std::int64_t one) {
        return std::ranges::find(wanted, one) != wanted.end();
      });
      if (!keeps) continue;
      const Dim begin = lod != nullptr ? Offsets(lod->back()).begin(i) : i;
      kept_.push_back({begin, lod != nullptr ? Offsets(lod->back()).length(i) : 1});
    }
    return OkStatus();
  }
  void SetSequences(bool none, Tensor& out, Tensor& weight, Tensor& map) {
    rows_lod_.Start(1);
    map_lod_.Start(1);
    if (none) {
      rows_lod_.Add(0, 1);
      map_lod_.Add(0, 1);
    }
    for (const Instance& one : kept_) {
      rows_lod_.Add(0, one.rows);
      map_lod_.Add(0, 1);
    }
    rows_lod_.Set(out);
    map_lod_.Set(map);
    weight.ShareLod(map);
  }

  SequenceInput ins_, tags_;
  In<"Filter_tag"> wanted_;
  bool by_sequence_ = true;
  T empty_ = 0;
  Dim width_ = 1;
  RowsOutput out_, weight_, map_;
  std::vector<Instance> kept_;
  MadeLod rows_lod_, map_lod_;
};

template <typename Device, typename T>
class FilterGradKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(map_, weight_, dout_, dins_);
    if (k[map_].dtype != DType::kInt64 || k[weight_].dtype != DType::kFp32)
      return k.Error("IndexMap must be i64, and LossWeight f32");
    if (k.Input("Ins").shape.rank() == 0) return k.Error("Ins must have rank 1 or more");
    return OkStatus();
  }
  Status Run(KernelRun& k) override {
    if (!dins_) return OkStatus();
    std::ranges::fill(k[dins_].template Span<T>(), T{0});
    const Tensor &map = k[map_], &dout = k[dout_];
    const Dim width = k[dins_].shape().RowWidth(), rows = k[dins_].shape()[0];
    // If the weight is 0, no instance was selected.
    if (k[weight_].count() == 0 || *k[weight_].Data<float>() == 0) return OkStatus();
    const Dim out_rows = width == 0 ? 0 : dout.count() / width;
    if (map.shape().rank() != 2 || map.shape()[1] != 3) return Wrong("IndexMap must be [instances, 3]");
    for (Dim i = 0; i < map.shape()[0]; ++i) {
      const std::int64_t* const at = map.Data<std::int64_t>() + i * 3;
      const auto lies_in = [count = at[2]](std::int64_t begin, Dim all) {
        return begin >= 0 && count >= 0 && begin <= all && count <= all - begin;
      };
      if (!lies_in(at[0], out_rows) || !lies_in(at[1], rows))
        return Wrong("IndexMap names rows that do not exist");
      std::copy_n(dout.Data<T>() + at[0] * width, at[2] * width, k[dins_].template Data<T>() + at[1] * width);
    }
    return OkStatus();
  }

 private:
  static Status Wrong(const std::string& what) {
    return InvalidArgument("E-op-instag", "filter_by_instag_grad: ", what);
  }
  In<"IndexMap"> map_;
  In<"LossWeight"> weight_;
  In<"Out@GRAD"> dout_;
  Out<"Ins@GRAD"> dins_;
};

Status InferFilterGrad(InferContext& c) {
  c.SetDType("Ins@GRAD", c.DTypeOf("Ins"));
  c.ShareLod("Ins", "Ins@GRAD");
  return c.SetShape("Ins@GRAD", c.ShapeOf("Ins"));
}

}  // namespace

void RegisterFilterByInstag(OpRegistry& ops) {
  ops.Add("filter_by_instag")
      .Doc("Selects the instances that have at least one of the given tags.", kDoc)
      .Input("Ins", "rows; an instance is a sequence of rows, or one row", Numbers())
      .Input("Ins_tag", "the tags, one sequence per instance", Only(DType::kInt64))
      .Input("Filter_tag", "the tags to select", Only(DType::kInt64))
      .Output("Out", "the selected rows", SameTypeAs("Ins"), Apart())
      .Output("LossWeight", "[selected instances, 1]", Only(DType::kFp32))
      .Output("IndexMap", "[selected instances, 3]", Only(DType::kInt64))
      .RequiredAttr("is_lod", AttrKind::kBool, "whether an instance is a sequence of rows")
      .Attr("out_val_if_empty", std::int64_t{0}, "the value of Out if no instance is selected")
      .InferShape(InferFilter)
      .KernelTypeFrom("Ins")
      .Kernel<Cpu, FilterKernel, float, double, std::int32_t, std::int64_t>()
      .Grad({.reads = {"Ins"},
             .reads_outputs = {"IndexMap", "LossWeight"},
             .yields = {"Ins"},
             .of = {"Out"},
             .apart = {"Ins"}})
      .GradKernel<Cpu, FilterGradKernel, float, double>()
      .GradDef()
      .InferShape(InferFilterGrad)
      .KernelTypeFrom("Out@GRAD");
}

}  // namespace penstock
