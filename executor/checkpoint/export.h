// Writes the variables of a checkpoint to files that other programs read, and reads them back.
//
//   PENSTOCK_RETURN_IF_ERROR(ExportFluid(disk, reader, "model"));      // as fluid.io.save_persistables
//   PENSTOCK_RETURN_IF_ERROR(ExportNumpy(disk, reader, "arrays"));     // arrays/w.npy
//   ImportFluid(disk, "model", {{"w", {.kind = ValueKind::kParam}}})   // values for a Writer
//
// A variable's file has its name; a name with slashes leads to subfolders.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "executor/checkpoint/reader.h"
#include "framework/base/status.h"
#include "framework/runtime/disk.h"

namespace penstock::checkpoint {

// One file of each whole variable. A table's rows lie in __lookup_table__/NAME_0, NAME_1, ..., as its
// pservers had them, with what its updates keep in NAME_0.state, ...: `load_persistables` of a pserver's
// program reads them. kFailedPrecondition E-checkpoint-target: the folder is not empty. kInvalidArgument
// E-file-outside: a name leads out of it. kUnimplemented E-checkpoint-history: rows of a table miss updates.
// E-checkpoint-rows, E-checkpoint-damaged, E-file-write.
Status ExportFluid(Disk& disk, const Reader& reader, const std::string& folder);
// One NAME.npy of each; of a table and each state of its rows the rows by ascending id, and their ids in
// NAME.ids.npy. The same errors.
Status ExportNumpy(Disk& disk, const Reader& reader, const std::string& folder);

// Of any export: the folder is empty, or made; no row of a table misses updates, so its values are those that
// a lookup returns. The errors above.
Status RequireEmptyFolder(Disk& disk, const std::string& folder);
Status RequireCurrent(const Reader& reader);

struct Described {
  ValueKind kind = ValueKind::kParam;
  std::string of = {};    // the parameter to which it belongs
  bool optional = false;  // it may have no file
};
// The values of these variables, by name, from a folder of save_persistables. kDataLoss
// E-checkpoint-import: a file is missing, damaged, or holds more than its variable. E-file-outside.
Result<std::vector<Value>> ImportFluid(Disk& disk, const std::string& folder,
                                       const std::map<std::string, Described>& variables);

}  // namespace penstock::checkpoint
