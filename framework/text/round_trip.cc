#include "framework/text/round_trip.h"

#include <utility>

#include "framework/base/environment.h"
#include "framework/text/parser.h"
#include "framework/text/printer.h"
#include "framework/wire/wire.h"

namespace penstock {
namespace {

template <typename... Parts>
Status Lost(const Parts&... parts) {
  return InternalError("E-round-trip", "round trip: ", parts...);
}

Result<Program> ThroughBytes(const Program& program) {
  const std::string bytes = SerializeProgram(program);
  Result<Program> read = ParseProgram(bytes);
  if (!read.ok()) return Lost("its bytes do not read back: ", read.status().ToString());
  if (SerializeProgram(*read) != bytes) return Lost("its bytes are others once they are read");
  return read;
}

Result<Program> ThroughText(const Program& program) {
  const std::string text = PrintProgram(program, PrintOptions::Everything());
  Result<Program> read = ParseText(text, "printed");
  if (!read.ok()) return Lost("its text does not read back: ", read.status().ToString());
  if (PrintProgram(*read, PrintOptions::Everything()) != text)
    return Lost("its text is another once it is read");
  return read;
}

// Replaces the ops and variables of `block` by those of `read`.
Status Take(const Block& read, Block& block) {
  if (read.ops().size() != block.ops().size() || read.vars().size() != block.vars().size())
    return Lost("block ", block.index(), " has another number of ops or variables");
  std::vector<OpEntry> ops = block.ops();
  for (std::size_t i = 0; i < ops.size(); ++i) ops[i].op = read.ops()[i].op;
  block.SetOps(std::move(ops));
  for (const VarRef& var : read.vars()) {
    if (block.FindVar(var->name) == nullptr) return Lost("variable ", Quote(var->name), " is a new one");
    block.AddVarRef(var);
  }
  return OkStatus();
}

}  // namespace

Result<Program> RoundTrip(const Program& program) {
  PENSTOCK_ASSIGN_OR_RETURN(const Program parsed, ThroughBytes(program));
  PENSTOCK_ASSIGN_OR_RETURN(const Program read, ThroughText(parsed));
  if (read.block_count() != program.block_count()) return Lost("it has ", read.block_count(), " blocks");
  Program out = program;
  for (int b = 0; b < out.block_count(); ++b)
    PENSTOCK_RETURN_IF_ERROR(Take(read.block(b), out.MutableBlock(b)));
  out.mutable_meta() = read.meta();
  return out;
}

bool RoundTripsAreAsked() {
  static const bool asked = [] {
    const Result<std::string> verify = env::Choice("PENSTOCK_VERIFY");
    return verify.ok() && *verify == "roundtrip";
  }();
  return asked;
}

Result<Program> Verified(Program program) {
  if (!RoundTripsAreAsked()) return program;
  return RoundTrip(program);
}

}  // namespace penstock
