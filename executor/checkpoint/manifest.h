// What a part of a checkpoint contains: each pserver of a job writes one part for each step that is saved, a
// file of values and a manifest that describes them.
//
//   {"format": 1, "step": 5, "server": 0, "servers": 2, "trainers": 2, "run": "job7.0", "plan": "5f3a91c2..",
//    "bytes": 4312,
//    "values": [{"name": "w.block0", "kind": "param", "of": "w", "whole": "w", "row_begin": 0,
//                "type": "f32[7, 13]", "offset": 0, "bytes": 395, "crc32c": 3405691582}, ...],
//    "crc32c": 123456}
//
// The values are records of tensor/serialize.h, one after the other, from offset 0 to `bytes`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "framework/base/status.h"
#include "framework/tensor/shape.h"

namespace penstock::checkpoint {

enum class ValueKind {
  kParam,     // a parameter, or the rows of it that this server holds
  kState,     // what its updates keep, such as moments
  kConstant,  // what its updates only read, such as a learning rate
  kSchedule,  // what the learning-rate schedule keeps
  kHistory,   // updates of a table that some of its rows still miss: its values are not current without them
  kPolicy,    // what the policy of a table's rows keeps, also of rows that have not entered
};

struct ValueEntry {
  std::string name;  // the server's variable
  ValueKind kind = ValueKind::kParam;
  std::string of;     // the whole parameter to which it belongs; empty: kSchedule, or not recorded
  std::string whole;  // the whole variable of which it has some rows; empty: not recorded, or it is the whole
  std::optional<Dim> row_begin;  // its first row in that variable; nullopt: not recorded
  bool rows = false;             // selected rows, with their ids: a table sharded by id
  std::string type;              // "f32[7, 13]"
  std::uint64_t offset = 0, bytes = 0;
  std::uint32_t crc32c = 0;  // of these bytes
};

struct Manifest {
  std::uint64_t step = 0;       // the number of complete steps
  int server = 0, servers = 1;  // the number of the server that wrote it, of so many
  int trainers = 1;
  std::string run;          // the start of the job that wrote it; equal in all parts of a checkpoint
  std::uint64_t plan = 0;   // plan::Fingerprint; 0: not recorded
  std::uint64_t bytes = 0;  // of the file of values
  std::vector<ValueEntry> values;
};

std::string WriteManifest(const Manifest& manifest);
// kDataLoss E-checkpoint-manifest: these bytes are no manifest, or were changed after they were written.
Result<Manifest> ReadManifest(std::string_view text);

std::string_view KindName(ValueKind kind);

}  // namespace penstock::checkpoint
