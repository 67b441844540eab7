// Level 1 of compiling: one block of a program, for given feeds and fetches, as slots and instructions. Names
// become indices here; shapes come with level 2 (specialise.h). Immutable once made, and shared by all its
// specialisations.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "framework/base/status.h"
#include "framework/ir/program.h"
#include "framework/op/op_registry.h"

namespace penstock::exec {

// Where a slot's variable lives.
enum class Home {
  kFrame,  // a temporary of one run
  kFeed,   // the caller's tensor, for the time of one run
  kScope,  // looked up in the scope, and there before or after the run
};

struct SlotInfo {
  std::string name;
  VarRef var;  // the declaration
  Home home = Home::kFrame;
  // Whether the block declares it itself: a variable of an outer block that the scope lacks is made in the
  // scope.
  bool declared_here = true;
  bool local = false;  // of home kScope, and of the very scope the block runs in, not of a parent
  bool written = false;
  bool written_by_block = false;  // some op writes it by starting a block, which may leave it alone
  bool required = false;  // some op reads the value that was there before the block, so there must be one
  int required_by = -1;   // the first such instruction; -1 also if a fetch asks for it
  // Its buffer is its own, not a part of the arena, because somebody may hold it after the run or beyond its
  // last use: it is fetched, or an op with an effect outside (a send, a recv) reads or writes it.
  bool kept = false;
  int first_write = -1;  // instructions; -1 if never
  int last_use = -1;
  // The slot of whose rows it may be a view, where one of the block's row_groups says which; -1: none.
  int view_of = -1;
};

// An op with its arguments as slots, in the order of op->inputs() and op->outputs(); -1 stands for no
// variable.
struct Instruction {
  OpRef op;
  const OpDef* def = nullptr;
  int position = 0;  // in the block
  // Whether it runs other blocks, by its declaration: what those read is checked where they run. An attribute
  // that the declaration does not know may name a block too, and means nothing.
  bool starts_blocks = false;
  std::vector<std::vector<int>> inputs;
  std::vector<std::vector<int>> outputs;
};

// An instruction that cuts or joins rows, and whose parts are views of the whole, or some of them
// (SlotInfo::view_of).
struct RowGroup {
  int instruction = 0;
  int whole = -1;          // slot
  std::vector<int> parts;  // slots, in the order of their rows
};

// What a block is compiled for.
enum class BlockUse {
  kMain,    // Executor::Run: persistable variables live in the scope, others are temporaries
  kNested,  // BlockRunner::RunBlock: only what the block itself declares is a temporary
};

struct CompiledBlock {
  Program program;  // keeps ops, variables and what kernels point to alive
  int block = 0;
  BlockUse use = BlockUse::kMain;
  std::vector<SlotInfo> slots;
  std::vector<Instruction> instructions;
  std::vector<RowGroup> row_groups;
  std::vector<int> feeds;    // slot of each feed, -1: declared, but no op reads it
  std::vector<int> fetches;  // slot of each fetch
  // Temporaries and feeds that blocks started here mention: those find them by name.
  std::vector<int> imports;
  std::vector<int>
      key;  // slots whose types before the run choose the specialisation: feeds and required ones
  std::vector<std::string> feed_names;
  std::vector<std::string> fetch_names;
  bool has_side_effects = false;  // some op has one
};

struct CompileRequest {
  int block = 0;
  BlockUse use = BlockUse::kMain;
  std::vector<std::string> feeds;
  // Empty: what the program's own fetch ops name, in the order of their columns.
  std::vector<std::string> fetches;
  // Of a nested block: its own variables that live in the scope it runs in, for somebody who looks there.
  std::vector<std::string> keeps = {};
};

// kInvalidArgument: an op that the registry does not know (E-op-unknown), or that breaks its schema
// (E-op-slot, E-op-attr); a variable that is not declared (E-var-undeclared); a feed that is missing
// (E-feed-missing), unknown (E-feed-unknown) or given twice (E-feed-twice); a fetch of what is not declared
// (E-fetch-unknown); an op starts a block that is not there (E-block-index), or one that starts itself
// (E-block-cycle).
Result<std::shared_ptr<const CompiledBlock>> CompileBlock(const OpRegistry& ops, const Program& program,
                                                          CompileRequest request);

}  // namespace penstock::exec
