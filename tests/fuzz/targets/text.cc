// Any text as a program gives an error or a usable program.
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
