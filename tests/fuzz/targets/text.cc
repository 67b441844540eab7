// Any text as a program: an error, or a program that can be used.
#include "framework/text/parser.h"
#include "tests/fuzz/targets/target.h"

namespace penstock::fuzz {

void Try(std::string_view input) {
  const Result<Program> program = ParseText(input, "input");
  if (program.ok()) {
    Use(*program);
  } else {
    MustBeTheInputsFault(program.status());
  }
}

}  // namespace penstock::fuzz
