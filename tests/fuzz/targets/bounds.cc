#include "tests/fuzz/targets/bounds.h"

#include <algorithm>

#include "framework/base/strings.h"
#include "tests/fuzz/targets/heap.h"
#include "tests/fuzz/targets/target.h"

namespace penstock::fuzz {

std::string TryWithinBounds(std::string_view input) {
  constexpr std::int64_t kAlways = 64 << 20, kTimes = 8;
  const std::int64_t allowed = std::max<std::int64_t>(kAlways, kTimes * std::ssize(input));
  const std::int64_t before = HeapBytes();
  ResetHeapPeak();
  Try(input);
  const std::int64_t peak = HeapPeak() - before;
  return peak <= allowed ? "" : StrCat("takes ", peak, " bytes; at most ", allowed, " are allowed");
}

}  // namespace penstock::fuzz
