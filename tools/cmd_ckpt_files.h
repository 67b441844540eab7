// penstock ckpt export, ckpt import.
#pragma once

#include <string>

#include "executor/checkpoint/folder.h"

namespace penstock::tools {

// Writes the checkpoint's variables to files in the folder, as --numpy, --safetensors, --part_mb, --since and
// --states say.
int ExportCheckpoint(const checkpoint::Found& found, const std::string& out);
// Makes a checkpoint in `to` of a folder of save_persistables, as --main and --step say.
int ImportCheckpoint(const std::string& folder, const std::string& to);

}  // namespace penstock::tools
