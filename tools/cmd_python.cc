// penstock plot, penstock doctor, penstock scale: commands in Python. plot draws by matplotlib; doctor looks
// at the package; scale talks to a launcher.
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "framework/base/strings.h"
#include "tools/command.h"

namespace penstock::tools {
namespace {

namespace fs = std::filesystem;

// The Python interpreter in the folder of this command, as in a virtual environment; otherwise python3 on
// PATH.
std::string Python() {
  std::error_code none;
  const fs::path named(Invoked());
  if (named.has_parent_path() && fs::exists(named.parent_path() / "python", none)) {
    return (named.parent_path() / "python").string();
  }
  return "python3";
}

// Replaces this process by `python -m MODULE arguments`; returns only if that fails.
int RunModule(const std::string& name, const Arguments& arguments, const std::string& folder = "penstock.") {
  std::vector<std::string> command = {Python(), "-m", folder + name};
  command.insert(command.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (std::string& argument : command) argv.push_back(argument.data());
  argv.push_back(nullptr);
  execvp(argv[0], argv.data());
  return BadInput(InvalidArgument("E-usage", name, ": ", command[0], ": ", std::strerror(errno)));
}

}  // namespace

int RunDoctor(const Arguments& arguments) { return RunModule("doctor", arguments); }
int RunPlot(const Arguments& arguments) { return RunModule("plot", arguments); }
int RunScale(const Arguments& arguments) {
  return RunModule("scale_command", arguments, "penstock._src.launch.");
}

}  // namespace penstock::tools
