// Any bytes as a program file give an error or a usable program.
#include "framework/wire/wire.h"
#include "tests/fuzz/targets/target.h"

namespace penstock::fuzz {

void Try(std::string_view input) {
  const Result<Program> program = ParseProgram(input);
  if (program.ok()) {
    Use(*program);
  } else {
    PENSTOCK_CHECK(!program.status().message().empty(), "an error says what is wrong");
  }
}

}  // namespace penstock::fuzz
