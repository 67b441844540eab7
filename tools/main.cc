// penstock: what can be done with programs from a command line.
#include <algorithm>
#include <iostream>

#include "framework/runtime/core_threads.h"
#include "tools/command.h"
#include "tools/flags.h"

namespace penstock::tools {
namespace {

const std::vector<Command>& Commands() {
  static const std::vector<Command> commands = {
      {"convert",
       "A B",
       "writes program A as B; the names tell the form: .pb .pb.gz .pdmodel __model__ .ir .json",
       {},
       RunConvert},
      {"show", "F", "prints program F for reading, with defaults omitted", {"full"}, RunShow},
      {"diff", "A B", "compares two programs, or two folders of role programs, op for op", {}, RunDiff},
      {"transpile",
       "--main F --startup F --config F --out DIR [--steps DIR]",
       "writes the programs of all roles, and the plan",
       {"main", "startup", "facts", "config", "compat", "split_method", "slicing", "clip", "staleness",
        "backup_trainers", "compression", "exchange", "exchange_gbit", "exchange_message_us", "on_uneven",
        "steps", "out"},
       RunTranspile},
      {"memory_optimize",
       "A B",
       "writes program A as B with buffers reused, and prints what that saves",
       {"keep", "level", "skip_grads"},
       RunMemoryOptimize},
      {"release_memory",
       "A B",
       "writes program A as B with a delete_var behind the last use of each temporary",
       {"keep"},
       RunReleaseMemory},
      {"plan",
       "DIR | --main F --startup F --config F",
       "says what a job's processes hold and send, how well it is spread, and what to expect on a network",
       {"main",          "startup",
        "facts",         "config",
        "compat",        "split_method",
        "slicing",       "clip",
        "staleness",     "backup_trainers",
        "compression",   "exchange",
        "exchange_gbit", "exchange_message_us",
        "on_uneven",     "rows_per_step",
        "batch",         "steps_per_exchange",
        "net",           "step_ms",
        "message_us",    "pieces",
        "json",          "dot"},
       RunPlan},
      {"check",
       "DIR [--main F --startup F [--facts F]]",
       "proves that the role programs in a folder fit together and, if these are given, compose to them",
       {"main", "startup", "facts"},
       RunCheck},
      {"plot",
       "LOG [--out FILE] [--text]",
       "draws the progress lines of a trainer's log (launch --progress SECONDS): a PNG where matplotlib is, "
       "else "
       "bars",
       {},
       RunPlot},
      {"top",
       "DIR | HOST:PORT ...",
       "shows what the processes of a running job do: a table from the /metrics of all whose addresses are "
       "in "
       "the log folder DIR (launch --metrics 0), or of those given, again and again until none answers",
       {"once", "every_s"},
       RunTop},
  };
  return commands;
}

void PrintUsage(std::ostream& out, const Command& command) {
  out << "penstock " << command.name << " " << command.arguments << "\n  " << command.does << "\n"
      << FlagHelp(command);
}

void PrintUsage(std::ostream& out) {
  out << "usage: penstock COMMAND [flags] arguments; penstock COMMAND --help for one of them\n\n";
  for (const Command& command : Commands()) PrintUsage(out, command);
  out << "\nExit codes are listed in README.md, section \"Exit codes\".\n";
}

bool AsksForHelp(const std::string& argument) { return argument == "--help" || argument == "-h"; }

int Main(const Arguments& arguments) {
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
    if (command.run == RunPlot)
      return RunPlot({arguments.begin() + 1, arguments.end()});  // has its own flags
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
std::string invoked;  // written once, by main
}

const std::string& Invoked() { return invoked; }

ThreadPool& Threads() {
  static CoreThreads threads;
  return threads;
}

int BadInput(const Status& status) {
  std::string line = status.message();  // one line, whatever stands in the file it speaks of
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
