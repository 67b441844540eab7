// Reads variables of a whole checkpoint from whichever parts hold their rows: a job may continue on another
// number of pservers, with other slices in other places.
//
//   PENSTOCK_ASSIGN_OR_RETURN(const Reader reader, Reader::Make(disk, found));
//   reader.Find("w")->shape;                                      // [13, 8], over all pservers
//   reader.ReadRows({.whole = "w", .row_begin = 7, .type = DType::kFp32, .shape = {6, 8}});
//   reader.ReadTable("t", -1, [](std::int64_t id) { return id % 2 == 0; });
//
// Only the values that hold the requested rows are read, each whole, and verified. Thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "executor/checkpoint/folder.h"
#include "executor/checkpoint/manifest.h"
#include "framework/base/status.h"
#include "framework/runtime/disk.h"
#include "framework/tensor/tensor.h"
#include "framework/tensor/variable.h"

namespace penstock::checkpoint {

// A variable as the user's program names it, over all parts.
struct Whole {
  struct Piece {
    std::size_t part = 0;
    const ValueEntry* entry = nullptr;
    DType type = DType::kFp32;
    Shape shape;
    Dim begin = 0;  // its first row in the whole
    Dim end() const { return begin + (shape.rank() == 0 ? 1 : shape[0]); }
  };
  ValueKind kind = ValueKind::kParam;
  std::string of;     // the parameter to which it belongs; empty: none, or not recorded
  bool rows = false;  // a table sharded by id, or its state; then `shape` has the stored rows of all parts
  DType type = DType::kFp32;
  Shape shape;
  std::vector<Piece> pieces;  // by first row, then by part
};

class Reader {
 public:
  // `found` must be whole. kDataLoss E-checkpoint-rows: the parts contradict each other.
  static Result<Reader> Make(Disk& disk, Found found);
  Reader(Reader&&) = default;
  Reader& operator=(Reader&&) = default;

  const Found& found() const { return found_; }
  const std::map<std::string, Whole>& wholes() const { return wholes_; }
  const Whole* Find(const std::string& name) const;

  // What a pserver holds.
  struct Need {
    std::string name = {};  // the pserver's variable
    std::string whole;      // of which it has `shape` from row_begin on
    Dim row_begin = 0;
    std::optional<Dim> whole_rows = {};  // of the whole variable here; nullopt: not known
    DType type = DType::kFp32;
    Shape shape;
    // The part of the same pserver in a job with as many pservers: if it has the variable with these rows, or
    // does not record which rows it has, it is read and the others are not. -1: none.
    int own_part = -1;
  };
  bool Has(const Need& need) const { return OwnEntry(need) != nullptr || Find(need.whole) != nullptr; }
  // Requires Has. kFailedPrecondition E-checkpoint-differs: it has another type, or lacks some of the rows.
  // kDataLoss E-checkpoint-rows: pservers saved different values of the same rows. E-checkpoint-damaged.
  Result<Tensor> ReadRows(const Need& need) const;
  // The rows of these ids, by ascending id. `own_part` as above: it is read alone if it has rows and each is
  // of these ids.
  Result<SelectedRows> ReadTable(const std::string& name, int own_part,
                                 const std::function<bool(std::int64_t)>& wanted) const;
  // The whole variable: a tensor, or all rows of a table. `name` must be in wholes().
  Result<Variable> ReadWhole(const std::string& name) const;

 private:
  Reader(Disk& disk, Found found) : disk_(&disk), found_(std::move(found)) {}
  Status Add(std::size_t part, const ValueEntry& entry);
  Result<Variable> Read(const Whole::Piece& piece) const;
  const ValueEntry* OwnEntry(const Need& need) const;
  Status CheckType(const Need& need, const Whole& whole) const;
  Status CopyRows(const Need& need, const Whole& whole, Tensor& to) const;

  Disk* disk_;
  Found found_;  // wholes_ points into it
  std::map<std::string, Whole> wholes_;
};

}  // namespace penstock::checkpoint
