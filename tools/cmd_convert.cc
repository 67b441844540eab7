// penstock convert A B: writes a program in another file format, without loss.
#include "framework/text/program_file.h"
#include "tools/command.h"

namespace penstock::tools {

int RunConvert(const Arguments& arguments) {
  if (arguments.size() != 2) return BadUsage("convert", "A B");
  const Result<Program> program = ReadProgramFile(arguments[0], &Threads());
  if (!program.ok()) return BadInput(program.status());
  const Status written = WriteProgramFile(arguments[1], *program);
  return written.ok() ? kExitOk : BadInput(written);
}

}  // namespace penstock::tools
