// The entry point for libFuzzer.
#include <cstddef>
#include <cstdint>

#include "tests/fuzz/targets/bounds.h"
#include "tests/fuzz/targets/target.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string wrong = penstock::fuzz::TryWithinBounds({reinterpret_cast<const char*>(data), size});
  PENSTOCK_CHECK(wrong.empty(), wrong);
  return 0;
}
