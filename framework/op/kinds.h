// The kinds of variables that a slot of an op accepts, as errors spell them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "framework/ir/var.h"

namespace penstock {

std::string_view KindText(VarKind kind);  // "an array of tensors"

class KindSet {
 public:
  constexpr KindSet() = default;  // none
  template <typename... Kinds>
  static constexpr KindSet Of(Kinds... kinds) {
    return KindSet((std::uint32_t{0} | ... | Bit(kinds)));
  }
  static constexpr KindSet Any() { return KindSet(~std::uint32_t{0}); }
  constexpr bool Has(VarKind kind) const { return (bits_ & Bit(kind)) != 0; }
  constexpr bool empty() const { return bits_ == 0; }
  constexpr KindSet operator|(KindSet other) const { return KindSet(bits_ | other.bits_); }
  friend constexpr bool operator==(KindSet, KindSet) = default;
  std::string ToString() const;  // "a dense tensor or selected rows"

 private:
  static constexpr std::uint32_t Bit(VarKind kind) {
    const auto number = static_cast<std::uint32_t>(kind);
    return number < 32 ? std::uint32_t{1} << number : 0;
  }
  explicit constexpr KindSet(std::uint32_t bits) : bits_(bits) {}
  std::uint32_t bits_ = 0;
};

}  // namespace penstock
