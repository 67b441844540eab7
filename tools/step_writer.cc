#include "tools/step_writer.h"

#include <filesystem>
#include <vector>

#include "framework/base/files.h"
#include "framework/verify/show_options.h"
#include "operators/all_ops.h"

namespace penstock::tools {

namespace {

// Creates the folder, and removes the steps of an earlier call from it.
Status Begin(const std::filesystem::path& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  std::vector<std::filesystem::path> steps;
  if (!error) {
    for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
      if (entry.path().extension() == ".ir") steps.push_back(entry.path());
    }
  }
  for (const auto& path : steps) {
    if (!error) std::filesystem::remove(path, error);
  }
  return error ? InvalidArgument("E-file-write", folder.string(), ": ", error.message()) : OkStatus();
}

}  // namespace

void StepWriter::WriteStep(const std::string& role, std::string_view pass, const Program& program) {
  const int number = written_[role]++;
  const auto folder = std::filesystem::path(folder_) / role;
  if (number == 0) status_ = Begin(folder);
  if (!status_.ok()) return;
  const std::string name = StrCat(number < 10 ? "0" : "", number, "_", pass, ".ir");
  status_ = WriteFile((folder / name).string(), PrintProgram(program, ShowOptions(AllOps())));
}

void StepWriter::Write(const PassEvent& event) {
  const std::string role = event.RoleName();
  if (status_.ok() && !written_.contains(role)) WriteStep(role, "source", event.before);
  if (status_.ok()) WriteStep(role, event.pass, event.after);
}

}  // namespace penstock::tools
