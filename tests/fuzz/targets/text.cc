// Any text as a program: an error, or a program that can be used.
#include "framework/text/parser.h"
#include "tests/fuzz/targets/target.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace penstock;
  const Result<Program> program = ParseText(fuzz::AsText(data, size), "input");
  if (program.ok()) {
    fuzz::Use(*program);
  } else {
    fuzz::MustBeTheInputsFault(program.status());
  }
  return 0;
}
