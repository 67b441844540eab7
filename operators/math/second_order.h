// The second-order gradients of activations, named as in Fluid: relu_grad_grad and so on. An activation whose
// second derivative is not 0 provides, in addition to the members that activation.h lists,
//
//   kKept<Math>                        the argument of the second derivative in addition to `seen`
//   T Second(T seen, T kept, T ddx)    the gradient of `seen`
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "framework/op/op_registry.h"
#include "operators/common/require_shape.h"
#include "operators/math/activation.h"

namespace penstock {

// kDx: the result of the gradient op, as in Fluid's sqrt_grad_grad.
enum class Kept { kNothing, kDout, kDx };

template <typename Math>
inline constexpr Kept kKept = Kept::kNothing;

// The slot of the gradient of the argument that the gradient op reads.
template <typename Math>
std::string SeenGrad() {
  return std::string("D") + Seen<Math>();
}

template <typename Math>
struct SecondOrder {
  template <typename Device, typename T>
  class Kernels : public Kernel {
   public:
    Status Prepare(KernelSetup& k) override {
      const Argument& seen = k.Input(Seen<Math>());
      seen_ = seen;
      k.Bind(ddx_, ddout_);
      ReadAttrs(math_, k);
      PENSTOCK_RETURN_IF_ERROR(RequireShape(k, "DDX", seen.shape));
      if constexpr (kKept<Math> != Kept::kNothing) {
        const char* const slot = kKept<Math> == Kept::kDout ? "DOut" : "DX";
        kept_ = k.Input(slot);
        dseen_ = k.Output(SeenGrad<Math>());
        return RequireShape(k, slot, seen.shape);
      }
      return OkStatus();
    }
    Status Run(KernelRun& k) override {
      const T *const seen = k[seen_].template Data<T>(), *const ddx = k[ddx_].template Data<T>();
      const std::int64_t count = k[seen_].count();
      if constexpr (kKept<Math> != Kept::kNothing) {
        const T* const kept = k[kept_].template Data<T>();
        T* const dseen = dseen_ ? k[dseen_].template Data<T>() : nullptr;
        for (std::int64_t i = 0; dseen != nullptr && i < count; ++i)
          dseen[i] = math_.Second(seen[i], kept[i], ddx[i]);
      }
      if (!ddout_) return OkStatus();
      T* const ddout = k[ddout_].template Data<T>();
      for (std::int64_t i = 0; i < count; ++i) ddout[i] = math_.Dx(seen[i], ddx[i]);
      return OkStatus();
    }

   private:
    In<"DDX"> ddx_;
    Out<"DDOut"> ddout_;
    Operand seen_, kept_, dseen_;
    Math math_;
  };
};

template <typename Math>
Result<std::vector<Op>> MakeSecondOrder(const GradRequest& request) {
  const Op& forward = request.forward;
  const std::string ddout = request.grad_of(forward.InputName("Out@GRAD"));
  std::string dseen;
  if (kKept<Math> != Kept::kNothing) dseen = request.grad_of(forward.InputName(Seen<Math>()));
  if (ddout.empty() && dseen.empty()) return std::vector<Op>();
  Op op(forward.type() + "_grad");
  op.AddInput(Seen<Math>(), {forward.InputName(Seen<Math>())});
  op.AddInput("DDX", {request.grad_of(forward.OutputName("X@GRAD"))});
  if (kKept<Math> == Kept::kDout) op.AddInput("DOut", {forward.InputName("Out@GRAD")});
  if (kKept<Math> == Kept::kDx) op.AddInput("DX", {forward.OutputName("X@GRAD")});
  const auto add = [&op](const std::string& slot, const std::string& name) {
    op.AddOutput(slot, name.empty() ? std::vector<std::string>() : std::vector<std::string>{name});
  };
  add("DDOut", ddout);
  if (kKept<Math> != Kept::kNothing) add(SeenGrad<Math>(), dseen);
  for (const NamedAttr& attr : forward.attrs()) op.Set(attr.name, attr.value);
  return std::vector<Op>{std::move(op)};
}

// Declares `<type>_grad_grad` for a declared activation, without the attributes.
template <typename Math>
OpDef& AddSecondOrder(OpRegistry& ops, OpDef& activation) {
  const std::string type = activation.type() + "_grad_grad";
  activation.GradDef().GradMadeBy(MakeSecondOrder<Math>);
  OpDef& def = ops.Add(type);
  def.Doc(StrCat("The gradient of ", activation.type(), "_grad."),
          StrCat("DDOut = DDX times the derivative of ", activation.type(),
                 kKept<Math> == Kept::kNothing
                     ? ""
                     : "; the other output is the second derivative times DDX and the gradient of Out"))
      .Input(Seen<Math>(), StrCat("as in ", activation.type()), Floats())
      .Input("DDX", "the gradient of X@GRAD", SameTypeAs(Seen<Math>()));
  if (kKept<Math> == Kept::kDout) def.Input("DOut", "the gradient of Out", SameTypeAs(Seen<Math>()));
  if (kKept<Math> == Kept::kDx) def.Input("DX", "the gradient of X", SameTypeAs(Seen<Math>()));
  def.Output("DDOut", "the gradient of Out@GRAD", SameTypeAs(Seen<Math>()), Optional() | Apart());
  if (kKept<Math> != Kept::kNothing) {
    def.Output(SeenGrad<Math>(), StrCat("the gradient of ", Seen<Math>()), SameTypeAs(Seen<Math>()),
               Optional() | Apart());
  }
  def.InferShape([](InferContext& c) -> Status {
       PENSTOCK_RETURN_IF_ERROR(c.ShareAll("DDX", "DDOut"));
       return kKept<Math> == Kept::kNothing ? OkStatus() : c.ShareAll(Seen<Math>(), SeenGrad<Math>());
     })
      .Elementwise()
      .template Kernel<Cpu, SecondOrder<Math>::template Kernels, float, double>();
  return def;
}

}  // namespace penstock
