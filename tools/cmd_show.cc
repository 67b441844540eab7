// penstock show F: prints a program for reading. Omits defaults, the forward role and locations without
// --full.
#include <gflags/gflags.h>

#include <iostream>

#include "framework/text/printer.h"
#include "framework/text/program_file.h"
#include "framework/verify/show_options.h"
#include "operators/all_ops.h"
#include "tools/command.h"

DEFINE_bool(full, false, "leave nothing out");

namespace penstock::tools {

int RunShow(const Arguments& arguments) {
  if (arguments.size() != 1) return BadUsage("show", "F");
  const Result<Program> program = ReadProgramFile(arguments[0], &Threads());
  if (!program.ok()) return BadInput(program.status());
  std::cout << PrintProgram(*program, FLAGS_full ? PrintOptions::Everything() : ShowOptions(AllOps()));
  return kExitOk;
}

}  // namespace penstock::tools
