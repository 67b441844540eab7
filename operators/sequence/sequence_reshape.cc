// sequence_reshape: reshapes the rows of each sequence to another width.
#include <string>

#include "framework/op/op_registry.h"
#include "operators/common/copy.h"
#include "operators/common/lod.h"

namespace penstock {
namespace {

constexpr char kDoc[] = R"(
Out holds the elements of X in rows of new_dim elements;  length(s) in Out = length(s) in X * width of X /
new_dim

s is an innermost sequence; its elements must fill whole rows. Outer LoD levels are kept.)";

Status InferSequenceReshape(InferContext& c) {
  PENSTOCK_RETURN_IF_ERROR(c.RequireRank("X", 2));
  c.SetLodLevel("Out", c.Input("X").lod_level);
  const Shape& x = c.ShapeOf("X");
  const Dim width = c.Attr<std::int32_t>("new_dim");
  const Dim rows = x.IsKnown() && x.Count() % width == 0 ? x.Count() / width : kUnknownDim;
  return c.SetShape("Out", {rows, width});
}

class SequenceReshapeKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    x_.Prepare(k, "X");
    new_width_ = k.Attr<std::int32_t>("new_dim");
    return out_.Prepare(k, "Out", k.Input("X").dtype, {0, new_width_});
  }

  Status Run(KernelRun& k) override {
    PENSTOCK_ASSIGN_OR_RETURN(const LoD* const lod, x_.Levels(k, 1));
    const Offsets x(lod->back());
    const Dim width = k[x_.operand()].shape()[1];
    const std::size_t inner = lod->size() - 1;
    lod_.Start(lod->size());
    for (std::size_t l = 0; l < inner; ++l) lod_.CopyLevel(l, (*lod)[l]);
    for (Dim s = 0; s < x.count(); ++s) {
      const Dim elements = x.length(s) * width;
      if (elements % new_width_ != 0) {
        return LodError(x_.what(), ": sequence ", s, " has ", x.length(s), " rows of ", width,
                        " elements, which do not fill rows of new_dim (", new_width_, ")");
      }
      lod_.Add(inner, elements / new_width_);
    }
    Tensor& out = out_.Make(k, x.total() * width / new_width_);
    lod_.Set(out);
    out.CopyFrom(k[x_.operand()]);
    return OkStatus();
  }

 private:
  SequenceInput x_;
  RowsOutput out_;
  MadeLod lod_;
  Dim new_width_ = 1;
};

}  // namespace

void RegisterSequenceReshape(OpRegistry& ops) {
  OpDef& def = ops.Add("sequence_reshape");
  def.Doc("Reshapes the rows of each sequence to another width.", kDoc)
      .Input("X", "rows in sequences", Numbers())
      .Output("Out", "the same elements, in rows of new_dim", SameTypeAs("X"), Apart())
      .RequiredAttr("new_dim", AttrKind::kInt, "the width of the rows of Out", AtLeast(1))
      .InferShape(InferSequenceReshape)
      .KernelForAnyType<Cpu, SequenceReshapeKernel>()
      .Grad({.reads = {"X"}, .yields = {"X"}});
  def.GradDef().KernelForAnyType<Cpu, CopyGradKernel>();
}

}  // namespace penstock
