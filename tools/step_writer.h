// Writes the program after each pass as text, for `penstock transpile --steps DIR`.
//
//   DIR/trainer_0/00_source.ir            the input of the first pass
//   DIR/trainer_0/01_keep_clipping.ir     the output of each pass
//   DIR/pserver_startup_1/...             one folder per role program
#pragma once

#include <map>
#include <string>

#include "framework/base/status.h"
#include "transpiler/pipeline/pass_manager.h"

namespace penstock::tools {

class StepWriter {
 public:
  // The first write to a folder creates it, or removes the *.ir files of an earlier call.
  explicit StepWriter(std::string folder) : folder_(std::move(folder)) {}

  void Write(const PassEvent& event);
  // The error of the first file that could not be written.
  const Status& status() const { return status_; }

 private:
  void WriteStep(const std::string& role, std::string_view pass, const Program& program);

  std::string folder_;
  std::map<std::string, int> written_;  // number of files written per role
  Status status_;
};

}  // namespace penstock::tools
