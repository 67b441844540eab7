// penstock show F: prints a program for reading. Omits defaults, the forward role and locations without
// --full.
#include <gflags/gflags.h>

#include <iostream>
#include <string>

#include "framework/op/unknown_ops.h"
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
  if (const std::string unknown = UnknownOps(AllOps(), *program); !unknown.empty())
    std::cerr << "warning: " << arguments[0] << ": ops that are not known and cannot run: " << unknown
              << "\n";
  std::cout << PrintProgram(*program, FLAGS_full ? PrintOptions::Everything() : ShowOptions(AllOps()));
  return kExitOk;
}

}  // namespace penstock::tools
