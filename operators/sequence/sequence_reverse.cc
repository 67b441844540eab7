// sequence_reverse: reverses the rows of each sequence.
#include <cstring>

#include "framework/op/op_registry.h"
#include "operators/common/lod.h"
#include "operators/common/require_shape.h"

namespace penstock {
namespace {

constexpr char kDoc[] = R"(
Y[begin(s) + i] = X[end(s) - 1 - i] for each innermost sequence s

The gradient applies the same op to the gradient of Y.)";

Status InferSequenceReverse(InferContext& c) {
  PENSTOCK_RETURN_IF_ERROR(c.RequireRankAbove("X", 0));
  return c.ShareAll("X", "Y");
}

class SequenceReverseKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    x_.Prepare(k, "X");
    k.Bind(y_);
    row_bytes_ = static_cast<std::size_t>(k[y_].shape.RowWidth()) * SizeOf(k[y_].dtype);
    return OkStatus();
  }

  Status Run(KernelRun& k) override {
    PENSTOCK_ASSIGN_OR_RETURN(const Offsets x, x_.Innermost(k));
    if (row_bytes_ == 0) return OkStatus();
    const std::byte* const from = k[x_.operand()].raw();
    std::byte* to = k[y_].raw();
    for (Dim s = 0; s < x.count(); ++s) {
      for (Dim r = x.end(s); r > x.begin(s); --r) {
        std::memcpy(to, from + static_cast<std::size_t>(r - 1) * row_bytes_, row_bytes_);
        to += row_bytes_;
      }
    }
    return OkStatus();
  }

 private:
  SequenceInput x_;
  Out<"Y"> y_;
  std::size_t row_bytes_ = 0;
};

Result<std::vector<Op>> SequenceReverseGrad(const GradRequest& request) {
  const std::string dx = request.grad_of(request.forward.Input("X").front());
  if (dx.empty()) return std::vector<Op>{};
  const std::string dy = request.grad_of(request.forward.Output("Y").front());
  Op grad("sequence_reverse");
  grad.AddInput("X", {dy}).AddOutput("Y", {dx});
  for (const NamedAttr& attr : request.forward.attrs()) grad.Set(attr.name, attr.value);
  return std::vector<Op>{std::move(grad)};
}

}  // namespace

void RegisterSequenceReverse(OpRegistry& ops) {
  ops.Add("sequence_reverse")
      .Doc("Reverses the rows of each sequence.", kDoc)
      .Input("X", "rows in sequences", AnyType())
      .Output("Y", "X with each sequence reversed", SameTypeAs("X"), Apart())
      .InferShape(InferSequenceReverse)
      .KernelForAnyType<Cpu, SequenceReverseKernel>()
      .GradMadeBy(SequenceReverseGrad);
}

}  // namespace penstock
