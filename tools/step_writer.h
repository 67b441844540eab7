// Writes the program after each pass, as text: what `penstock transpile --steps DIR` leaves behind.
//
//   DIR/trainer_0/00_source.ir            what the first pass was given
//   DIR/trainer_0/01_keep_clipping.ir     and what each pass made of it
//   DIR/pserver_startup_1/...             one folder a role program
#pragma once

#include <map>
#include <string>

#include "framework/base/status.h"
#include "transpiler/pipeline/pass_manager.h"

namespace penstock::tools {

class StepWriter {
 public:
  // Folders are made, and emptied of earlier steps, when something is written.
  explicit StepWriter(std::string folder) : folder_(std::move(folder)) {}

  void Write(const PassEvent& event);
  // Of the first file that could not be written.
  const Status& status() const { return status_; }

 private:
  void WriteStep(const std::string& role, std::string_view pass, const Program& program);

  std::string folder_;
  std::map<std::string, int> written_;  // files of each role
  Status status_;
};

}  // namespace penstock::tools
