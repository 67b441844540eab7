// The names and contents of the files of a Fluid folder (save_persistables).
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "framework/base/status.h"
#include "framework/tensor/tensor.h"

namespace penstock::checkpoint {

// The file of a variable in a folder. kInvalidArgument E-file-outside.
Result<std::string> FileOf(const std::string& folder, const std::string& name);
// The rows of a table that its pserver number `shard` has; StateOf(it) is the file of what its updates keep.
Result<std::string> ShardOf(const std::string& folder, const std::string& table, int shard);
inline std::string StateOf(const std::string& shard) { return shard + ".state"; }

// A list of tensors with names: the first record holds the names of the others, one per line.
using NamedList = std::vector<std::pair<std::string, Tensor>>;
std::string WriteNamed(const NamedList& tensors);
// kDataLoss E-checkpoint-import; `path` is for the message.
Result<NamedList> ReadNamed(const std::string& path, const std::string& bytes);

}  // namespace penstock::checkpoint
