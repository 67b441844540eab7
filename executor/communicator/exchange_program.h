// The exchanges of a geo-SGD trainer with its servers, as a program. The trainer's own programs do not
// describe them: in Fluid the communicator is told which rows of a parameter are on which server.
//
//   const GeoSettings settings{.trainers = 2, .push_every = 100,
//                              .variables = {{.name = "w", .pieces = {{"w.block0", "10.0.0.1:6174", 7},
//                                                                     {"w.block1", "10.0.0.2:6174", 6}}}}};
//   PENSTOCK_ASSIGN_OR_RETURN(const Program exchange, ExchangeProgram(trainer_program, settings));
//
//   w.delta = ...                                                      # f32[13, 2], or rows of it
//   send(X=w.delta) {send_varnames=["w.block0.delta", "w.block1.delta"], sections=[7, 6], epmap=[...]}
//   w = recv() {recv_varnames=["w.block0", "w.block1"], epmap=[...]}
//   fetch_barrier() {endpoints=[...]}
//
// It is never run: contracts, handles and initial values are read from it, as in the other modes.
#pragma once

#include <string>
#include <vector>

#include "framework/base/status.h"
#include "framework/ir/program.h"
#include "framework/runtime/trainer_communicator.h"

namespace penstock::communicator {

struct GeoVariable {
  struct Piece {
    std::string name;     // on the server
    std::string pserver;  // "host:port"
    Dim rows = 0;
  };
  std::string name;                // the trainer's parameter
  bool rows = false;               // a table: only touched rows are exchanged
  std::vector<Piece> pieces = {};  // all, in the order of their rows
};

struct GeoSettings {
  int trainers = 1;
  int push_every = 100;  // steps between two exchanges
  std::vector<GeoVariable> variables = {};
};

// kInvalidArgument: E-communicator-geo (a count is below 1, or a variable is missing or listed twice);
// errors of roles::RowPiecesOf. kUnimplemented E-communicator-type: neither f32 nor f64.
Result<Program> ExchangeProgram(const Program& trainer, const GeoSettings& settings);

// For each variable, in the order of the settings: its delta and its value, in pieces.
struct Exchanged {
  WholeVariable delta, param;
};
Result<std::vector<Exchanged>> ReadExchange(const Program& exchange);

}  // namespace penstock::communicator
