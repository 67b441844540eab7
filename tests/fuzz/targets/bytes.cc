// Any bytes as a program file: an error, or a program that can be used.
#include "framework/ir/wire.h"
#include "tests/fuzz/targets/target.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace penstock;
  const Result<Program> program = ParseProgram(fuzz::AsText(data, size));
  if (program.ok()) {
    fuzz::Use(*program);
  } else {
    PENSTOCK_CHECK(!program.status().message().empty(), "an error says what is wrong");
  }
  return 0;
}
