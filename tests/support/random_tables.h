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
  explicit Tables(NetworkBuilder& builder) : b_(builder) {}

  // Adds the lookups; returns their results.
  std::vector<Activation> Add() {
    for (int n = b_.draw().Between(1, 2); n > 0; --n) {
      const Table table = New(b_.draw().Of(std::array<Dim, 4>{1, 8, 32, 513}));
      for (int uses = b_.draw().Between(1, 3); uses > 0; --uses) AddLookup(table);
      if (b_.draw().OneIn(3)) AddChain(table);
    }
    return std::move(rows_);
  }

 private:
  struct Table {
    std::string param;
    Dim width = 1;
    bool distributed = false;
  };

  Table New(Dim width) {
    const Dim rows = b_.draw().Of(std::array<Dim, 5>{1, 7, 1000, 8193, 100003});
    return {b_.Table({rows, width}), width, b_.draw().OneIn(3)};
  }

  std::string Look(const Table& table, const std::string& type, const std::string& ids) {
    const std::string out = b_.Temporary("embedding.tmp");
    Op op(type);
    op.AddInput("W", {table.param}).AddInput("Ids", {ids}).AddOutput("Out", {out});
    op.Set("is_sparse", true).Set("is_distributed", table.distributed);
    op.Set("remote_prefetch", !table.distributed);
    op.Set("padding_idx", b_.draw().OneIn(3) ? std::int64_t{0} : std::int64_t{-1});
    Must(b_.main().Append(std::move(op)));
    return out;
  }

  std::string Ids(Shape shape) {
    return b_.Data(b_.names().Generate("ids"), std::move(shape), DType::kInt64);
  }

  void AddLookup(const Table& table) {
    switch (b_.draw().Below(4)) {
      case 0:
        return Live(Look(table, "lookup_table", Ids({kUnknownDim, 1})), table.width);
      case 1:
        return Live(Look(table, "lookup_table_v2", Ids({kUnknownDim})), table.width);
      case 2:
        return Flat(Look(table, "lookup_table", Ids({kUnknownDim, 3, 1})), 3 * table.width);
      default:
        return Flat(Look(table, "lookup_table_v2", Ids({kUnknownDim, 3})), 3 * table.width);
    }
  }

  // A lookup whose ids are rows of one element, of the same table or of another.
  void AddChain(const Table& table) {
    const Table first = table.width == 1 ? table : New(1);
    const std::string row = Look(first, "lookup_table", Ids({kUnknownDim, 1}));
    const std::string ids = b_.Temporary("cast.tmp");
    Must(b_.main().Append(Op("cast")
                              .AddInput("X", {row})
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
  std::vector<Activation> rows_;
};

}  // namespace penstock::test
