// What a table of a key-value store is made of, as a value and as text, which travels to the servers: the
// initial values of its rows, the policy of its rows, and the optimizer that updates them.
//
//   PENSTOCK_ASSIGN_OR_RETURN(const TableSpec spec, ParseTableSpec(text));
//   spec.start.RowsOf("ads", DType::kFp32)->Make(4711, width, row);    // the initial values of row 4711
//
// The text has three lines:
//
//   uniform -0.01 0.01 seed 7               constant, uniform or normal; two numbers; the seed
//   entry count 3, evict unseen 1000        a RowPolicy; may be empty
//   adam {beta1=0.9, ...}                   a KeyOptimizer
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "executor/kvstore/optimizer.h"
#include "framework/base/status.h"
#include "framework/tensor/row_start.h"
#include "framework/text/row_policy.h"

namespace penstock::kvstore {

struct TableStart {
  enum class Kind { kConstant, kUniform, kNormal };
  Kind kind = Kind::kConstant;
  // The constant (and 0); the bounds; or the mean and the standard deviation.
  double first = 0, second = 0;
  std::uint64_t seed = 0;

  // The rows of a table of floats (`dtype` kFp32) or doubles. A row is a function of its id, of the seed and
  // of the table's name. Null: all values are 0.
  std::shared_ptr<const RowStart> RowsOf(std::string_view table, DType dtype) const;
  friend bool operator==(const TableStart&, const TableStart&) = default;
};
// kInvalidArgument E-kv-table-start: an unknown kind, or numbers that are not finite or not in order.
Result<TableStart> MakeTableStart(std::string_view kind, double first, double second, std::uint64_t seed);

struct TableSpec {
  TableStart start;
  RowPolicy policy;
  KeyOptimizer optimizer;

  std::string ToString() const;
  friend bool operator==(const TableSpec&, const TableSpec&) = default;
};
// kInvalidArgument: E-text-syntax, and errors of MakeTableStart, ParseRowPolicy and ParseOptimizer.
Result<TableSpec> ParseTableSpec(std::string_view text);

}  // namespace penstock::kvstore
