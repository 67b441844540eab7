// A kernel in two parts. Prepare runs once per specialisation (these shapes, this device, this thread count)
// and does every look-up; Run runs in each step and uses indices only: no names, no allocation.
//
//   template <typename Device, typename T>
//   class SquareKernel : public Kernel {
//    public:
//     Status Prepare(KernelSetup& k) override {
//       k.Bind(x_, out_);
//       return OkStatus();  // k[x_].shape is the shape of X
//     }
//     Status Run(KernelRun& k) override { ... k[x_].Data<T>() ... k[out_].Data<T>() ... }
//    private:
//     In<"X"> x_;
//     Out<"Out"> out_;
//   };
//
// Before Run, outputs have their inferred shape and a buffer; a kernel whose output shape depends on values
// calls Tensor::Reset itself. An output shares its buffer with an input only if the op names the same
// variable in both places.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "framework/base/status.h"
#include "framework/ir/op.h"
#include "framework/ir/var.h"
#include "framework/op/infer_context.h"
#include "framework/runtime/services.h"
#include "framework/tensor/variable.h"

namespace penstock {

class OpDef;
class Program;

struct Cpu {
  static constexpr DeviceKind kKind = DeviceKind::kCpu;
};
struct Cuda {
  static constexpr DeviceKind kKind = DeviceKind::kCuda;
};

// An argument of the op, as Run uses it: its index in the frame's table of variables. Converts to false if
// the slot has no argument (an optional input, a gradient that is not needed).
struct Operand {
  std::int32_t index = -1;
  explicit operator bool() const { return index >= 0; }
};
static_assert(sizeof(Operand) == 4, "kernels keep many");

// An argument as Prepare sees it: its type and its name too. All extents of an input tensor are known, those
// of an output only if they do not depend on values; other kinds have no shape.
struct Argument : TensorDesc {
  Operand operand;
  std::string_view name;                        // in the program
  operator Operand() const { return operand; }  // NOLINT(google-explicit-constructor): what a kernel keeps
  explicit operator bool() const { return static_cast<bool>(operand); }
};

// An operand whose kind and element type Run reads: it may be of several kinds, or an output that Run makes.
struct TypedOperand : Operand {
  TypedOperand() = default;
  TypedOperand(const Argument& argument)  // NOLINT(google-explicit-constructor): assigned as an Operand is
      : Operand(argument.operand), kind(argument.kind), dtype(argument.dtype) {}
  VarKind kind = VarKind::kTensor;
  DType dtype = DType::kFp32;
};

// An operand whose name Run's errors give.
struct NamedOperand : Operand {
  NamedOperand() = default;
  NamedOperand(const Argument& argument)  // NOLINT(google-explicit-constructor): assigned as an Operand is
      : Operand(argument.operand), name(argument.name) {}
  std::string_view name;
};

// The name of a slot, as a template's argument.
struct SlotName {
  template <std::size_t kSize>
  consteval SlotName(const char (&name)[kSize]) {  // NOLINT(google-explicit-constructor): In<"X">
    std::copy_n(name, kSize, text);
  }
  constexpr operator std::string_view() const { return text; }  // NOLINT(google-explicit-constructor)
  char text[32] = {};
};
// The operand of a slot: the first argument of input or output `kSlot`. KernelSetup::Bind sets it.
template <SlotName kSlot>
struct In : Operand {};
template <SlotName kSlot>
struct Out : Operand {};

struct WorkspaceId {
  int index = -1;
};

// The position of the op, for kernels that run blocks or servers, or receive.
struct KernelSite {
  const Program* program = nullptr;
  int block = 0;
  // Operations that the op starts may still use its variables when Run has returned: whoever runs the op
  // waits for them before the next use.
  bool awaited = false;
};

// What Prepare can look up.
class KernelSetup {
 public:
  struct Arguments {
    std::string_view slot;
    std::vector<Argument> list;
  };
  KernelSetup(const OpDef& def, const Op& op, std::vector<Arguments> inputs, std::vector<Arguments> outputs,
              const Services& services, KernelSite site = {})
      : def_(def),
        op_(op),
        inputs_(std::move(inputs)),
        outputs_(std::move(outputs)),
        services_(services),
        site_(site) {}

  const Op& op() const { return op_; }
  const Argument& Input(std::string_view slot) const;  // the first argument, or the absent one
  const Argument& Output(std::string_view slot) const;
  std::span<const Argument> Inputs(std::string_view slot) const;
  std::span<const Argument> Outputs(std::string_view slot) const;
  // Sets operands to the arguments of their slots.
  template <typename... Operands>
  void Bind(Operands&... operands) const {
    ((static_cast<Operand&>(operands) = (*this)[operands]), ...);
  }
  // The argument behind an operand.
  template <SlotName kSlot>
  const Argument& operator[](const In<kSlot>&) const {
    return Input(kSlot);
  }
  template <SlotName kSlot>
  const Argument& operator[](const Out<kSlot>&) const {
    return Output(kSlot);
  }
  template <typename T>
  T Attr(std::string_view name) const;               // or the schema's default
  int threads() const { return services_.threads; }  // in the compute team; part of a specialisation's key
  const Services& services() const { return services_; }
  const KernelSite& site() const { return site_; }

  // Scratch memory, 64-byte aligned, valid during each Run of this kernel; its content is not kept.
  WorkspaceId Workspace(std::size_t bytes);
  const std::vector<std::size_t>& workspaces() const { return workspaces_; }  // for the executor

  template <typename... Parts>
  Status Error(const Parts&... parts) const {
    return InvalidArgument(StrCat("E-kernel-", op_.type()), op_.type(), ": ", StrCat(parts...));
  }

 private:
  const penstock::Attr& AttrValue(std::string_view name) const;
  const OpDef& def_;
  const Op& op_;
  std::vector<Arguments> inputs_;
  std::vector<Arguments> outputs_;
  Services services_;
  KernelSite site_;
  std::vector<std::size_t> workspaces_;
};

// What Run can access.
class KernelRun {
 public:
  KernelRun(Variable* const* variables, std::byte* const* workspaces, Scope* scope)
      : variables_(variables), workspaces_(workspaces), scope_(scope) {}

  Variable& Var(Operand operand) { return *variables_[operand.index]; }
  // The dense tensor of an operand of kind kTensor.
  Tensor& operator[](Operand operand) { return variables_[operand.index]->As<Tensor>(); }
  std::byte* Workspace(WorkspaceId id) { return workspaces_[id.index]; }
  // The scope in which the block runs: for ops that run blocks or servers, not for reading operands by name.
  Scope& scope() { return *scope_; }

 private:
  Variable* const* variables_;
  std::byte* const* workspaces_;
  Scope* scope_;
};

class Kernel {
 public:
  virtual ~Kernel() = default;
  virtual Status Prepare(KernelSetup& k) = 0;
  virtual Status Run(KernelRun& k) = 0;
};

using KernelFactory = std::unique_ptr<Kernel> (*)();

template <typename T>
T KernelSetup::Attr(std::string_view name) const {
  const penstock::Attr& value = AttrValue(name);
  std::optional<T> typed = AttrAs<T>(value);
  PENSTOCK_CHECK(typed.has_value(),
                 StrCat(op_.type(), ": attribute ", name, " has another kind than its reader expects"));
  return *std::move(typed);
}

}  // namespace penstock
