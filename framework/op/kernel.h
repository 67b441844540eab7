// A kernel in two parts. Prepare runs once per specialisation (these shapes, this device, this thread count)
// and does every look-up; Run runs in each step and uses indices only: no names, no allocation.
//
//   template <typename Device, typename T>
//   class SquareKernel : public Kernel {
//    public:
//     Status Prepare(KernelSetup& k) override {
//       x_ = k.Input("X");
//       out_ = k.Output("Out");
//       return OkStatus();
//     }
//     Status Run(KernelRun& k) override { ... k[x_].Data<T>() ... k[out_].Data<T>() ... }
//    private:
//     Operand x_, out_;
//   };
//
// Before Run, outputs have their inferred shape and a buffer; a kernel whose output shape depends on values
// calls Tensor::Reset itself. An output shares its buffer with an input only if the op names the same
// variable in both places.
#pragma once

#include <cstddef>
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

// One argument of the op, resolved. Converts to false if the slot has no argument (an optional input, a
// gradient that is not needed).
struct Operand {
  int index = -1;  // into the frame's variables
  VarKind kind = VarKind::kTensor;
  DType dtype = DType::kFp32;
  Shape shape;  // all extents known for a tensor; empty for other kinds
  std::string name;
  explicit operator bool() const { return index >= 0; }
};

struct WorkspaceId {
  int index = -1;
};

// The position of the op, for kernels that run blocks or servers, or receive.
struct KernelSite {
  const Program* program = nullptr;
  int block = 0;
  bool ahead = false;  // a recv that runs before the send_barrier that precedes it in the program
  // Operations that the op starts may still use its variables when Run has returned: whoever runs the op
  // waits for them before the next use.
  bool awaited = false;
};

// What Prepare can look up.
class KernelSetup {
 public:
  struct Argument {
    std::string slot;
    std::vector<Operand> operands;
  };
  KernelSetup(const OpDef& def, const Op& op, std::vector<Argument> inputs, std::vector<Argument> outputs,
              const Services& services, KernelSite site = {})
      : def_(def),
        op_(op),
        inputs_(std::move(inputs)),
        outputs_(std::move(outputs)),
        services_(services),
        site_(site) {}

  const Op& op() const { return op_; }
  const Operand& Input(std::string_view slot) const;  // the first argument, or the absent operand
  const Operand& Output(std::string_view slot) const;
  std::span<const Operand> Inputs(std::string_view slot) const;
  std::span<const Operand> Outputs(std::string_view slot) const;
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
  std::vector<Argument> inputs_;
  std::vector<Argument> outputs_;
  Services services_;
  KernelSite site_;
  std::vector<std::size_t> workspaces_;
};

// What Run can access.
class KernelRun {
 public:
  KernelRun(Variable* const* variables, std::byte* const* workspaces, Scope* scope)
      : variables_(variables), workspaces_(workspaces), scope_(scope) {}

  Variable& Var(const Operand& operand) { return *variables_[operand.index]; }
  // The dense tensor of an operand of kind kTensor.
  Tensor& operator[](const Operand& operand) { return variables_[operand.index]->As<Tensor>(); }
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
