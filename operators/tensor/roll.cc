// roll: shifts elements cyclically along the given axes.
#include <algorithm>
#include <cstring>
#include <vector>

#include "framework/op/op_registry.h"
#include "operators/common/axis_view.h"
#include "operators/common/require_shape.h"

namespace penstock {
namespace {

using Longs = std::vector<std::int64_t>;

constexpr char kDoc[] = R"(
Out[..., (i + shifts[k]) mod size, ...] = X[..., i, ...] along dimension dims[k], for each k in turn; negative
dimensions count from the end.)";

// One shift; the tensor is viewed along its axis.
struct Shift {
  AxisView view;
  Dim by = 0;  // in [0, view.width)
};

template <typename Context>
Result<std::vector<Shift>> ShiftsOf(const Context& c, const Shape& x, bool back) {
  const auto shifts = c.template Attr<Longs>("shifts"), dims = c.template Attr<Longs>("dims");
  if (shifts.size() != dims.size() || dims.empty())
    return c.Error("shifts has ", shifts.size(), " entries, and dims ", dims.size(),
                   "; the numbers must be equal and at least 1");
  std::vector<Shift> made;
  for (std::size_t i = 0; i < shifts.size(); ++i) {
    PENSTOCK_ASSIGN_OR_RETURN(const int axis, ResolveAxis(c, x, dims[i]));
    Shift shift{ViewAlong(x, axis), 0};
    const Dim width = std::max<Dim>(shift.view.width, 1), by = shifts[i] % width;
    shift.by = ((back ? -by : by) + width) % width;
    made.push_back(shift);
  }
  return made;
}

Status InferRoll(InferContext& c) {
  PENSTOCK_RETURN_IF_ERROR(ShiftsOf(c, c.ShapeOf("X"), false).status());
  return c.ShareAll("X", "Out");
}

// Forward from X to Out, or backward from Out@GRAD to X@GRAD.
class RollKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    const bool back = static_cast<bool>(k.Input("Out@GRAD"));
    const Argument& from = k.Input(back ? "Out@GRAD" : "X");
    from_ = from;
    to_ = k.Output(back ? "X@GRAD" : "Out");
    if (back) PENSTOCK_RETURN_IF_ERROR(RequireShape(k, "Out@GRAD", k.Input("X").shape));
    PENSTOCK_ASSIGN_OR_RETURN(shifts_, ShiftsOf(k, from.shape, back));
    size_ = SizeOf(from.dtype);
    if (shifts_.size() > 1) spare_ = k.Workspace(static_cast<std::size_t>(from.shape.Count()) * size_);
    return OkStatus();
  }
  Status Run(KernelRun& k) override {
    if (!to_ || k[to_].bytes() == 0) return OkStatus();
    const std::byte* from = k[from_].raw();
    // The last shift writes to the output; those before it write to the spare buffer and the output
    // alternately.
    for (std::size_t i = 0; i < shifts_.size(); ++i) {
      std::byte* const to = (shifts_.size() - i) % 2 == 1 ? k[to_].raw() : k.Workspace(spare_);
      Move(shifts_[i], from, to);
      from = to;
    }
    return OkStatus();
  }

 private:
  // Each line consists of two strips that are exchanged.
  void Move(const Shift& shift, const std::byte* from, std::byte* to) const {
    const auto inner = static_cast<std::size_t>(shift.view.inner) * size_;
    const std::size_t line = static_cast<std::size_t>(shift.view.width) * inner;
    const std::size_t head = static_cast<std::size_t>(shift.view.width - shift.by) * inner;
    for (Dim o = 0; o < shift.view.outer; ++o, from += line, to += line) {
      std::memcpy(to + (line - head), from, head);
      std::memcpy(to, from + head, line - head);
    }
  }

  Operand from_, to_;
  std::vector<Shift> shifts_;
  std::size_t size_ = 1;
  WorkspaceId spare_;
};

}  // namespace

void RegisterRoll(OpRegistry& ops) {
  ops.Add("roll")
      .Doc("Shifts elements cyclically along the given axes.", kDoc)
      .Input("X", "any shape", AnyType())
      .Output("Out", "shaped like X", SameTypeAs("X"), Apart())
      .Attr("shifts", Longs(), "the number of elements to shift, for each of dims")
      .Attr("dims", Longs(), "the axes")
      .InferShape(InferRoll)
      .KernelForAnyType<Cpu, RollKernel>()
      .Grad({.reads = {"X"}, .yields = {"X"}, .apart = {"X"}})
      .GradDef()
      .KernelForAnyType<Cpu, RollKernel>();
}

}  // namespace penstock
