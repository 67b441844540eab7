#include "framework/vector/isa.h"

#include <hwy/targets.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "framework/base/environment.h"

namespace penstock::vec {
namespace {

struct Target {
  Isa isa;
  std::string_view name;
  std::int64_t bits;  // Highway's targets that need this instruction set
};

constexpr std::array<Target, 4> kTargets = {{
    {Isa::kBase, "base", 0},
    {Isa::kSse4, "sse4", HWY_SSE4},
    {Isa::kAvx2, "avx2", HWY_AVX2},
    {Isa::kAvx512, "avx512", HWY_AVX3 | HWY_AVX3_DL},
}};

bool Has(std::int64_t supported, Isa isa) {
  return isa == Isa::kBase || (supported & kTargets[static_cast<std::size_t>(isa)].bits) != 0;
}

}  // namespace

void CapIsa(Isa most) {
  std::int64_t disabled = 0;
  for (const Target& target : kTargets) {
    if (target.isa > most) disabled |= target.bits;
  }
  hwy::DisableTargets(disabled);
}

Isa IsaInUse() {
  const std::int64_t supported = hwy::SupportedTargets();
  Isa best = Isa::kBase;
  for (const Target& target : kTargets) {
    if (Has(supported, target.isa)) best = target.isa;
  }
  return best;
}

void CapIsaBySetting() {
  const Result<std::string> setting = env::Choice("PENSTOCK_ISA");
  if (!setting.ok()) return;
  for (const Target& target : kTargets) {
    if (target.name == *setting) CapIsa(target.isa);
  }
}

}  // namespace penstock::vec
