#include "framework/text/parser.h"
#include "framework/text/printer.h"
#include "framework/verify/verifier.h"
#include "framework/wire/wire.h"
#include "operators/all_ops.h"
#include "tests/fuzz/targets/target.h"

namespace penstock::fuzz {

void MustBeTheInputsFault(const Status& status) {
  PENSTOCK_CHECK(StartsWith(status.id(), "E-"), status.ToString());
  PENSTOCK_CHECK(!status.message().empty(), status.ToString());
  PENSTOCK_CHECK(status.message().find('\n') == std::string::npos, status.ToString());
  PENSTOCK_CHECK(status.code() != StatusCode::kInternal, status.ToString());
}

void Use(const Program& program) {
  const std::string bytes = SerializeProgram(program);
  const Result<Program> parsed = ParseProgram(bytes);
  PENSTOCK_CHECK(parsed.ok(), parsed.status().ToString());
  const std::string text = PrintProgram(program, PrintOptions::Everything());
  const Result<Program> read = ParseText(text, "printed");
  PENSTOCK_CHECK(read.ok(), read.status().ToString());
  // Compares texts, because NaN is not equal to itself.
  PENSTOCK_CHECK(PrintProgram(*read, PrintOptions::Everything()) == text, text);
  PENSTOCK_CHECK(PrintProgram(*parsed, PrintOptions::Everything()) == text, text);
  for (const Status& violation : FindViolations(program, {.ops = &AllOps()})) MustBeTheInputsFault(violation);
}

}  // namespace penstock::fuzz
