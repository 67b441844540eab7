// penstock plot: plots the progress lines of a log. Runs penstock.plot, which is in Python for matplotlib.
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

}  // namespace

int RunPlot(const Arguments& arguments) {
  std::vector<std::string> command = {Python(), "-m", "penstock.plot"};
  command.insert(command.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (std::string& argument : command) argv.push_back(argument.data());
  argv.push_back(nullptr);
  execvp(argv[0], argv.data());
  return BadInput(InvalidArgument("E-usage", "plot: ", command[0], ": ", std::strerror(errno)));
}

}  // namespace penstock::tools
