// Makes the role programs of several programs that train in one job, in turns, on one set of pservers, such
// as a GAN's discriminator and generator. Each program has a plan, steps and barriers of its own. Each
// parameter is updated by one program; the others read the value that a trainer received last.
//
//   PENSTOCK_ASSIGN_OR_RETURN(std::vector<RoleSet> roles, TranspileTogether(ops, {d, g}));
//   roles[0].trainers[0].startup, roles[1].trainers[0].startup      to be run in this order
//   roles[0].pservers[0].main, roles[1].pservers[0].main            to be served by one process
#pragma once

#include <optional>
#include <vector>

#include "transpiler/pipeline/transpile.h"

namespace penstock {

struct JobProgram {
  Program main;
  Program startup;  // may be the same for several, that is a copy with the same content id
  plan::TranspileConfig config;
};

// A pure function, as Transpile. The trainers' startup programs are to be run in the order of the programs.
// Programs with one startup program initialize its variables in that of the first; those of the others only
// receive their parameters. A startup program records what it leaves to others
// (framework/text/other_starts.h). Programs of mode completely_not_async become programs of mode sync, which
// need no communicator: the bytes are the same.
//
// In addition to the errors of Transpile: kInvalidArgument E-plan-programs: two programs update one
// parameter, or one state on some pservers only; they have different numbers of trainers; a mode is neither
// sync nor async without a communicator.
Result<std::vector<RoleSet>> TranspileTogether(const OpRegistry& ops, const std::vector<JobProgram>& programs,
                                               const PassOptions& options = {});

// What a user's program would be if it had not been replaced by the program `made` from it before the user
// added ops to it, which gave `now`: `source` with these ops, at its beginning and its end, and their
// variables. nullopt if other things have changed.
std::optional<Program> WithAdded(const Program& source, const Program& made, const Program& now);

}  // namespace penstock
