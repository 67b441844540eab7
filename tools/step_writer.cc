#include "tools/step_writer.h"

#include <filesystem>

#include "framework/base/files.h"
#include "framework/verify/show_options.h"
#include "operators/all_ops.h"

namespace penstock::tools {

void StepWriter::WriteStep(const std::string& role, std::string_view pass, const Program& program) {
  const int number = written_[role]++;
  const auto folder = std::filesystem::path(folder_) / role;
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) {
    status_ = InvalidArgument("E-file-write", folder.string(), ": ", error.message());
    return;
  }
  const std::string name = StrCat(number < 10 ? "0" : "", number, "_", pass, ".ir");
  status_ = WriteFile((folder / name).string(), PrintProgram(program, ShowOptions(AllOps())));
}

void StepWriter::Write(const PassEvent& event) {
  const std::string role = event.RoleName();
  if (status_.ok() && !written_.contains(role)) WriteStep(role, "source", event.before);
  if (status_.ok()) WriteStep(role, event.pass, event.after);
}

}  // namespace penstock::tools
