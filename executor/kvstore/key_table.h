// A table of a key-value store: rows by 64-bit id, which are made and updated one by one. Pservers have a
// shard of its rows each, or several; LocalTable has all of them.
//
//   PENSTOCK_ASSIGN_OR_RETURN(const auto ads, KeyTable::Make({.name = "ads", .width = 16}, spec, ops));
//   PENSTOCK_ASSIGN_OR_RETURN(table::RowTable rows, ads->MakeRows(scope));
//   rows.Read(ids, -1, bytes);
//   ads->Update(gradients, 1, rows);            // the first update of the table
//
// A KeyTable does not change; it serves all shards.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "executor/kvstore/table_spec.h"
#include "executor/table/row_table.h"
#include "framework/op/op_registry.h"
#include "framework/tensor/scope.h"

namespace penstock::kvstore {

struct TableFacts {
  std::string name;
  DType dtype = DType::kFp32;
  Dim width = 1;  // elements of a row
};

class KeyTable {
 public:
  // kInvalidArgument E-kv-key-type: elements that are neither f32 nor f64. kUnimplemented
  // E-kv-table-optimizer: the optimizer changes rows that a gradient does not list.
  static Result<std::shared_ptr<const KeyTable>> Make(const TableFacts& facts, TableSpec spec,
                                                      const OpRegistry& ops);

  const TableSpec& spec() const { return spec_; }
  // Without rows. The scope gets variables of the table, and outlives it.
  Result<table::RowTable> MakeRows(Scope& scope) const;
  // Update number `count` of the table, from 1. The gradients are added in their order and used up.
  // Throws std::bad_alloc, before any row changes.
  void Update(std::span<SelectedRows* const> gradients, std::uint64_t count, table::RowTable& rows) const;

 private:
  KeyTable(TableFacts facts, TableSpec spec) : facts_(std::move(facts)), spec_(std::move(spec)) {}

  const TableFacts facts_;
  const TableSpec spec_;
  std::vector<std::string> columns_;  // the table, then the states of a row
  std::shared_ptr<const RowRule> rule_;
};

// All rows of a table, in this process. Thread-safe.
class LocalTable {
 public:
  static Result<std::unique_ptr<LocalTable>> Make(const TableFacts& facts, TableSpec spec,
                                                  const OpRegistry& ops);
  // kInvalidArgument E-kv-array: `out` or `gradients` has another type than the table, or another shape than
  // [ids, width].
  Status Lookup(std::span<const std::int64_t> ids, const Tensor& out) const;
  Status Push(std::span<const std::int64_t> ids, const Tensor& gradients);  // copied
  std::uint64_t updates() const;

 private:
  LocalTable(TableFacts facts, std::shared_ptr<const KeyTable> table)
      : facts_(std::move(facts)), table_(std::move(table)) {}
  Status Check(std::size_t ids, const Tensor& array) const;

  const TableFacts facts_;
  const std::shared_ptr<const KeyTable> table_;
  Scope scope_;
  mutable std::mutex mutex_;  // guards what follows
  std::unique_ptr<table::RowTable> rows_;
  std::uint64_t updates_ = 0;
};

}  // namespace penstock::kvstore
