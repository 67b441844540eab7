// What an op reads or writes beyond its arguments. Passes, the executor and the transpiler ask for an op's
// effects where they move it, repeat it or wait for it.
#pragma once

#include <cstdint>
#include <initializer_list>

namespace penstock {

enum class Effect : std::uint8_t {
  kStep = 1,     // the trainer's step: what parameter servers receive, hold and answer
  kRing = 2,     // a ring of ranks: all its ranks run its ops in one order
  kScope = 4,    // variables that the op's blocks name, and scopes
  kHost = 8,     // files, output, functions of the user
  kQueue = 16,   // a reader's batches
  kRandom = 32,  // random numbers: two runs differ, unless a seed is set
};

class Effects {
 public:
  constexpr Effects() = default;
  constexpr Effects(std::initializer_list<Effect> effects) {
    for (const Effect effect : effects) bits_ |= static_cast<std::uint8_t>(effect);
  }

  constexpr bool empty() const { return bits_ == 0; }
  constexpr bool Has(Effect effect) const { return (bits_ & static_cast<std::uint8_t>(effect)) != 0; }
  constexpr bool AnyOf(Effects others) const { return (bits_ & others.bits_) != 0; }
  // Whether something outside of the op's run may depend on it, or it on that: anything but random numbers.
  constexpr bool AreOutside() const { return (bits_ & ~static_cast<std::uint8_t>(Effect::kRandom)) != 0; }
  // Whether the op's arguments may be in use after its run: by a sender, a receiver, or a function that keeps
  // them.
  constexpr bool MayHoldArguments() const { return AnyOf({Effect::kStep, Effect::kRing, Effect::kHost}); }

  constexpr Effects& operator|=(Effects others) {
    bits_ |= others.bits_;
    return *this;
  }

 private:
  std::uint8_t bits_ = 0;
};

}  // namespace penstock
