// The placement plan: every decision of a transpile, as one value that is the same in every process. It can
// be printed, read back, checked and compared by its fingerprint; passes apply it and decide nothing.
//
//   plan {mode="sync", trainers=2, pservers=["10.0.0.1:6174", "10.0.0.2:6174"]}
//   param w : f32[13, 2048] grad=w@GRAD
//     rows [0, 7) on pserver 1
//     rows [7, 13) on pserver 0
//
// A parameter may carry `sparse` (its gradient is selected rows), `prefetched` (trainers ask for single rows
// instead of the whole) and `mark="@PIECE"` (its slices are w@PIECE.block0 and so on, since something is
// called w.block0). A distributed table follows the parameters, in one line: `table t : f32[10000, 16]
// grad=t@GRAD rows by id`. A slice over 1 MB says how its updates are cut: `rows [0, 4000) on pserver 0 in
// chunks of 2000`; `sent_to=[1, 0]` is compat's, see Slice. The header has `dialect="fluid-1.8"` where that
// is asked for, and `send_order=[...]` where gradients were not placed in the order of the parameters;
// `server_mode="sync"` where pservers are told another mode than the plan's, `dc_asgd_lambda=0.5` where it is
// not 1, `clip="global"` where pservers clip, `staleness=3` and `backup_trainers=1` where they are asked for,
// and `push_every=100` in geo. A parameter has `compression="two_bit 0.5"` where its gradient is compressed.
// Plans without pservers stand in ranks.h; one of mode hybrid has both: `broadcast` and `reduce` lines for
// what trainers exchange, `param` and `table` lines for the rest.
//
// Where the plan chose between the two for each parameter (exchange=auto), `exchange` lines stand first and
// say which it took and why (exchange.h).
//
// What no pserver updates but all trainers start with alike stands last: `start mean : f32[3] on pserver 1
// statistic`. Trainer 0 sends it there when it starts; `statistic` if trainers go on to write it, each its
// own.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "framework/base/status.h"
#include "framework/ir/program.h"
#include "transpiler/plan/config.h"
#include "transpiler/plan/ranks.h"

namespace penstock::plan {

// Rows [row_begin, row_end) of a parameter and its gradient, held by one pserver.
struct Slice {
  std::int64_t row_begin = 0;
  std::int64_t row_end = 0;
  int pserver = 0;
  std::int64_t chunk_rows =
      0;  // rows merged, updated and versioned together; the whole slice if it is not cut
  // compat only, where a user's dispatcher answers differently for a gradient than for its parameter: the
  // pserver that each trainer sends the gradient to, as Fluid does. Empty: to the one that holds the slice.
  std::vector<int> sent_to;
  std::int64_t rows() const { return row_end - row_begin; }
  friend bool operator==(const Slice&, const Slice&) = default;
};

struct ParamPlacement {
  std::string param;
  std::string grad;  // the variable that trainers send, without suffix
  DType dtype = DType::kFp32;
  Shape shape;
  bool sparse = false;
  bool prefetched = false;
  std::vector<Slice> slices;  // by rows, ascending
  std::string mark;           // stands before what is appended to names, where a variable has the plain one
  Compression compression;    // of its gradient, on the way to pservers
  bool sliced() const { return slices.size() > 1; }
  Shape ShapeOf(const Slice& slice) const { return shape.rank() == 0 ? shape : shape.WithRows(slice.rows()); }
  std::int64_t BytesOf(const Slice& slice) const {
    return slice.rows() * shape.RowWidth() * static_cast<std::int64_t>(SizeOf(dtype));
  }
  friend bool operator==(const ParamPlacement&, const ParamPlacement&) = default;
};

// A table of which every pserver has a shard: row r is on pserver r mod the number of pservers. Trainers ask
// for the rows of a batch and send gradients of rows.
struct TablePlacement {
  std::string table;
  std::string grad;  // selected rows, as trainers compute it
  DType dtype = DType::kFp32;
  Shape shape;
  // The most that one shard can come to hold.
  Shape ShardShape(int pservers) const { return shape.WithRows((shape[0] + pservers - 1) / pservers); }
  friend bool operator==(const TablePlacement&, const TablePlacement&) = default;
};

// One slice of one parameter, by position.
struct SliceRef {
  int param = 0;
  int slice = 0;
  friend bool operator==(const SliceRef&, const SliceRef&) = default;
};

// A variable that trainers start with alike: trainer 0's value, by way of a pserver.
struct StartValue {
  std::string name;
  DType dtype = DType::kFp32;
  Shape shape;
  int pserver = 0;
  bool statistic = false;  // written by trainers: a running statistic, not a frozen parameter
  friend bool operator==(const StartValue&, const StartValue&) = default;
};

struct PlacementPlan {
  Mode mode = Mode::kSync;
  ServerMode server_mode =
      ServerMode::kSync;  // what pservers are told; ServerModeOf(mode), but for Fluid's slips
  Dialect dialect = Dialect::kDefault;
  Clip clip = Clip::kLocal;
  int trainers = 1;
  float dc_asgd_lambda = 1.0f;
  std::optional<int> staleness;          // as in TranspileConfig
  int backup_trainers = 0;               // likewise
  OnUneven on_uneven = OnUneven::kNone;  // likewise
  int push_every = 0;                    // geo: steps between two sends of one trainer
  std::vector<std::string> pservers;
  std::vector<ParamPlacement> params;
  // Positions in params: the order in which gradients were placed on pservers.
  std::vector<int> send_order;
  std::vector<TablePlacement> tables;
  std::vector<ExchangeChoice> exchanges;  // of all trained parameters, where the plan chose; else empty
  RankPlan ranks;                         // instead of pservers and params, or beside them (ranks.h)
  std::vector<StartValue> start_values;   // by name

  const Slice& slice(SliceRef ref) const { return params[Index(ref.param)].slices[Index(ref.slice)]; }
  const ParamPlacement& param(SliceRef ref) const { return params[Index(ref.param)]; }
  // In the order in which they were placed.
  std::vector<SliceRef> SlicesOn(int pserver) const;
  std::vector<std::string> AddressesOf(const ParamPlacement& param) const;  // one a slice
  // Where a trainer sends the gradient, one a slice: the same, but for `sent_to`.
  std::vector<std::string> SendAddressesOf(const ParamPlacement& param, int trainer) const;
  friend bool operator==(const PlacementPlan&, const PlacementPlan&) = default;

 private:
  static std::size_t Index(int i) { return static_cast<std::size_t>(i); }
};

std::string PrintPlan(const PlacementPlan& plan);
// kInvalidArgument E-plan-text names the line.
Result<PlacementPlan> ParsePlan(std::string_view text);

// The hash of the printed form: what processes compare before they start.
std::uint64_t Fingerprint(const PlacementPlan& plan);

// The plan alone: ranks or slices make sense, slices tile each parameter's rows exactly once and in order,
// pservers exist, no name or address stands twice, the send order is a permutation, each parameter is where
// its `exchange` line says. E-plan-*.
Status ValidatePlan(const PlacementPlan& plan);
// And against the program it is for: parameters and gradients are declared there with these types, and no
// variable of the program is in the way of a slice's name.
Status ValidatePlan(const PlacementPlan& plan, const Program& main);

}  // namespace penstock::plan
