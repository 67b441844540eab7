// The checkpoints of a job in one folder:
//
//   DIR/step-5/part-0-of-2.values   DIR/step-5/part-0-of-2.json     of the first of two servers
//   DIR/step-5/part-1-of-2.values   DIR/step-5/part-1-of-2.json
//   DIR/step-10/part-0-of-2.rows-5  DIR/step-10/part-0-of-2.rows-10      rows that are saved incrementally
//   DIR/step-5/trainer-0-of-2.values   DIR/step-5/trainer-0-of-2.json    of a trainer of geo-SGD
//
// A part is there when its manifest is; a checkpoint is whole when all its parts are there and belong to one
// run of the job. A server writes the manifest last, so a crash leaves a checkpoint that is not whole, beside
// the earlier ones.
//
//   PENSTOCK_ASSIGN_OR_RETURN(const std::vector<Found> found, FindCheckpoints(disk, "DIR"));
//   found.back().step, found.back().lacks       // 10, "part 1 of 2 is missing"
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "executor/checkpoint/manifest.h"
#include "framework/base/status.h"
#include "framework/runtime/disk.h"
#include "framework/tensor/variable.h"

namespace penstock::checkpoint {

std::string StepFolder(const std::string& folder, std::uint64_t step);  // "DIR/step-5"
std::string PartName(int server, int servers);                          // "part-0-of-2"
std::string ValuesFile(const std::string& step_folder, int server, int servers);
std::string ManifestFile(const std::string& step_folder, int server, int servers);
// The same of any part, also of a trainer's: "trainer-0-of-2".
std::string PartName(const Manifest& part);
std::string ValuesFile(const std::string& step_folder, const Manifest& part);
std::string ManifestFile(const std::string& step_folder, const Manifest& part);
// "part-0-of-2.rows-5": rows of tables that were written at step 5 (Manifest::files).
std::string RowsFileName(int server, int servers, std::uint64_t step);

struct Found {
  std::uint64_t step = 0;
  std::string folder;
  std::vector<Manifest> parts;          // by server, if all of these are there
  std::vector<Manifest> trainers = {};  // of geo-SGD, by trainer, if it is whole
  std::string lacks;                    // why it is not whole; empty: it is
  bool whole() const { return lacks.empty(); }
};

// The checkpoints in the folder by step, whole or not, judged by manifests and sizes. Empty if there is no
// such folder. E-file-read.
Result<std::vector<Found>> FindCheckpoints(Disk& disk, const std::string& folder);
// Those after this step.
Result<std::vector<Found>> FindCheckpoints(Disk& disk, const std::string& folder, std::uint64_t after);

// The newest whole checkpoint; nullopt if the folder has none at all. kDataLoss E-checkpoint-whole: there are
// some, and none is whole.
Result<std::optional<std::uint64_t>> NewestWhole(Disk& disk, const std::string& folder);

// The whole checkpoint of this step. kDataLoss E-checkpoint-whole: there is none.
Result<Found> FindWhole(Disk& disk, const std::string& folder, std::uint64_t step);
// E-checkpoint-differs: the checkpoint in this folder of a step is of another job; `how` completes the
// sentence.
Status DiffersFrom(const std::string& step_folder, const std::string& how);

struct Value {
  ValueEntry entry;
  Variable value;
  // Of rows, for Writer: whether later parts may have only those that change.
  enum class Rows { kAlone, kBase, kChanges } saved_as = Rows::kAlone;
  // For Writer, of a portion of such rows: how many rows there are that no other portion counts, whether they
  // have changed or not. nullopt: entry.type says it.
  std::optional<Dim> rows_all = {};
  // Of kChanges: the ids whose rows are gone since then, unless a portion has a row of them.
  std::vector<std::int64_t> gone = {};
};

// What the files of a part lack, such as "lacks its values"; empty: nothing.
std::string WhatFilesLack(Disk& disk, const std::string& step_folder, const Manifest& part);
// Where a value is: one record, or those of its rows by step.
std::vector<Record> RecordsOf(const Manifest& part, const ValueEntry& entry);
// The place of a record's step among those of the part: that of its file in Manifest::files.
std::size_t StepOfRecord(const Manifest& part, const Record& record);
// One record of rows, whose bytes are verified; one of rows that are gone. The errors of ReadPart.
Result<SelectedRows> ReadRows(Disk& disk, const std::string& step_folder, const ValueEntry& entry,
                              const Record& record);
Result<std::vector<std::int64_t>> ReadGone(Disk& disk, const std::string& step_folder,
                                           const ValueEntry& entry, const Record& record);
// One value of a part, whose bytes are read and verified whole; its records are put together. The errors of
// ReadPart.
Result<Variable> ReadValue(Disk& disk, const std::string& step_folder, const Manifest& part,
                           const ValueEntry& entry);
// The values of one part. kDataLoss E-checkpoint-damaged: the bytes are not those that were written.
Result<std::vector<Value>> ReadPart(Disk& disk, const std::string& step_folder, const Manifest& part);
// Reads all bytes of a whole checkpoint and compares the checksums. The same error.
Status VerifyCheckpoint(Disk& disk, const Found& found);

}  // namespace penstock::checkpoint
