// Compilation, level 1: turns one block of a program, for given feeds and fetches, into slots and
// instructions. Names become indices here; level 2 (specialise.h) adds shapes. A CompiledBlock is immutable
// and shared by all its specialisations.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "framework/base/status.h"
#include "framework/ir/program.h"
#include "framework/op/op_registry.h"

namespace penstock::exec {

// Where the variable of a slot lives.
enum class Home {
  kFrame,  // a temporary of one run
  kFeed,   // the caller's tensor, during one run
  kScope,  // looked up in the scope; exists before or after the run
};

struct SlotInfo {
  std::string name;
  VarRef var;  // the declaration
  Home home = Home::kFrame;
  // False for a variable of an outer block. If the scope lacks it, it is created there.
  bool declared_here = true;
  bool local = false;  // with home kScope: in the scope in which the block runs, not in a parent
  bool written = false;
  bool written_by_block = false;  // an op that runs a block writes it, or may leave it unchanged
  bool required = false;          // an op reads the value from before the block, so it must have one
  int required_by = -1;           // the first such instruction; -1 also if a fetch requires it
  // It has its own buffer instead of a part of the arena, because it may be in use after the run or after its
  // last use: it is fetched, or an op that may hold it (a send, a recv) reads or writes it.
  bool kept = false;
  int first_write = -1;  // instructions; -1 if never
  int last_use = -1;     // the last one that writes it or reads its elements
  // The slot whose rows it may be a view of, according to one of the block's row_groups; -1: none.
  int view_of = -1;
};

struct RowChain;

// An op with its arguments as slots, in the order of op->inputs() and op->outputs(); -1 stands for a missing
// variable.
struct Instruction {
  OpRef op;
  const OpDef* def = nullptr;
  int position = 0;             // in the block
  bool of_first_place = false;  // of several places of a process, only the first one runs it
  // The types of its outputs are asked for before the run (OpDef::PeekOutputs) and known when it is planned.
  bool peeked = false;
  // Whether the op is declared to run other blocks. The inputs of those blocks are checked where they run.
  // Block attributes that the op does not declare are ignored.
  bool starts_blocks = false;
  std::vector<std::vector<int>> inputs;
  std::vector<std::vector<int>> outputs;
  // The ops that the instruction runs on a few rows at a time (row_chain.h); null: it runs `op`.
  std::shared_ptr<const RowChain> chain = {};
};

// Whether the instruction reads the elements of its input slot `i`, not the type alone (SlotDef::shape_only).
bool ReadsElements(const Instruction& instruction, std::size_t i);

// An instruction that cuts or joins rows. Some or all of its parts are views of the whole
// (SlotInfo::view_of).
struct RowGroup {
  int instruction = 0;
  int whole = -1;          // slot
  std::vector<int> parts;  // slots, in the order of their rows
};

// An instruction whose outputs' types are asked for before the run, and the slot of its source in the scope.
struct Peek {
  int instruction = 0;
  int source = -1;
};

// What a block is compiled for.
enum class BlockUse {
  kMain,    // Executor::Run: persistable variables live in the scope, others are temporaries
  kNested,  // BlockRunner::RunBlock: only variables that the block itself declares are temporaries
};

struct CompiledBlock {
  Program program;  // keeps the ops, the variables and everything kernels point to alive
  int block = 0;
  BlockUse use = BlockUse::kMain;
  std::vector<SlotInfo> slots;
  std::vector<Instruction> instructions;
  std::vector<RowGroup> row_groups;
  std::vector<int> feeds;    // slot of each feed
  std::vector<int> fetches;  // slot of each fetch
  // Slots of temporaries and feeds that nested blocks use, and find by name.
  std::vector<int> imports;
  // Slots whose types before the run choose the specialisation: feeds, and required scope variables.
  std::vector<int> key;
  // By position in key: the index of the feed, -1 for a variable of the scope.
  std::vector<int> feed_of_key;
  // Ops whose outputs' types do so too.
  std::vector<Peek> peeks;
  std::vector<std::string> feed_names;
  std::vector<std::string> fetch_names;
  Effects effects;  // of all ops
};

struct CompileRequest {
  int block = 0;
  BlockUse use = BlockUse::kMain;
  std::vector<std::string> feeds;
  // Empty: the variables that the program's own fetch ops name, in the order of their columns.
  std::vector<std::string> fetches;
  // For a nested block: its variables that must live in the scope of the run, to be read afterwards.
  std::vector<std::string> keeps = {};
};

// Compiles one block.
// kInvalidArgument: an op is unknown to the registry (E-op-unknown) or violates its schema (E-op-slot,
// E-op-attr); a variable is not declared (E-var-undeclared); a feed is missing (E-feed-missing), unknown
// (E-feed-unknown) or given twice (E-feed-twice); a fetch names an undeclared variable (E-fetch-unknown); an
// op runs a block that does not exist (E-block-index), or one that runs itself (E-block-cycle).
Result<std::shared_ptr<const CompiledBlock>> CompileBlock(const OpRegistry& ops, const Program& program,
                                                          CompileRequest request);

}  // namespace penstock::exec
