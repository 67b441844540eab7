// penstock memory_optimize A B, penstock release_memory A B: rewrite a program so that it uses less memory.
#include <gflags/gflags.h>

#include <iostream>

#include "framework/base/strings.h"
#include "framework/text/program_file.h"
#include "operators/all_ops.h"
#include "tools/command.h"
#include "transpiler/memory/memory.h"

DEFINE_string(keep, "", "fetched variables, separated by commas; they are not changed");
DEFINE_int32(level, 0, "0: reuse only buffers of the same type and shape; 1: also larger ones");
DEFINE_bool(skip_grads, false, "do not change variables that the backward pass writes");

namespace penstock::tools {
namespace {

memory::NameSet Kept() {
  memory::NameSet names;
  for (std::string& name : Split(FLAGS_keep, ',')) {
    if (!name.empty()) names.insert(std::move(name));
  }
  return names;
}

template <typename Rewrite>
int RunOn(std::string_view command, const Arguments& arguments, const Rewrite& rewrite) {
  if (arguments.size() != 2) return BadUsage(command, "A B");
  const Result<Program> program = ReadProgramFile(arguments[0], &Threads());
  if (!program.ok()) return BadInput(program.status());
  const Result<memory::MemoryRewrite> less = rewrite(*program);
  if (!less.ok()) return BadInput(less.status());
  const Status written = WriteProgramFile(arguments[1], less->program);
  if (!written.ok()) return BadInput(written);
  std::cout << less->Report();
  return kExitOk;
}

}  // namespace

int RunMemoryOptimize(const Arguments& arguments) {
  if (FLAGS_level != 0 && FLAGS_level != 1) {
    return BadInput(InvalidArgument("E-usage", "memory_optimize: --level must be 0 or 1, not ", FLAGS_level));
  }
  return RunOn("memory_optimize", arguments, [](const Program& program) {
    return memory::ReuseBuffers(
        AllOps(), program,
        {.keep = Kept(), .larger_buffers = FLAGS_level == 1, .skip_grads = FLAGS_skip_grads});
  });
}

int RunReleaseMemory(const Arguments& arguments) {
  return RunOn("release_memory", arguments,
               [](const Program& program) { return memory::ReleaseBuffers(AllOps(), program, Kept()); });
}

}  // namespace penstock::tools
