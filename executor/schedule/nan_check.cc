#include "executor/schedule/nan_check.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "framework/base/environment.h"
#include "framework/tensor/dtype.h"

namespace penstock::exec {
namespace {

// An invalid value is an error of env::CheckAll, before any run.
bool AskedByEnvironment() {
  const Result<bool> asked = env::Flag("FLAGS_check_nan_inf");
  return asked.ok() && *asked;
}

std::atomic<bool>& Flag() {
  static std::atomic<bool> flag{AskedByEnvironment()};
  return flag;
}

struct Counts {
  std::int64_t nan = 0;
  std::int64_t inf = 0;
  std::int64_t first = -1;  // index of the first NaN or Inf
};

// Whether no exponent is all ones. Has no branches, so the compiler can vectorise it.
template <typename T>
bool AllFinite(std::span<const T> values) {
  using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
  constexpr Bits kExponent = std::bit_cast<Bits>(std::numeric_limits<T>::infinity());
  Bits found = 0;
  for (const T value : values) {
    found |= static_cast<Bits>((std::bit_cast<Bits>(value) & kExponent) == kExponent);
  }
  return found == 0;
}

template <typename T>
Counts CountIn(std::span<const T> values) {
  Counts counts;
  if (AllFinite(values)) return counts;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (std::isfinite(values[i])) continue;
    ++(std::isnan(values[i]) ? counts.nan : counts.inf);
    if (counts.first < 0) counts.first = static_cast<std::int64_t>(i);
  }
  return counts;
}

Counts CountIn(const Tensor& tensor) {
  if (!tensor.initialized() || tensor.buffer()->device() != DeviceKind::kCpu) return {};
  if (tensor.dtype() == DType::kFp32) return CountIn(tensor.Span<float>());
  if (tensor.dtype() == DType::kFp64) return CountIn(tensor.Span<double>());
  return {};
}

std::string IndexText(std::int64_t flat, const Shape& shape) {
  std::string text;
  for (int axis = shape.rank() - 1; axis >= 0; --axis) {
    text = StrCat(flat % shape[axis], text.empty() ? "" : ", ", text);
    flat /= shape[axis];
  }
  return StrCat("[", text, "]");
}

std::string Describe(const Tensor& tensor, const Counts& counts) {
  return StrCat(counts.nan, " nan and ", counts.inf, " inf in ", tensor.count(), " elements, the first at ",
                IndexText(counts.first, tensor.shape()));
}

// Describes the NaNs and Infs that a variable holds; empty if it holds none.
std::string Found(const Variable& variable) {
  const auto in = [](const Tensor& tensor) {
    const Counts counts = CountIn(tensor);
    return counts.first < 0 ? std::string() : Describe(tensor, counts);
  };
  if (const Tensor* tensor = variable.If<Tensor>()) return in(*tensor);
  if (const SelectedRows* rows = variable.If<SelectedRows>()) return in(rows->value);
  if (const TensorArray* array = variable.If<TensorArray>()) {
    for (const Tensor& element : *array) {
      if (std::string found = in(element); !found.empty()) return found;
    }
  }
  return {};
}

bool Contains(const std::vector<std::vector<int>>& side, int slot) {
  return std::any_of(side.begin(), side.end(), [&](const auto& args) {
    return std::find(args.begin(), args.end(), slot) != args.end();
  });
}

Status Report(Frame& frame, const Instruction& instruction, const std::string& slot, const std::string& name,
              const std::string& found) {
  Status status = frame.Explain(
      InvalidArgument("E-run-nan", instruction.op->type(), ": ", slot, " = ", name, " holds ", found),
      instruction);
  for (std::size_t i = 0; i < instruction.inputs.size(); ++i) {
    if (!ReadsElements(instruction, i)) continue;
    for (const int input : instruction.inputs[i]) {
      if (input < 0 || Contains(instruction.outputs, input)) continue;
      const std::string before = Found(frame.variable(input));
      if (before.empty()) continue;
      const std::string& there = frame.block().slots[static_cast<std::size_t>(input)].name;
      status.With(StrCat("note: its input ", there, " holds ", before,
                         ", which no op before it made: it was fed or comes from the scope"));
    }
  }
  return status;
}

}  // namespace

void SetCheckNanInf(bool on) { Flag().store(on, std::memory_order_relaxed); }
bool CheckNanInf() { return Flag().load(std::memory_order_relaxed); }

Status RequireFinite(Frame& frame, const Instruction& instruction) {
  for (std::size_t i = 0; i < instruction.outputs.size(); ++i) {
    for (const int slot : instruction.outputs[i]) {
      if (slot < 0) continue;
      const std::string found = Found(frame.variable(slot));
      if (found.empty()) continue;
      return Report(frame, instruction, instruction.op->outputs()[i].name,
                    frame.block().slots[static_cast<std::size_t>(slot)].name, found);
    }
  }
  return OkStatus();
}

}  // namespace penstock::exec
