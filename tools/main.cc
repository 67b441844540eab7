// The `penstock` command: the table of its sub-commands, dispatch and usage.
#include <algorithm>
#include <initializer_list>
#include <iostream>

#include "framework/runtime/core_threads.h"
#include "tools/command.h"
#include "tools/flags.h"
#include "tools/source.h"

namespace penstock::tools {
namespace {

// The programs and the configuration of a job, for commands that transpile.
std::vector<std::string_view> JobFlagsAnd(std::initializer_list<std::string_view> others) {
  std::vector<std::string_view> flags = JobFlags();
  flags.insert(flags.end(), others);
  return flags;
}

// Commands about programs.
std::vector<Command> ProgramCommands() {
  return {
      {"convert",
       "A B",
       "writes program A to B; the file names select the formats: .pb .pb.gz .pdmodel __model__ .ir .json",
       {},
       RunConvert},
      {"show", "F", "prints program F for reading, with defaults omitted", {"full"}, RunShow},
      {"diff", "A B", "compares two programs, or two folders of role programs, op by op", {}, RunDiff},
      {"transpile", "--main F --startup F --config F --out DIR [--steps DIR]",
       "writes the programs of all roles, and the plan", JobFlagsAnd({"steps", "out"}), RunTranspile},
      {"memory_optimize",
       "A B",
       "writes program A to B with buffers reused, and prints the memory saved",
       {"keep", "level", "skip_grads"},
       RunMemoryOptimize},
      {"release_memory",
       "A B",
       "writes program A to B with a delete_var after the last use of each temporary",
       {"keep"},
       RunReleaseMemory},
      {"plan", "DIR | --main F --startup F --config F | --exec F --batch N",
       "reports the memory, traffic and balance of a job's processes, and its expected speed on a network; "
       "or "
       "prints the plan by which the executor runs program F",
       JobFlagsAnd({"rows_per_step", "batch", "steps_per_exchange", "net", "step_ms", "message_us", "pieces",
                    "json", "dot", "exec", "feed"}),
       RunPlan},
      {"check",
       "DIR [--main F --startup F [--facts F]]",
       "proves that the role programs in a folder fit together and, given the source, compute the same",
       {"main", "startup", "facts"},
       RunCheck},
  };
}

// Commands about jobs and machines.
std::vector<Command> JobCommands() {
  return {
      {"plot",
       "LOG [--out FILE] [--text]",
       "plots the progress lines of a trainer's log (launch --progress SECONDS): a PNG with matplotlib, bars "
       "of text without",
       {},
       RunPlot},
      {"top",
       "DIR | HOST:PORT ...",
       "shows live figures of a running job: a table of the /metrics of the processes in the log folder DIR "
       "(launch --metrics 0) or at the given addresses, repeated until no process answers",
       {"once", "every_s"},
       RunTop},
      {"trace",
       "DIR [FILE]",
       "merges a job's traces (launch --trace DIR) into FILE, or DIR/job.pftrace, for ui.perfetto.dev",
       {},
       RunTrace},
      {"profile",
       "DIR [FILE] [--program F --batch N]",
       "writes a page about the steps of program F, or DIR/profile.html, from a trace (PENSTOCK_TRACE=DIR): "
       "ops by type, the slowest ops, a roofline, memory over time; without a program, only the times of ops",
       {"program", "batch", "feed", "role", "gemm_gflops", "copy_gbytes", "threads"},
       RunProfile},
      {"ckpt",
       "ls DIR | ls DIR/step-N | verify DIR | diff DIR/step-A DIR/step-B | export DIR/step-N OUT "
       "[--numpy|--safetensors] [--part_mb N] [--since M] | import FOLDER DIR --main F --step N",
       "shows the checkpoints of a job (launch --checkpoint_dir DIR), verifies all their bytes, compares "
       "two; "
       "exports the variables of one as fluid.io.save_persistables, NumPy or safetensors writes them, tables "
       "in "
       "parts or only what has changed since an earlier one; makes one of a folder of save_persistables",
       {"numpy", "safetensors", "part_mb", "since", "states", "main", "step"},
       RunCkpt},
      {"doctor",
       "[--json]",
       "prints what this machine and this installation offer to a job: processors, libraries, GPUs, shared "
       "memory, limits, clock; and what to do about what is missing or too small",
       {},
       RunDoctor},
      {"scale",
       "DIR --servers N",
       "changes the number of pservers of a running job to N, between two steps; DIR is its log folder. The "
       "trainers keep running",
       {},
       RunScale},
  };
}

const std::vector<Command>& Commands() {
  static const std::vector<Command> commands = [] {
    std::vector<Command> all = ProgramCommands();
    for (const Command& one : JobCommands()) all.push_back(one);
    return all;
  }();
  return commands;
}

void PrintUsage(std::ostream& out, const Command& command) {
  out << "penstock " << command.name << " " << command.arguments << "\n  " << command.does << "\n"
      << FlagHelp(command);
}

void PrintUsage(std::ostream& out) {
  out << "usage: penstock COMMAND [flags] arguments; penstock COMMAND --help describes one command\n\n";
  for (const Command& command : Commands()) PrintUsage(out, command);
  out << "\nExit codes are listed in README.md, section \"Exit codes\".\n";
}

bool AsksForHelp(const std::string& argument) { return argument == "--help" || argument == "-h"; }

int Main(const Arguments& arguments) {
  DefineSettingFlags();
  if (!arguments.empty() && (AsksForHelp(arguments[0]) || arguments[0] == "help")) {
    PrintUsage(std::cout);
    return kExitOk;
  }
  if (arguments.empty()) {
    PrintUsage(std::cerr);
    return kExitBadInput;
  }
  for (const Command& command : Commands()) {
    if (command.name != arguments[0]) continue;
    if (std::any_of(arguments.begin() + 1, arguments.end(), AsksForHelp)) {
      PrintUsage(std::cout, command);
      return kExitOk;
    }
    if (command.run == RunPlot || command.run == RunDoctor || command.run == RunScale)
      return command.run({arguments.begin() + 1, arguments.end()});  // have their own flags
    const Result<Arguments> rest = TakeFlags(command, {arguments.begin() + 1, arguments.end()});
    return rest.ok() ? command.run(*rest) : BadInput(rest.status());
  }
  std::vector<std::string_view> names;
  for (const Command& command : Commands()) names.push_back(command.name);
  return BadInput(InvalidArgument("E-command", "there is no command ", Quote(arguments[0]),
                                  "; known: ", Join(names, ", ")));
}

}  // namespace

namespace {
std::string invoked;  // written once, by main()
}

const std::string& Invoked() { return invoked; }

ThreadPool& Threads() {
  static CoreThreads threads;
  return threads;
}

int BadInput(const Status& status) {
  std::string line = status.message();  // one line, even if it quotes control characters of a file
  std::replace_if(
      line.begin(), line.end(), [](char c) { return static_cast<unsigned char>(c) < ' '; }, ' ');
  std::cerr << "error: " << line << "   [" << status.id() << "]\n";
  return kExitBadInput;
}

int BadUsage(std::string_view command, std::string_view expected) {
  return BadInput(InvalidArgument("E-usage", "usage: penstock ", command, " ", expected));
}

}  // namespace penstock::tools

int main(int argc, char** argv) {
  penstock::tools::invoked = argv[0];
  return penstock::tools::Main({argv + 1, argv + argc});
}
