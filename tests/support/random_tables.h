// Adds lookups of sparse tables to a random network.
#pragma once

#include <array>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/network_builder.h"

namespace penstock::test {

// An activation: [?, width].
struct Activation {
  std::string name;
  Dim width = 1;
};

// Makes lookups of one or several tables, several lookups of one table, ids of all shapes, and ids that are
// the result of another lookup.
class Tables {
 public:
  Tables(NetworkBuilder& builder, const NetworkOptions& options) : b_(builder), options_(options) {}

  // Adds the lookups; returns their results.
  std::vector<Activation> Add() {
    for (int n = b_.draw().Between(1, 2); n > 0; --n) {
      const Table table = New(b_.draw().Of(std::array<Dim, 4>{1, 8, 32, 513}));
      for (int uses = b_.draw().Between(1, 3); uses > 0; --uses) AddLookup(table);
      if (options_.sparse_layers && b_.draw().OneIn(3)) AddInBlock(table);
      if (b_.draw().OneIn(3)) AddChain(table);
    }
    return std::move(rows_);
  }

 private:
  struct Table {
    std::string param;
    Dim rows = 1;
    Dim width = 1;
    bool distributed = false;
  };

  Table New(Dim width) {
    const Dim rows = options_.runnable ? b_.draw().Of(std::array<Dim, 4>{1, 7, 30, 200})
                                       : b_.draw().Of(std::array<Dim, 5>{1, 7, 1000, 8193, 100003});
    return {b_.Table({rows, width}), rows, width, b_.draw().OneIn(3)};
  }

  Op Lookup(const Table& table, const std::string& type, const std::string& ids, const std::string& out) {
    Op op(type);
    op.AddInput("W", {table.param}).AddInput("Ids", {ids}).AddOutput("Out", {out});
    op.Set("is_sparse", true).Set("is_distributed", table.distributed);
    op.Set("remote_prefetch", !table.distributed);
    return std::move(op.Set("padding_idx", b_.draw().OneIn(3) ? std::int64_t{0} : std::int64_t{-1}));
  }

  std::string Look(const Table& table, const std::string& type, const std::string& ids) {
    const std::string out = b_.Temporary("embedding.tmp");
    Must(b_.main().Append(Lookup(table, type, ids, out)));
    return out;
  }

  std::string Ids(const Table& table, Shape shape) {
    return b_.Integers("ids", std::move(shape), table.rows);
  }

  void AddLookup(const Table& table) {
    switch (b_.draw().Below(4)) {
      case 0:
        return Live(Look(table, "lookup_table", Ids(table, {kUnknownDim, 1})), table.width);
      case 1:
        return Live(Look(table, "lookup_table_v2", Ids(table, {kUnknownDim})), table.width);
      case 2:
        return Flat(Look(table, "lookup_table", Ids(table, {kUnknownDim, 3, 1})), 3 * table.width);
      default:
        return Flat(Look(table, "lookup_table_v2", Ids(table, {kUnknownDim, 3})), 3 * table.width);
    }
  }

  // A lookup in the block of a conditional_block, whose condition holds.
  void AddInBlock(const Table& table) {
    const std::string ids = Ids(table, {kUnknownDim, 1});
    const std::string holds = b_.Temporary("holds.tmp"), out = b_.Temporary("chosen.tmp");
    Must(b_.main().Append(Op("fill_constant")
                              .AddOutput("Out", {holds})
                              .Set("shape", std::vector<std::int64_t>{1})
                              .Set("dtype", static_cast<std::int32_t>(DType::kBool))
                              .Set("value", 1.0f)));
    Program& program = b_.main().program();
    program.MutableBlock(0).SetVar(TensorVar(out, DType::kFp32, {kUnknownDim, table.width}));
    const std::string scopes = b_.names().Generate("scopes.tmp");
    program.MutableBlock(0).SetVar(Var{.name = scopes, .kind = VarKind::kStepScopes});
    const std::string rows = b_.names().Generate("rows.tmp");
    Block& inner = program.AddBlock(0);
    const int index = inner.index();
    inner.SetVar(TensorVar(rows, DType::kFp32, {kUnknownDim, table.width}));
    inner.Append(Lookup(table, "lookup_table", ids, rows));
    inner.Append(Op("assign").AddInput("X", {rows}).AddOutput("Out", {out}));
    Must(b_.main().Append(Op("conditional_block")
                              .AddInput("Cond", {holds})
                              .AddInput("Input", {table.param, ids})
                              .AddOutput("Out", {out})
                              .AddOutput("Scope", {scopes})
                              .Set("sub_block", BlockRef{index})
                              .Set("is_scalar_condition", true)));
    Live(out, table.width);
  }

  // A lookup whose ids are rows of one element, of the same table or of another.
  void AddChain(const Table& table) {
    const Table first = table.width == 1 ? table : New(1);
    const std::string row = Look(first, "lookup_table", Ids(first, {kUnknownDim, 1}));
    const std::string ids = b_.Temporary("cast.tmp");
    // If the program is to run, every id is 0, whatever the rows hold.
    const std::string id = options_.runnable ? b_.Apply("scale", {row}, {{"scale", 0.0f}}) : row;
    Must(b_.main().Append(Op("cast")
                              .AddInput("X", {id})
                              .AddOutput("Out", {ids})
                              .Set("in_dtype", static_cast<std::int32_t>(DType::kFp32))
                              .Set("out_dtype", static_cast<std::int32_t>(DType::kInt64))));
    if (b_.draw().Below(3) != 0) Live(row, 1);  // otherwise it gets no gradient, because ids have none
    Live(Look(table, "lookup_table", ids), table.width);
  }

  void Live(const std::string& name, Dim width) { rows_.push_back({name, width}); }
  void Flat(const std::string& rows, Dim width) {
    const std::string flat = b_.Temporary("flatten2.tmp");
    Must(b_.main().Append(Op("flatten2")
                              .AddInput("X", {rows})
                              .AddOutput("Out", {flat})
                              .AddOutput("XShape", {b_.Temporary("flatten2.shape")})
                              .Set("axis", 1)));
    Live(flat, width);
  }

  NetworkBuilder& b_;
  const NetworkOptions& options_;
  std::vector<Activation> rows_;
};

}  // namespace penstock::test
