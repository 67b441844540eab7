// Turns functions of one element into ops with gradients. An op provides a type with
//
//   static constexpr Reads kReads         the argument that the gradient op reads in addition to Out@GRAD
//   T Out(T x)
//   T Dx(T seen, T dout)                  `seen` is an element of that argument, if there is one
//   void Read(const KernelSetup& k)       optional: reads attributes
//   void OutOf(x, out, count)             optional: Out of an array of floats, by vector instructions
//   void DxOf(seen, dout, dx, count)      optional: Dx of arrays of floats
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "framework/op/op_registry.h"
#include "operators/common/fluid_attrs.h"
#include "operators/common/parallel.h"
#include "operators/common/require_shape.h"
#include "operators/common/rows.h"

namespace penstock {

constexpr double kActivationNs = 0.5;  // of an element; functions with an exponential cost more

enum class Reads { kOut, kX, kNothing };

// The slot that the gradient op reads.
template <typename Math>
const char* Seen() {
  return Math::kReads == Reads::kX ? "X" : Math::kReads == Reads::kOut ? "Out" : "Out@GRAD";
}

template <typename Math>
void ReadAttrs(Math& math, const KernelSetup& k) {
  if constexpr (requires { math.Read(k); }) math.Read(k);
}

// Whether X may be selected rows. Out is then selected rows too, with the function applied to each listed
// value.
template <typename Math>
inline constexpr bool kTakesRows = false;

// Whether X may be integers, for which there is no gradient.
template <typename Math>
inline constexpr bool kTakesIntegers = false;

template <typename Math>
struct Activation {
  template <typename Device, typename T>
  class Forward : public Kernel {
   public:
    Status Prepare(KernelSetup& k) override {
      type_ = k.op().type();
      values_.Prepare(k.Input("X"), k.Output("Out"));
      ReadAttrs(math_, k);
      return OkStatus();
    }
    Status Run(KernelRun& k) override {
      PENSTOCK_RETURN_IF_ERROR(values_.template Load<T>(k, type_));
      const T* const x = values_.template from<T>();
      T* const out = values_.template to<T>();
      const std::int64_t count = values_.count();
      ForElements(count, kActivationNs, [&](Dim begin, Dim end) {
        if constexpr (requires { math_.OutOf(x, out, std::size_t{}); }) {
          math_.OutOf(x + begin, out + begin, static_cast<std::size_t>(end - begin));
        } else {
          for (Dim i = begin; i < end; ++i) out[i] = math_.Out(x[i]);
        }
      });
      return OkStatus();
    }

   private:
    std::string type_;
    ValuesOf values_;
    Math math_;
  };

  template <typename Device, typename T>
  class Backward : public Kernel {
   public:
    Status Prepare(KernelSetup& k) override {
      seen_ = k.Input(Seen<Math>());
      k.Bind(dout_, dx_);
      ReadAttrs(math_, k);
      return RequireShape(k, "Out@GRAD", k.Input(Seen<Math>()).shape);
    }
    Status Run(KernelRun& k) override {
      if (!dx_) return OkStatus();
      const T* const seen = k[seen_].template Data<T>();
      const T* const dout = k[dout_].template Data<T>();
      T* const dx = k[dx_].template Data<T>();
      const std::int64_t count = k[seen_].count();
      ForElements(count, kActivationNs, [&](Dim begin, Dim end) {
        if constexpr (requires { math_.DxOf(seen, dout, dx, std::size_t{}); }) {
          math_.DxOf(seen + begin, dout + begin, dx + begin, static_cast<std::size_t>(end - begin));
        } else {
          for (Dim i = begin; i < end; ++i) dx[i] = math_.Dx(seen[i], dout[i]);
        }
      });
      return OkStatus();
    }

   private:
    In<"Out@GRAD"> dout_;
    Out<"X@GRAD"> dx_;
    Operand seen_;
    Math math_;
  };
};

// Declares schema, shapes, gradient and kernels, but no attributes.
template <typename Math>
OpDef& AddActivation(OpRegistry& ops, const std::string& type, std::string summary, const std::string& doc) {
  GradSpec grad{.yields = {"X"}};
  if (Math::kReads == Reads::kX) grad.reads = {"X"};
  if (Math::kReads == Reads::kOut) grad.reads_outputs = {"Out"};
  constexpr SlotFlags kinds = kTakesRows<Math> ? TensorOrRows() : SlotFlags{};
  OpDef& def = ops.Add(type)
                   .Doc(std::move(summary), doc)
                   .Input("X", "any shape", kTakesIntegers<Math> ? Numbers() : Floats(), kinds)
                   .Output("Out", "shaped like X", SameTypeAs("X"), kinds)
                   .InferShape(SameShape("X", "Out"))
                   .Elementwise()
                   .template Kernel<Cpu, Activation<Math>::template Forward, float, double>()
                   .Grad(std::move(grad))
                   .template GradKernel<Cpu, Activation<Math>::template Backward, float, double>();
  if constexpr (kTakesIntegers<Math>)
    def.template Kernel<Cpu, Activation<Math>::template Forward, std::int32_t, std::int64_t>();
  // A gradient op that does not read X takes the shape from the argument that it reads.
  def.GradDef().InferShape(SameShape(Seen<Math>(), "X@GRAD"));
  return def;
}

}  // namespace penstock
